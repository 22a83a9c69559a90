"""How a kernel runs: the schedule attribute, and the device limits it is checked against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from xdsl.dialects.builtin import IntAttr, NoneAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from dlcb.dialects.coord.transpose import TransposeAttr

RowBinding = Literal["none", "warp", "block", "thread", "column", "tile", "walk"]
Stage = Literal["none", "registers"]
SHIFTED = "shifted"

MAX_THREADS = 1024
MAX_STAGED_ITEMS = 64
MAX_THREAD_ROW = 16
"""The longest row that one thread walks."""
SHORT_ROW = 128
"""Rows of fewer elements are no work for a warp or a block, in a kernel that has as much to do without one."""
WARP = 32
INDEX_LIMIT = 2**31 - 2**16
"""32-bit coordinates and offsets serve below this; the room is for the threads of the last block."""


@irdl_attr_definition
class ScheduleAttr(ParametrizedAttribute):
    """`#dlcb.coord.schedule<row = block, threads = 256, vector = 4, items = 16, stage = registers, index = 32>`

    * `row`: what walks the row coordinates: `none` (no row: one thread an outer coordinate, or `vector` of them),
      `warp` (32 lanes a row, threads / 32 rows a block), `block` (all threads, one row a block), `thread` (one thread
      walks a whole row), `column` (up to 32 · `vector` neighbouring rows a block, `vector` a thread; several threads
      walk each). Of scans: `tile` (all threads of a block, one row, by tiles of `items` neighbouring coordinates a
      thread), `walk` (one thread a row, item by item); `block` is a single tile.
    * `vector`: neighbouring coordinates of the innermost axis that a thread computes together and loads and stores at
      once; of a `column`, those of the innermost outer axis: neighbouring rows.
    * `items`: row coordinates a thread holds; 0 means as many as the row needs, in a loop. Of a `column`: those that a
      thread walks at once, each into a total of its own.
    * `stage`: whether what is loaded in the first pass over the row stays in registers for the later ones.
    * `index`: bits of coordinates and offsets.
    * `step`, optional: the rows are cut into parts, and launches follow one another. Step i makes the i-th reduction of
      each part and leaves it in a workspace, where later steps combine it; the last step stores the results. Whole rows
      are stored part by part.
    * `start`, optional: `shifted` where vectors start at multiples of `vector` in memory, wherever rows do: the first
      and the last one of a row are partial. Of a kernel without a row, its innermost axis is taken for one.
    * `transpose`, optional, of kernels without a row: a block computes a tile, `items` coordinates a thread.
    """

    name = "dlcb.coord.schedule"
    row_attr: StringAttr
    threads_attr: IntAttr
    vector_attr: IntAttr
    items_attr: IntAttr
    stage_attr: StringAttr
    index_attr: IntAttr
    step_attr: IntAttr | NoneAttr
    start_attr: StringAttr | NoneAttr
    transpose_attr: TransposeAttr | NoneAttr

    @staticmethod
    def of(
        row: RowBinding,
        threads: int,
        vector: int,
        items: int,
        stage: Stage,
        index: int,
        step: int | None = None,
        transpose: TransposeAttr | None = None,
        shifted: bool = False,
    ) -> ScheduleAttr:
        return ScheduleAttr(
            StringAttr(row),
            IntAttr(threads),
            IntAttr(vector),
            IntAttr(items),
            StringAttr(stage),
            IntAttr(index),
            NoneAttr() if step is None else IntAttr(step),
            StringAttr(SHIFTED) if shifted else NoneAttr(),
            transpose or NoneAttr(),
        )

    @property
    def row(self) -> str:
        return self.row_attr.data

    @property
    def threads(self) -> int:
        return self.threads_attr.data

    @property
    def vector(self) -> int:
        return self.vector_attr.data

    @property
    def items(self) -> int:
        return self.items_attr.data

    @property
    def staged(self) -> bool:
        return self.stage_attr.data == "registers"

    @property
    def index(self) -> int:
        return self.index_attr.data

    @property
    def step(self) -> int | None:
        return self.step_attr.data if isinstance(self.step_attr, IntAttr) else None

    @property
    def shifted(self) -> bool:
        return isinstance(self.start_attr, StringAttr)

    @property
    def transpose(self) -> TransposeAttr | None:
        return self.transpose_attr if isinstance(self.transpose_attr, TransposeAttr) else None

    def verify(self) -> None:
        if self.row not in get_args(RowBinding):
            raise VerifyException(f"schedule: row = {self.row}, expected one of {', '.join(get_args(RowBinding))}")
        if self.stage_attr.data not in get_args(Stage):
            raise VerifyException(
                f"schedule: stage = {self.stage_attr.data}, expected one of {', '.join(get_args(Stage))}"
            )
        if not 1 <= self.threads <= MAX_THREADS or self.threads % WARP:
            raise VerifyException(
                f"schedule: {self.threads} threads, expected a multiple of {WARP} up to {MAX_THREADS}"
            )
        if self.vector not in (1, 2, 4, 8, 16):
            raise VerifyException(f"schedule: vector = {self.vector}, expected 1, 2, 4, 8 or 16")
        if self.index not in (32, 64):
            raise VerifyException(f"schedule: index = {self.index}, expected 32 or 64")
        if self.staged and not 1 <= self.items <= MAX_STAGED_ITEMS:
            raise VerifyException(f"schedule: {self.items} items staged in registers, expected 1 to {MAX_STAGED_ITEMS}")
        if self.row == "column" and self.items < 1:
            raise VerifyException(f"schedule: a column of {self.items} items, expected 1 or more")
        if self.row == "tile" and self.items < 1:
            raise VerifyException(f"schedule: a tile of {self.items} items, expected 1 or more")
        if self.step is not None and self.row not in ("block", "column"):
            raise VerifyException(f"schedule: a step of row = {self.row}, expected block or column")
        if isinstance(self.start_attr, StringAttr):
            self._verify_start(self.start_attr.data)
        if self.row != "column" and self.items % self.vector:
            raise VerifyException(f"schedule: {self.items} items are not a multiple of the vector, {self.vector}")
        if self.transpose is not None:
            self._verify_tile(self.transpose)

    def _verify_start(self, start: str) -> None:
        if start != SHIFTED:
            raise VerifyException(f"schedule: start = {start}, expected {SHIFTED}")
        if self.row not in ("warp", "block") or self.vector == 1:
            raise VerifyException(
                f"schedule: row = {self.row}, vector = {self.vector}, start = {SHIFTED}, expected a warp's or a block's"
                " row in vectors"
            )

    def _verify_tile(self, tile: TransposeAttr) -> None:
        """Threads walk a tile whole line by whole line, whichever way they go."""
        if self.row != "none" or self.step is not None:
            raise VerifyException(f"schedule: a transpose of row = {self.row}, expected none and no step")
        whole = tile.along * tile.across
        if self.items * self.threads != whole:
            raise VerifyException(f"schedule: {self.threads} threads of {self.items} items in a tile of {whole}")
        for side, vector in ((tile.across, self.vector), (tile.along, tile.vector)):
            lines = self.threads * vector
            if side % vector or lines % side or whole % lines:
                raise VerifyException(
                    f"schedule: {self.threads} threads, vector = {vector}, walk no whole lines of {side} in {whole}"
                )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        given: dict[str, Attribute] = {}
        transpose: list[Attribute] = []

        def one() -> None:
            key = parser.parse_identifier("a field of the schedule")
            parser.parse_punctuation("=")
            if key == "transpose":
                transpose.append(parser.parse_attribute())
                return
            number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
            given[key] = IntAttr(number) if number is not None else StringAttr(parser.parse_identifier())

        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, one)
        fields = ("row", "threads", "vector", "items", "stage", "index")
        step, start = (given.pop(key, NoneAttr()) for key in ("step", "start"))
        if tuple(given) != fields:
            parser.raise_error(f"schedule: expected the fields {', '.join(fields)} in this order")
        return [*[given[f] for f in fields], step, start, transpose[-1] if transpose else NoneAttr()]

    def print_parameters(self, printer: Printer) -> None:
        step = "" if self.step is None else f", step = {self.step}"
        start = f", start = {SHIFTED}" if self.shifted else ""
        printer.print_string(
            f"<row = {self.row}, threads = {self.threads}, vector = {self.vector}, items = {self.items}, "
            f"stage = {self.stage_attr.data}, index = {self.index}{step}{start}"
        )
        if self.transpose is not None:
            printer.print_string(", transpose = ")
            printer.print_attribute(self.transpose)
        printer.print_string(">")
