"""Modelled figures beside published ones."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from timing_cases import camodel, silicon
from timing_cases.measure import Spent, figure, script, timed

HERE = Path(__file__).parent
TARGETS = {
    ("simulator", ""): (0.08, 0.20),
    ("silicon", "hold-out"): (0.08, None),
}
"""Of a group and a use ("" for both): the most that the median and the 90th percentile of the errors may be."""


@dataclass(frozen=True, slots=True)
class Result:
    """A published figure and the modelled one. `group` is "silicon" or "simulator", `row` the number of the measurement
    or the kind of kernel, `use` "fit" or "hold-out", `again` the published figure of a second run (0: none), `note` how
    the kernel differs from the published one."""

    group: str
    row: str
    chip: str
    case: str
    metric: str
    published: float
    modelled: float
    use: str
    again: float = 0.0
    note: str = ""

    @property
    def error(self) -> float:
        """Of the modelled figure, as a share of the published one."""
        return self.modelled / self.published - 1


def simulator(
    wanted: Sequence[str] = ("",), overrides: Mapping[str, float] | None = None
) -> Iterator[tuple[Result, Spent]]:
    """The rows of the simulator's table whose name contains one of `wanted`."""
    for row in table("camodel.csv"):
        if row["not_rebuilt"] or not _is_among(row["api"], wanted):
            continue
        timeline, spent = timed(script(camodel.KERNELS[row["api"]].text), "Ascend950PR", overrides)
        note = f"written as {row['written_as']}" if row["written_as"] else ""
        again = float(row["again_ns"] or 0) / 1000
        yield (
            Result(
                "simulator",
                row["kind"],
                "Ascend950PR",
                row["api"],
                "task",
                float(row["ns"]) / 1000,
                figure(timeline, "task"),
                row["use"],
                again,
                note,
            ),
            spent,
        )


def silicon_rows(
    wanted: Sequence[str] = ("",), overrides: Mapping[str, float] | None = None
) -> Iterator[tuple[Result, Spent]]:
    """The measurements on silicon whose "row chip case" contains one of `wanted`; each kernel runs once."""
    by_case: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in table("silicon.csv"):
        if _is_among(f"{row['row']} {row['chip']} {row['case']}", wanted):
            by_case.setdefault((row["chip"], row["case"]), []).append(row)
    for (chip, name), rows in by_case.items():
        case = silicon.CASES[chip, name]
        timeline, spent = timed(case.run, chip, overrides)
        for row in rows:
            value = case.scaled(row["metric"], figure(timeline, row["metric"]), timeline.overhead / timeline.mhz)
            yield (
                Result(
                    "silicon",
                    row["row"],
                    chip,
                    name,
                    row["metric"],
                    float(row["published"]),
                    value,
                    row["use"],
                    note=f"{case.part}, scaled" if case.part else "",
                ),
                spent,
            )


def _is_among(name: str, wanted: Sequence[str]) -> bool:
    return any(part.lower() in name.lower() for part in wanted)


def table(name: str) -> list[dict[str, str]]:
    """A data file of this folder."""
    with (HERE / name).open(newline="") as file:
        return list(csv.DictReader(file))


@dataclass(frozen=True, slots=True)
class Summary:
    """How far off a group is: the `median` and the 90th percentile (`high`) of the errors' sizes over `count` figures,
    and the targets for them."""

    group: str
    use: str
    count: int
    median: float
    high: float
    targets: tuple[float | None, float | None] = (None, None)

    @property
    def met(self) -> bool:
        """Whether the targets are reached, where there are any."""
        return all(
            limit is None or value < limit for value, limit in zip((self.median, self.high), self.targets, strict=True)
        )


def summaries(results: list[Result]) -> list[Summary]:
    """For each group: all its figures, those that constants were fitted on, and the others."""
    found = []
    for group in ("simulator", "silicon"):
        for use in ("", "fit", "hold-out"):
            errors = [abs(one.error) for one in results if one.group == group and use in ("", one.use)]
            if errors:
                found.append(
                    Summary(
                        group,
                        use,
                        len(errors),
                        float(np.median(errors)),
                        float(np.percentile(errors, 90)),
                        TARGETS.get((group, use), (None, None)),
                    )
                )
    return found
