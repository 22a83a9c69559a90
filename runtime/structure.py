"""The shape of nested arguments and results: tuples, lists, dicts, records around leaves. Plain JSON, so it travels in
artifacts.

A structure is `"*"` (a leaf), `["tuple", s…]`, `["list", s…]`, `["dict", {key: s}]`, or `["record", type name, {field:
s}]` (a dataclass or a dict with attributes, such as the outputs of transformers models).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from dlcb.errors import UserError

Structure: TypeAlias = "str | list[Any]"
Builder: TypeAlias = "Callable[[Sequence[Any]], Any]"
RecordMaker: TypeAlias = "Callable[[str, dict[str, Any]], Any]"
LEAF = "*"


class Record(dict[str, Any]):
    """Named results: `r["logits"]` and `r.logits`; `r[0]` is the first."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no result named {name!r}; there are {', '.join(self)}") from None

    def __getitem__(self, key: Any) -> Any:
        return list(self.values())[key] if isinstance(key, (int, slice)) else super().__getitem__(key)


def structure_of(value: Any, leaves: list[Any]) -> Structure:
    """The structure of a value; its leaves are appended to `leaves`."""
    if isinstance(value, (tuple, list)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return [kind, *(structure_of(v, leaves) for v in cast("Sequence[Any]", value))]
    parts = _parts(value)
    if parts is not None:
        items = {name: structure_of(part, leaves) for name, part in parts.items()}
        return ["dict", items] if type(value) is dict else ["record", type(value).__name__, items]
    leaves.append(value)
    return LEAF


def builder(structure: Structure, leaves: Iterator[Builder], record: RecordMaker | None = None) -> Builder:
    """Makes a value of this structure from flat results, its leaves as `leaves` make them; `record` makes records, else
    they are `Record`."""
    if isinstance(structure, str):
        return next(leaves)
    kind, *rest = structure
    if kind in ("tuple", "list"):
        parts = [builder(s, leaves, record) for s in rest]
        if kind == "tuple":
            return lambda results: tuple([part(results) for part in parts])
        return lambda results: [part(results) for part in parts]
    items = rest[0] if kind == "dict" else rest[1]
    entries = [(key, builder(s, leaves, record)) for key, s in items.items()]
    if kind == "dict":
        return lambda results: {key: part(results) for key, part in entries}
    finish: Callable[[dict[str, Any]], Any] = Record if record is None else partial(record, rest[0])
    return lambda results: finish({key: part(results) for key, part in entries})


MOST_LEVELS = 64


def check_structure(data: Any, where: str, levels: int = MOST_LEVELS) -> Structure:
    """The structure, if that is what it is, of so many levels at most; a UserError otherwise."""
    if not levels:
        raise UserError(f"{where}: expected at most {MOST_LEVELS} levels")
    match data:
        case "*":
            return data
        case ["tuple" | "list", *parts]:
            return [data[0], *(check_structure(p, where, levels - 1) for p in parts)]
        case ["dict", items]:
            return ["dict", _check_items(items, where, levels - 1)]
        case ["record", str(name), items]:
            return ["record", name, _check_items(items, where, levels - 1)]
        case _:
            raise UserError(f"{where}: expected the structure of arguments, got {data!r}")


def _check_items(items: Any, where: str, levels: int) -> dict[str, Structure]:
    if not isinstance(items, dict):
        raise UserError(f"{where}: expected the named parts of an argument, got {items!r}")
    return {str(k): check_structure(v, where, levels) for k, v in cast("dict[Any, Any]", items).items()}


def leaf_count(structure: Structure) -> int:
    if isinstance(structure, str):
        return 1
    items = structure[-1].values() if structure[0] in ("dict", "record") else structure[1:]
    return sum(map(leaf_count, items))


def is_flat(structure: Structure) -> bool:
    """Whether it is a list of leaves."""
    return isinstance(structure, list) and structure[0] == "list" and all(s == LEAF for s in structure[1:])


def show(structure: Structure) -> str:
    """For errors: `(tensor, {'mask': tensor})`."""
    if isinstance(structure, str):
        return "_"
    kind, *rest = structure
    if kind in ("tuple", "list"):
        inside = ", ".join(map(show, rest))
        return f"({inside})" if kind == "tuple" else f"[{inside}]"
    items = rest[0] if kind == "dict" else rest[1]
    return "{" + ", ".join(f"{k!r}: {show(v)}" for k, v in items.items()) + "}"


def flatten_like(structure: Structure, value: Any, name: str) -> list[Any]:
    """The leaves of a value that must have this structure, in the structure's order; keys of a dict may come in any."""
    leaves: list[Any] = []
    if not _take(structure, value, leaves):
        raise UserError(f"{name}: the arguments are {show(structure_of(value, []))}, compiled for {show(structure)}")
    return leaves


def _take(structure: Structure, value: Any, leaves: list[Any]) -> bool:
    """Whether the value has the structure; its leaves are appended to `leaves`."""
    if isinstance(structure, str):
        leaves.append(value)
        return structure_of(value, []) == LEAF
    kind, *parts = structure
    if kind in ("tuple", "list"):
        if not isinstance(value, tuple if kind == "tuple" else list):
            return False
        items = cast("Sequence[Any]", value)
        return len(items) == len(parts) and all(_take(s, v, leaves) for s, v in zip(parts, items, strict=True))
    found = _parts(value)
    if found is None or (kind == "dict") != (type(value) is dict):
        return False
    if kind != "dict" and type(value).__name__ != parts[0]:
        return False
    if isinstance(value, dict) and len(cast("dict[Any, Any]", value)) != len(found):  # two keys read the same
        return False
    wanted: dict[str, Structure] = parts[-1]
    return found.keys() == wanted.keys() and all(_take(s, found[key], leaves) for key, s in wanted.items())


def _parts(value: Any) -> dict[str, Any] | None:
    """The parts of a dict or record by name; None for what is neither."""
    if isinstance(value, dict):
        return {str(k): v for k, v in cast("dict[Any, Any]", value).items()}
    fields = getattr(cast(Any, type(value)), "__dataclass_fields__", None)
    return None if fields is None else {f: getattr(value, f) for f in fields}
