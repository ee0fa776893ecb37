"""The results that are kept, as a page of the documentation and pictures.

``python -m benchmarks.pages`` writes docs/benchmarks.md and docs/pictures/benchmarks/ anew;
``--check`` compares instead.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import suite
from benchmarks.contest import PEERS, Benchmark, Window, base_name
from benchmarks.measure import Measurement
from benchmarks.plot import as_svg, draw
from benchmarks.report import Report
from benchmarks.runner import BUSY
from gpu_windows.vocabulary.options import show_ticks

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURES = ROOT / "docs" / "pictures" / "benchmarks"

#: Benchmarks by the heading that they stand under.
GROUPS = {
    "Windows on Spark": ("sliding", "sliding_flat", "tumbling", "session", "cold"),
    "Windows of tables in memory": (
        "kernels_sliding",
        "kernels",
        "count_sliding",
        "continuous",
        "hot_key",
    ),
    "Aggregates around a row": ("over",),
    "Joins": ("interval_join", "interval_join_hot"),
    "Streams": (
        "stream_sliding",
        "stream_tumbling",
        "stream_session",
        "stream_interval_join",
        "stream_over",
        "stream_keys",
        "stream_soak",
    ),
}
#: Those with a picture.
DRAWN = (
    "sliding",
    "session-gap-5-s",
    "kernels_sliding",
    "over-1-hour",
    "interval_join",
    "stream_sliding",
)

#: Results of `make gpu`, which are told elsewhere.
_OF_GPUS = "gpu-*.json"
_SAID_OF_GPUS = {
    True: "Those of GPUs have [a page of their own](gpu.md).",
    False: "No run on a GPU (`make gpu`) is kept yet ([limits](limits.md#gpus)).",
}

#: Said of streams that were measured with an engine that is gone.
_WITHOUT_STATE_FILES = (
    "**Measured before our state was in files**: RocksDB had it, and what rows closed came with "
    "the micro-batch after them.\n"
)

_INTRODUCTION = """# Benchmarks

What was measured, and is kept in [`benchmarks/results`](../benchmarks/results/README.md) as JSON,
one file a run. This page is made of those files by `python -m benchmarks.pages`, and a test
compares it with them. How they are measured, what the contestants are and how to run one:
[benchmarks/README.md](../benchmarks/README.md).

- **No GPU.** All of these ran on CPUs. {gpus}
- **Small machines** that others share: two cores. Where the load average was half of the cores or
  more before a run began, it is called busy below, and its times are worth less.
- **Results are compared first**: a run whose contestants do not agree has no times.
- The **ratio** is a median over that of `gpu_windows` with the same windows: above 1 is slower
  than ours. Ratios and rates in the tables are cut off, not rounded.
- Times of joins, sessions and OVER stand under the windows that their option `--size` names: an
  interval, a gap, a frame.
- A command is the one that measures the same again, by today's options.
"""


@dataclass(frozen=True)
class Result:
    """A file of results.

    Parameters
    ----------
    name : str
        As files begin that have it: the benchmark, and what tells it from others of that name.
    benchmark : Benchmark
        As it is now.
    report : Report
    facts : mapping
        What all objects of the file share.
    """

    name: str
    benchmark: Benchmark
    report: Report
    facts: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Result:
        """Read a file."""
        rows = json.loads(path.read_text())
        facts = rows[0]
        benchmark = suite.load(facts["benchmark"])
        data = benchmark.data(facts["rows"], facts["keys"], shuffled=facts["shuffled"])
        measurements = tuple(
            Measurement(
                row["contestant"],
                Window(row["size_us"], row["slide_us"]),
                tuple(row["runs"]),
                row["floor"],
                row.get("details", {}),
            )
            for row in rows
        )
        report = Report(benchmark.name, benchmark.about, data, measurements)
        return cls(path.name.partition(f"-{facts['rows']}-rows")[0], benchmark, report, facts)

    def command(self) -> str:
        """Return the command that measures the same again."""
        own, facts = self.benchmark, self.facts
        window, wanted = Window.of(own.size, own.slide), self.report.measurements[0].window
        parts = [f"python -m benchmarks {own.name}"]
        parts += [f"--rows {facts['rows']}"] if facts["rows"] != own.rows else []
        parts += [f"--keys {facts['keys']}"] if facts["keys"] != own.keys else []
        if wanted != window and own.name != "sliding_flat":
            parts.append(f'--size "{show_ticks(wanted.size)}"')
            parts += [] if wanted.tumbles else [f'--slide "{show_ticks(wanted.slide)}"']
        return " ".join([*parts, *self._contestants()])

    def _contestants(self) -> Iterator[str]:
        names = {m.contestant for m in self.report.measurements}
        peers = tuple(p for p in PEERS if p in map(base_name, names))
        if set(peers) != set(self.benchmark.peers):
            yield f"--peers {','.join(peers)}"
        missing = [name for name in self.benchmark.chosen(peers) if name not in names]
        if missing:
            yield f"--without '{','.join(missing)}'"
        runs = len(self.report.measurements[0].runs)
        if runs != self.benchmark.repeats:
            yield f"--repeats {runs}"


def files() -> list[Path]:
    """Return the files of the page: all but those of GPUs, which `make gpu` makes a page of."""
    return sorted(set(RESULTS.glob("*.json")) - set(RESULTS.glob(_OF_GPUS)))


def results() -> list[Result]:
    """Return what is kept, in the order of the page."""
    found = [Result.read(path) for path in files()]
    order = [name for group in GROUPS.values() for name in group]
    return sorted(found, key=lambda result: (order.index(result.benchmark.name), result.name))


def page() -> str:
    """Return the page."""
    found = results()
    parts = [_INTRODUCTION.format(gpus=_SAID_OF_GPUS[any(RESULTS.glob(_OF_GPUS))])]
    for heading, names in GROUPS.items():
        parts.append(f"\n## {heading}\n")
        parts += [_section(result) for result in found if result.benchmark.name in names]
    return "".join(parts)


def pictures() -> dict[Path, str]:
    """Return the pictures, by file."""
    return {
        PICTURES / f"{result.name}.svg": as_svg(draw(result.report))
        for result in results()
        if result.name in DRAWN
    }


def _section(result: Result) -> str:
    facts, report = result.facts, result.report
    machine, versions = facts["machine"], facts["versions"]
    busy = ", busy" if machine["load"] >= BUSY * machine["cores"] else ""
    lines = [
        f"\n### {result.name}\n",
        f"{report.title()}. {report.about[0].upper()}{report.about[1:]}.\n",
        f"```sh\n{result.command()}\n```\n",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{facts['time'][:10]}; load {machine['load']:g} before it began{busy}; "
        f"Python {versions['python']}, PySpark {versions['pyspark']}, Numba {versions['numba']}"
        + "".join(f", {_named(peer, versions)}" for peer in _engines(report))
        + ".\n",
    ]
    if result.benchmark.name in GROUPS["Streams"] and not _has_state_files(report):
        lines.append(_WITHOUT_STATE_FILES)
    if result.name in DRAWN:
        lines.append(f"![{report.title()}](pictures/benchmarks/{result.name}.svg)\n")
    lines += [_table(report), *_notes(result)]
    return "\n".join(lines)


def _has_state_files(report: Report) -> bool:
    """Whether our queries had their state in files, as they have now."""
    return any(m.details.get("state_in") == "files" for m in report.measurements)


def _engines(report: Report) -> list[str]:
    names = {base_name(m.contestant).partition(".")[0] for m in report.measurements}
    return [name for name in ("polars", "duckdb") if name in names]


def _named(package: str, versions: Mapping[str, str]) -> str:
    return f"{ {'polars': 'Polars', 'duckdb': 'DuckDB'}[package] } {versions[package]}"


def _table(report: Report) -> str:
    streams = all("cpu_s" in m.details for m in report.measurements)
    more = ["processor s", "state, MB"] if streams else []
    heads = ["contestant", "median s", "least s", "rows/s", "ratio", *more]
    lines = [_row(heads), _row(["---", *["---:"] * (len(heads) - 1)])]
    for m in report.measurements:
        ratio = report.ratio(m)
        cells = [
            f"`{m.contestant}`" + (" (floor)" if m.floor else ""),
            f"{m.median:.3f}",
            f"{min(m.runs):.3f}",
            f"{math.floor(report.data_set.rows / m.median):,}",
            "" if ratio is None else f"{math.floor(ratio * 100) / 100:.2f}",
        ]
        if streams:
            cells += [f"{m.details['cpu_s']:.2f}", f"{m.details['state_live_bytes'] / 1e6:.1f}"]
        lines.append(_row(cells))
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _notes(result: Result) -> list[str]:
    notes = result.benchmark.summary(result.report.measurements)
    return ["\n".join(f"- {note}" for note in notes) + "\n"] if notes else []


def main(arguments: list[str]) -> int:
    """Write, or compare with what is there; return the exit status."""
    made = {PAGE: page(), **pictures()}
    if "--check" in arguments:
        others = [path.name for path, text in made.items() if path.read_text() != text]
        if others:
            sys.stderr.write(f"not what the results say: {', '.join(others)}\n")
        return int(bool(others))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for path, text in made.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
