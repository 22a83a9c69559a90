from dlcb.dialects.shape.expr import Expr, add, floordiv, mul, sub, sym
from dlcb.dialects.shape.system import Source, System
from dlcb.passes.sizes import DefinedSizes


def sizes_of(**defines: Expr) -> DefinedSizes:
    return DefinedSizes.from_system(System({n: Source.size("x", i) for i, n in enumerate("hn")}, defines=defines))


def test_a_symbol_that_is_a_polynomial_is_expanded():
    sizes = sizes_of(d0=mul(sym("n"), 3), d1=add(sym("d0"), 1))
    assert sizes.dim("d1") is add(mul(3, sym("n")), 1)


def test_a_symbol_that_is_no_polynomial_stays_itself():
    assert sizes_of(d0=floordiv(sym("h"), 2)).dim("d0") is sym("d0")


def test_multiples_of_a_value_that_has_a_name_are_told_to_be_so():
    half = floordiv(sym("h"), 2)
    sizes = sizes_of(d0=add(half, 1), d1=mul(4, half, sym("n")))
    assert sizes.dim("d1") is mul(4, sub(sym("d0"), 1), sym("n"))


def test_two_names_of_one_value_are_one_expression():
    half = floordiv(sym("h"), 2)
    sizes = sizes_of(d0=half, d1=half)
    assert sizes.dim("d0") is sizes.dim("d1")


def test_lists_of_dims_are_remembered():
    sizes = sizes_of()
    assert sizes.dims(("h", 3)) is sizes.dims(("h", 3))
