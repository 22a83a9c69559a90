"""Figures of results: PNG and SVG, equal bytes for equal results.

Bars are medians, with lines from what one in ten is below to what one in ten is above where that was measured. Hatched
bars are of results that are wrong; what failed or was skipped has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlcb.benchmarks.report import Row, column, read_report

COLOURS = {
    "copy": "#000000",
    "eager": "#969696",
    "eager_graph": "#525252",
    "tc": "#9ecae1",
    "tc_auto": "#6baed6",
    "tc_dynamic": "#3182bd",
    "tc_best": "#08306b",
    "dlcb": "#fdae6b",
    "dlcb_dynamic": "#e6550d",
    "dlcb_jit": "#f16913",
    "dlcb_hot": "#7f2704",
}
LIVE = 0.55
"""How opaque what has live weights is, where both kinds are shown."""
STYLE: Any = {
    "svg.hashsalt": "dlcb",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
CALLS = tuple(round(10 ** (power / 8)) for power in range(49))
"""Of the curves of amortization."""

Figures = Iterator[tuple[str, Figure]]
"""Names and figures."""


def draw(paths: Sequence[Path], folder: Path) -> list[Path]:
    """The files that were written. Results of one benchmark in several files are drawn together; a ValueError where
    they are of several devices, or for a file without results."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    with matplotlib.rc_context(STYLE):
        for benchmark, (rows, about) in _together(map(read_report, paths)).items():
            for name, figure in FIGURES[benchmark](rows):
                figure.text(0.995, 0.005, about, ha="right", va="bottom", fontsize=6, color="#666666")
                written += _save(figure, folder / "_".join(filter(None, (benchmark, name))))
    return written


def _together(reports: Iterable[Mapping[str, Any]]) -> dict[str, tuple[list[Row], str]]:
    """By benchmark: all rows, and what they were measured with."""
    found: dict[str, tuple[list[Row], str]] = {}
    for report in reports:
        benchmark, machine = report["benchmark"], report["machine"]
        if benchmark not in FIGURES:
            raise ValueError(f"no figures are known of the benchmark {benchmark}")
        about = f"{machine['device']}, torch {machine['torch']}"
        rows, known = found.setdefault(benchmark, ([], about))
        if known != about:
            raise ValueError(f"results of {benchmark} are of several machines, draw them apart: {known}; {about}")
        rows += report["rows"]
    return found


def _save(figure: Figure, stem: Path) -> Iterator[Path]:
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # it is laid out, once for both files
    for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
        path = stem.with_name(stem.name + suffix)
        figure.savefig(path, dpi=150, metadata=metadata)
        yield path


# Parts of figures


def panels(count: int, width: float, height: float = 2.8) -> tuple[Figure, list[Axes]]:
    """A figure with so many axes below each other."""
    figure = Figure(figsize=(width, height * count), layout="constrained")
    return figure, list(figure.subplots(count, 1, squeeze=False)[:, 0])


def values_of(rows: Iterable[Row], name: str) -> list[Any]:
    """The different values of a field, in order."""
    return list(dict.fromkeys(row[name] for row in rows if name in row))


def chosen(rows: Iterable[Row], value: str, **fields: Any) -> list[Row]:
    """The rows that have the value, and these fields."""
    return [r for r in rows if r.get(value) is not None and all(r.get(k) == v for k, v in fields.items())]


def bars(axes: Axes, rows: Sequence[Row], group: Callable[[Row], str], value: str) -> None:
    """A group for each name, in it a bar for each contender."""
    groups, columns = list(dict.fromkeys(map(group, rows))), list(dict.fromkeys(map(column, _in_order(rows))))
    width = 0.84 / max(1, len(columns))
    for row in {(group(row), column(row)): row for row in rows}.values():
        at = groups.index(group(row)) + (columns.index(column(row)) - (len(columns) - 1) / 2) * width
        hatch = None if row["ok"] else "////"
        error = _error(row, value)
        axes.bar(
            at, row[value], width, color=_colour(row), alpha=_opacity(row), hatch=hatch, yerr=error, ecolor="#333333"
        )
    for name in columns:
        first = next(row for row in rows if column(row) == name)
        axes.bar(0, 0, color=_colour(first), alpha=_opacity(first), label=name)
    axes.set_xticks(range(len(groups)), groups, rotation=20 if max(map(len, groups)) > 9 else 0)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.grid(axis="y", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)


def _in_order(rows: Sequence[Row]) -> list[Row]:
    """By contender, in the order of the colours."""
    known = list(COLOURS)
    return sorted(rows, key=lambda row: known.index(row["contender"]) if row["contender"] in known else len(known))


def _colour(row: Row) -> str:
    return COLOURS.get(row["contender"], "#2ca25f")


def _opacity(row: Row) -> float:
    return LIVE if row.get("weights") == "live" else 1.0


def _error(row: Row, value: str) -> list[list[float]] | None:
    """How far down and up the value may be: it is in proportion to the milliseconds, or to one over them."""
    if "ms_p90" not in row or value not in ("ms", "fraction", "gb_s", "throughput", "speedup"):
        return None
    least, most = row["ms_p10"] / row["ms"], row["ms_p90"] / row["ms"]
    low, high = (least, most) if value == "ms" else (1 / most, 1 / least)
    return [[row[value] * (1 - low)], [row[value] * (high - 1)]]


def legend(axes: Axes) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=7, frameon=False)


# Figures of each benchmark


def memory(rows: Sequence[Row]) -> Figures:
    for size in values_of(rows, "size"):
        of_size = [row for row in chosen(rows, "fraction", size=size) if row["program"] != "copy"]
        dtypes = values_of(of_size, "dtype")
        if not dtypes:
            continue
        figure, all_axes = panels(len(dtypes), 11)
        for axes, dtype in zip(all_axes, dtypes, strict=True):
            bars(axes, chosen(of_size, "fraction", dtype=dtype), lambda row: row["program"], "fraction")
            axes.axhline(1, color="black", linewidth=0.8)
            axes.set(title=f"{size}, {dtype}", ylabel="of a device copy's GB/s")
            legend(axes)
        yield size, figure


def overhead(rows: Sequence[Row]) -> Figures:
    titles = {
        "seen": "sizes seen before",
        "launch": "sizes seen before, no graphs of DLCB's own",
        "new": "new sizes in every call",
    }
    modes = [mode for mode in titles if chosen(rows, "us", mode=mode)]
    if not modes:
        return
    figure, all_axes = panels(len(modes), 7, 3.4)
    for axes, mode in zip(all_axes, modes, strict=True):
        of_mode = chosen(rows, "us", mode=mode)
        for name in values_of(_in_order(of_mode), "contender"):
            found = sorted((row["kernels"], row["us"]) for row in of_mode if row["contender"] == name)
            axes.loglog(*zip(*found, strict=True), marker="o", markersize=3, color=COLOURS.get(name), label=name)
        kernels = sorted(values_of(of_mode, "kernels"))
        axes.set_xticks(kernels, list(map(str, kernels)))
        axes.minorticks_off()
        axes.set(title=titles[mode], xlabel="kernels", ylabel="µs of the host a call")
        axes.grid(linewidth=0.4, alpha=0.6)
        legend(axes)
    yield "", figure


def models(rows: Sequence[Row]) -> Figures:
    labels = {"throughput": "pictures a second", "first_s": "cold compile, seconds to the first result"}
    for value, label in labels.items():
        found = chosen(rows, value)
        kinds = list(dict.fromkeys((row["dtype"], row["batch"]) for row in found))
        if not kinds:
            continue
        figure, all_axes = panels(len(kinds), 13)
        for axes, (dtype, batch) in zip(all_axes, kinds, strict=True):
            wanted = chosen(found, value, dtype=dtype, batch=batch)
            bars(axes, wanted, lambda row: row["program"], value)
            axes.set(title=f"{dtype}, batch {batch}", ylabel=label, yscale="log")
            legend(axes)
        yield value, figure


def compile_figures(rows: Sequence[Row]) -> Figures:
    for experiment in ("optimization", "amortization"):
        found = chosen(rows, "speedup", experiment=experiment)
        if found:
            figure, (axes,) = panels(1, 9, 3.4)
            bars(axes, found, _program_and_dtype, "speedup")
            axes.axhline(1, color="black", linewidth=0.8)
            axes.set(ylabel="times as fast as eager")
            legend(axes)
            yield experiment + "_speedup", figure
    yield from _for_each_program(rows, "first_s", "amortization", _amortized)
    yield from _for_each_program(rows, "first_ms", "transitions", _transitions)
    yield from _stages(chosen(rows, "seconds", experiment="stages"))
    yield from _for_each_program(rows, "swapped_after_s", "hot", _hot)


def _program_and_dtype(row: Row) -> str:
    return f"{row['program']} {row['dtype']}"


def _for_each_program(
    rows: Sequence[Row], value: str, experiment: str, fill: Callable[[Axes, Sequence[Row]], None]
) -> Figures:
    """A figure of an experiment with axes for each program."""
    found = chosen(rows, value, experiment=experiment)
    programs = list(dict.fromkeys(map(_program_and_dtype, found)))
    if not programs:
        return
    figure, all_axes = panels(len(programs), 8, 3.4)
    for axes, program in zip(all_axes, programs, strict=True):
        fill(axes, [row for row in found if _program_and_dtype(row) == program])
        axes.set_title(program)
        axes.grid(linewidth=0.4, alpha=0.6)
        legend(axes)
    yield experiment, figure


def _amortized(axes: Axes, rows: Sequence[Row]) -> None:
    """Seconds spent after so many calls, the compile among them."""
    for row in _in_order(rows):
        spent = [row["first_s"] + (calls - 1) * row["ms"] / 1e3 for calls in CALLS]
        axes.loglog(CALLS, spent, color=_colour(row), label=row["contender"])
    axes.set(xlabel="calls", ylabel="seconds spent, compile and all")


def _transitions(axes: Axes, rows: Sequence[Row]) -> None:
    for name in values_of(_in_order(rows), "contender"):
        found = sorted((row["step"], row["first_ms"]) for row in rows if row["contender"] == name)
        axes.semilogy(*zip(*found, strict=True), marker="o", markersize=3, color=COLOURS.get(name), label=name)
    shapes = dict(sorted({row["step"]: row["shape"] for row in rows}.items()))
    axes.set_xticks(list(shapes), list(shapes.values()))
    axes.set(xlabel="sizes, one after another", ylabel="ms of their first call")


def _stages(rows: Sequence[Row]) -> Figures:
    """Stacked seconds of DLCB's stages; where only the total is known, that."""
    if not rows:
        return
    wholes = list(dict.fromkeys((_program_and_dtype(row), row["contender"], row["cache"]) for row in rows))
    stages = [stage for stage in values_of(rows, "stage") if stage != "total"]
    palette = matplotlib.colormaps["tab20"]
    figure, (axes,) = panels(1, 9, max(3.4, 1.2 + 0.24 * len(wholes)))
    for at, (program, contender, cache) in enumerate(wholes):
        of_one = [
            row
            for row in rows
            if (_program_and_dtype(row), row["contender"], row["cache"]) == (program, contender, cache)
        ]
        seconds = {row["stage"]: row["seconds"] for row in of_one}
        left = 0.0
        for stage in stages:
            axes.barh(at, seconds.get(stage, 0), left=left, color=palette(stages.index(stage)))
            left += seconds.get(stage, 0)
        axes.barh(at, max(0.0, seconds.get("total", 0) - left), left=left, color="#dddddd")
    for number, stage in enumerate(stages):
        axes.barh(0, 0, color=palette(number), label=stage)
    axes.barh(0, 0, color="#dddddd", label="rest, to the first result")
    axes.set_yticks(range(len(wholes)), [" ".join(whole) for whole in wholes], fontsize=7)
    axes.invert_yaxis()
    axes.set(xlabel="seconds")
    legend(axes)
    yield "stages", figure


def _hot(axes: Axes, rows: Sequence[Row]) -> None:
    times = ("before", "meanwhile", "after")
    for row in rows:
        for quantile, marker in (("p50", "o"), ("p99", "^"), ("max", "x")):
            found = [row[f"{time}_ms_{quantile}"] for time in times]
            axes.semilogy(
                times, found, marker=marker, linestyle=":", color=_colour(row), label=f"{row['shape']} {quantile}"
            )
    axes.set(ylabel="ms a call", xlabel="a size is compiled in another process")


def serving(rows: Sequence[Row]) -> Figures:
    labels = {
        "first_stream_s": "first stream, s",
        "worst_call_s": "worst call but the first, s",
        "steady_s": "a later pass, s",
    }
    shown = [value for value in labels if chosen(rows, value)]
    if not shown:
        return
    figure, all_axes = panels(len(shown), 8)
    for axes, value in zip(all_axes, shown, strict=True):
        bars(axes, chosen(rows, value), _program_and_dtype, value)
        axes.set(ylabel=labels[value], yscale="linear" if value == "steady_s" else "log")
        legend(axes)
    yield "", figure


FIGURES: dict[str, Callable[[Sequence[Row]], Figures]] = {
    "memory": memory,
    "overhead": overhead,
    "models": models,
    "compile": compile_figures,
    "serving": serving,
}
