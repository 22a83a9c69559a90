"""The one driver of rewrite rules: a worklist, dispatch on the op's type, a budget, and source lines that survive.

xDSL's own walker visits every op for every pattern, has no limit, and leaves new ops without a location.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint
from xdsl.transforms.dead_code_elimination import is_trivially_dead

from dlcb.dialects._xdsl import has_location, op_text, source_line
from dlcb.errors import DlcbError, InternalError
from dlcb.passes.rule import Rule
from dlcb.passes.rule_trace import Firing, listener

_BUDGET_PER_OP = 32
_BUDGET_AT_LEAST = 1000


def apply_rules(root: Operation, rules: Sequence[Rule], *, budget: int | None = None) -> Counter[str]:
    """Applies the rules to all ops under `root` until none applies; returns how often each did.

    Where several rules apply at one op, the first of the sequence wins. A pure op whose last use a rewrite removed
    is erased. New ops take the location of the op that was rewritten. `InternalError` after more than `budget`
    rewrites: 32 for each op at the start, if not given.
    """
    return _Driver(rules).run(root, budget)


class _Driver:
    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._rules_by_type: dict[type[Operation], tuple[Rule, ...]] = {}
        self._pending: dict[Operation, None] = {}
        self._inserted: list[Operation] = []
        self._lost_use: set[Operation] = set()
        self._counts: Counter[str] = Counter()
        self._listener = listener()
        self._replacements: list[SSAValue] = []

    def run(self, root: Operation, budget: int | None) -> Counter[str]:
        ops = [op for op in root.walk() if op is not root]
        rewriter = self._make_rewriter()
        self._pending = dict.fromkeys(reversed(ops))
        left = max(_BUDGET_AT_LEAST, _BUDGET_PER_OP * len(ops)) if budget is None else budget
        while self._pending:
            op, _ = self._pending.popitem()
            if op in self._lost_use and self._erase_if_dead(op):
                continue
            rule = self._first_rule(op)
            if rule is None:
                continue
            if left == 0:
                raise InternalError(self._no_end(rule, op))
            left -= 1
            self._rewrite(rule, op, rewriter)
        return self._counts

    def _first_rule(self, op: Operation) -> Rule | None:
        kind = type(op)
        rules = self._rules_by_type.get(kind)
        if rules is None:
            rules = self._rules_by_type[kind] = tuple(rule for rule in self._rules if issubclass(kind, rule.roots))
        for rule in rules:
            if rule.why_not(op) is None:
                return rule
        return None

    def _make_rewriter(self) -> PatternRewriter:
        """One rewriter serves all rewrites: making one takes as long as a rewrite."""
        rewriter = PatternRewriter(InsertPoint.at_end(Block()))
        rewriter.operation_insertion_handler = [self._on_insertion]
        rewriter.operation_removal_handler = [self._on_removal]
        rewriter.operation_modification_handler = [self._push]
        rewriter.operation_replacement_handler = [self._on_replacement]
        return rewriter

    def _rewrite(self, rule: Rule, op: Operation, rewriter: PatternRewriter) -> None:
        rewriter.insertion_point = InsertPoint.before(op)
        rewriter.has_done_action = False
        location, line = op.location, source_line(op)
        before = op_text(op) if self._listener is not None else ""
        self._inserted.clear()
        self._replacements.clear()
        try:
            rule.rewrite(op, rewriter)
        except DlcbError:
            raise
        except Exception as error:
            raise InternalError(
                f"rule {rule.name} failed at {op.name} ({line}): {type(error).__name__}: {error}"
            ) from error
        if not rewriter.has_done_action:
            raise InternalError(f"rule {rule.name} says that it applies at `{op_text(op)}`, but changes nothing")
        for new in self._inserted:
            for nested in _with_nested(new):
                if not has_location(nested):
                    nested.location = location
        self._counts[rule.name] += 1
        if self._listener is not None:
            self._listener(Firing(rule.level, rule.name, before, self._made(op), line or ""))

    def _made(self, op: Operation) -> str:
        """What stands in the place of the op: the ops inserted, or else the values that its results became."""
        if self._inserted:
            return "; ".join(map(op_text, self._inserted))
        changed = "" if op.parent is None else op_text(op)
        return "; ".join(map(_value_text, self._replacements)) or changed or "nothing"

    def _erase_if_dead(self, op: Operation) -> bool:
        self._lost_use.discard(op)
        block = op.parent
        if block is None or not is_trivially_dead(op):
            return False
        self._on_removal(op)
        block.erase_op(op)
        return True

    def _no_end(self, rule: Rule, op: Operation) -> str:
        most = ", ".join(f"{name} {count} times" for name, count in self._counts.most_common(3))
        return f"rewriting does not end: {most}; rule {rule.name} still applies at `{op_text(op)}`"

    def _push(self, op: Operation) -> None:
        self._pending[op] = None

    def _on_insertion(self, op: Operation) -> None:
        self._inserted.append(op)
        for nested in _with_nested(op):
            self._push(nested)

    def _on_replacement(self, op: Operation, results: Sequence[SSAValue | None]) -> None:
        self._replacements += [result for result in results if result is not None]
        for result in op.results:
            for use in result.uses:
                self._push(use.operation)

    def _on_removal(self, op: Operation) -> None:
        for nested in _with_nested(op):
            self._pending.pop(nested, None)
            self._lost_use.discard(nested)
            self._push_owners(nested.operands)

    def _push_owners(self, operands: Iterable[SSAValue]) -> None:
        for operand in operands:
            owner = operand.owner
            if isinstance(owner, Operation):
                self._lost_use.add(owner)
                self._push(owner)


def _value_text(value: SSAValue) -> str:
    owner = value.owner
    return op_text(owner) if isinstance(owner, Operation) else f"%{value.name_hint or 'argument'}"


def _with_nested(op: Operation) -> Iterable[Operation]:
    return op.walk() if op.regions else (op,)
