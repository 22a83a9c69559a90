"""What the compiler tells of a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, cast

from dlcb.errors import UserError
from dlcb.runtime.artifact import Artifact


@dataclass
class Report:
    """What the compiler tells: each input dim's fate, what each stage took, how many ops went where."""

    dimensions: dict[str, str] = field(default_factory=dict[str, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    nodes: int = 0
    launches: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    names: dict[str, str] = field(default_factory=dict[str, str])
    """What the user calls a size → one place where it is: `batch` → `x.shape[0]`."""
    eager: list[str] = field(default_factory=list[str])
    """The ops that run in eager, each with its line and why."""
    regions: int = 1
    """How many parts of the program are compiled."""
    native_bytes: int = 0
    eager_bytes: int = 0
    """Bytes of the ops' results on each side, at the example's sizes; counted where ops run in eager."""

    @property
    def native(self) -> int:
        """How many ops are compiled."""
        return self.nodes - len(self.eager)

    def text(self, artifact: Artifact) -> str:
        """What was compiled, what runs in eager and why, in words."""
        lines = [f"{artifact.name}: target {artifact.target}, {self._shares()}; weights {artifact.mode}"]
        lines += [f"  in eager: {reason}" for reason in self.eager]
        lines += [f"  {dim}: {state}" for dim, state in self.dimensions.items()]
        lines += [f"  note: {note}" for note in self.notes]
        lines.append(f"  {len(self.launches)} launches and library calls:")
        lines += [f"    {launch}" for launch in self.launches]
        lines.append("  " + ", ".join(f"{stage} {s * 1e3:.1f} ms" for stage, s in self.seconds.items()))
        return "\n".join(lines)

    def _shares(self) -> str:
        """How much is native: of the ops, and of the bytes that they make."""
        if not self.eager:
            return f"{self.nodes} ops, all native"
        made = self.native_bytes + self.eager_bytes
        share = f", {self.native_bytes / made:.0%} of the bytes of results" if made else ""
        return (
            f"{self.nodes} ops, {self.native} native in {self.regions} regions ({self.native / self.nodes:.0%}{share})"
        )

    @classmethod
    def from_json(cls, data: Any, where: str) -> Report:
        """The report that was saved, an empty one where none was; a `UserError` that begins with `where` names the
        entry that is not like that."""
        if data is None:
            return cls()
        if not isinstance(data, dict):
            raise UserError(f"{where}: expected an object, got {type(data).__name__}")
        given = cast("dict[str, Any]", data)
        kinds = {field.name: str(field.type) for field in fields(cls)}
        for name, value in given.items():
            if name not in kinds:
                raise UserError(f"{where}: a report has no entry {name!r}")
            if not _IS[kinds[name]](value):
                raise UserError(f"{where}: {name}: expected {kinds[name]}, got {type(value).__name__}")
        report = cls(**given)
        if len(report.eager) > report.nodes:
            raise UserError(f"{where}: eager: {len(report.eager)} ops, but {report.nodes} nodes")
        return report


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[Any]", value))


def _is_dict_of(kinds: tuple[type, ...]) -> Callable[[Any], bool]:
    def holds(value: Any) -> bool:
        return isinstance(value, dict) and all(type(item) in kinds for item in cast("dict[str, Any]", value).values())

    return holds


_IS: dict[str, Callable[[Any], bool]] = {
    "int": _is_count,
    "list[str]": _is_list_of_texts,
    "dict[str, str]": _is_dict_of((str,)),
    "dict[str, float]": _is_dict_of((int, float)),
}
"""Whether a value is of a field's type."""
