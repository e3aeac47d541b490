"""One run of `npuscope profile`: what it was asked, what is run or read, what comes out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npuscope.cli.attend import INTERRUPTED, Ended, Quit, say_interrupted
from npuscope.cli.heap import without_collection
from npuscope.cli.launched import Launched
from npuscope.cli.output import complain
from npuscope.cli.profile_compare import Baseline
from npuscope.cli.profile_files import Wanted
from npuscope.cli.profile_folder import RunFolder
from npuscope.cli.profile_launches import Model, Profiled, chip_with, from_batches, from_run
from npuscope.cli.profile_options import facts_of, formats_of
from npuscope.cli.profile_status import Status
from npuscope.cli.profile_write import Writer
from npuscope.cli.script import require_script
from npuscope.errors import EXIT_CLEAN, EXIT_FINDINGS, EXIT_TIMEOUT, UserError
from npuscope.npu.chip import DEFAULT_CHIP
from npuscope.profiler.choice import Choice
from npuscope.profiler.selection import Refused, Selection, columns_of, select
from npuscope.report.profile.text import PAGES, profile_text
from npuscope.trace.file import is_trace, read_batches

if TYPE_CHECKING:
    from npuscope.cli.profile_run import Gathered


class Speaker:
    """Says lines on standard error, so that standard output is the script's and the result's."""

    def info(self, text: str) -> None:
        """What happens."""
        complain(f"npuscope: {text}")

    warn = error = info


class Run:
    """One run of the command."""

    def __init__(
        self, script: str, arguments: tuple[str, ...], as_module: bool, baseline: Baseline, options: dict[str, Any]
    ) -> None:
        self.script = script
        self.arguments = arguments
        self.as_module = as_module
        self.baseline = baseline
        self.options = options
        self.output: Path | None = options["output"]
        self.facts = facts_of(options["facts"])
        self.chip: str | None = options["chip"]
        assumed = chip_with(self.chip or DEFAULT_CHIP, self.facts)  # refuses what it does not know
        if options["page"] not in PAGES:
            raise UserError(f"--page {options['page']}: there are {', '.join(PAGES)}")
        selection = _selection(options["metrics"], columns_of(assumed))
        self.wanted = Wanted(selection, formats_of(options["form"]), options["cores"], rules=_rules(options["rules"]))
        ranges = options["ranges"]
        self.choice = Choice(
            options["kernel"],
            None if options["list_kernels"] else options["launches"],
            options["skip"],
            None if not ranges else () if "*" in ranges else ranges,
            options["stop"],
        )
        self.of_trace = not as_module and os.path.isfile(script) and is_trace(script)
        self.status = Status("profile", " ".join((script, *arguments)))

    def carry_out(self) -> int:
        """Do it; returns the exit code."""
        if self.of_trace:
            if self.arguments or self.options["ranges"] or self.options["stop"] or self.options["time_limit"]:
                raise UserError("a recorded trace takes no arguments, no --range, no --stop and no --time-limit")
            if self.options["list_kernels"]:
                return self._listed([item.launched for item in self._traced(Model())])
            with self._folder() as folder, without_collection():
                return self._profiled(folder, self._traced(self._model()), Ended(EXIT_CLEAN))
        require_script(self.script, self.as_module)
        try:
            with self._folder() as folder, self._gathered(folder) as got:
                return self._of_script(folder, got)
        except Quit:
            return INTERRUPTED

    def _of_script(self, folder: RunFolder | None, got: Gathered) -> int:
        for python in got.outside:
            complain(f"npuscope: kernels of a Python without npuscope were not seen: {python}")
        if self.options["list_kernels"]:
            if got.trouble is not None:
                complain(f"npuscope: {got.trouble}")
            return self._listed(got.launched) or _code(got.ended)
        if not got.kept:
            raise got.trouble or UserError(_nothing(self.script, self.options["kernel"], got.launched))
        if got.trouble is not None:
            complain(f"npuscope: {got.trouble}")
        left = [item.kernel for item in got.launched if item.kept < 0]
        if left:
            complain(
                f"npuscope: {len(got.kept)} of {len(got.launched)} launches are profiled; left out: "
                f"{', '.join(dict.fromkeys(left))} (--kernel, --skip, --launches, --range)"
            )
        self.status.application(got)
        return self._profiled(folder, from_run(got.folder, self._model()), got.ended)

    def _profiled(self, folder: RunFolder | None, launches: Iterable[Profiled], ended: Ended) -> int:
        writer = Writer(folder, self.wanted, self.status, Speaker())
        writer.take(launches)
        if not writer.done:
            raise UserError(
                "no launch is left that can be profiled"
                if writer.failed
                else _nothing(self.script, self.options["kernel"], [])
            )
        writer.finish()
        click.echo(profile_text(writer.profiles, self.options["page"]), nl=False)
        if folder is not None:
            click.echo(f"\nWritten to {folder.root}: {len(folder.files())} files, see {folder.root}/report/index.html")
        if self.baseline and self.baseline.compare_new(writer.profiles) == EXIT_FINDINGS:
            return EXIT_FINDINGS
        return _code(ended)

    def _model(self) -> Model:
        return Model(self.chip, self.facts, warm=self.options["l2"] == "warm")

    def _traced(self, model: Model) -> Iterator[Profiled]:
        return from_batches(read_batches(self.script), self.choice, model)

    @contextmanager
    def _folder(self) -> Iterator[RunFolder | None]:
        if self.output is None or self.options["list_kernels"]:
            yield None
            return
        folder = RunFolder(self.output, self.options["unique"])
        try:
            yield folder
        finally:
            folder.discard()  # keeps what has its final name

    @contextmanager
    def _gathered(self, folder: RunFolder | None) -> Iterator[Gathered]:
        from npuscope.cli.plan import Plan  # what runs a script, which a recorded trace does not pay for
        from npuscope.cli.profile_run import SPOOL, gathered
        from npuscope.cli.run_plan import run_script_in_child

        plan = Plan(checks=(), chip=self.chip, keep=self.choice)
        with gathered(
            plan,
            lambda spool, interrupted, limit: run_script_in_child(
                spool, plan, self.script, self.arguments, self.as_module, interrupted, limit
            ),
            folder.stage / SPOOL if folder is not None else None,
            self.options["time_limit"],
            say_interrupted,
            lambda: complain("npuscope: the time limit is reached; the script is being ended"),
        ) as got:
            yield got

    def _listed(self, launched: list[Launched]) -> int:
        if not launched:
            raise UserError(_nothing(self.script, "", launched))
        for item in launched:
            ranges = f"  in {', '.join(item.ranges)}" if item.ranges else ""
            mark = " " if item.kept < 0 else "*"
            click.echo(f"{item.number:>5} {mark} {item.kernel}  {item.cores}  {item.chip or '-'}  {item.place}{ranges}")
        click.echo(f"{len(launched)} launches; * are those that --kernel, --skip and --range let in")
        return EXIT_CLEAN


def _code(ended: Ended) -> int:
    """The script's own code, unless we ended it."""
    if ended.timed_out:
        return EXIT_TIMEOUT
    return EXIT_CLEAN if ended.stopped else ended.code


def _selection(text: str, kind: str) -> Selection:
    try:
        return select(text.split(","), kind)
    except Refused as error:
        raise UserError(f"--metrics {text}: {error}") from None


def _rules(path: Path | None) -> tuple[Any, ...]:
    if path is None:
        return ()
    from npuscope.profiler.advice import load_rules

    return tuple(load_rules(path))


def _nothing(script: str, names: str, launched: list[Launched]) -> str:
    kernels = ", ".join(dict.fromkeys(item.kernel for item in launched))
    if not kernels:
        return f"{script} launched no kernel{' that fits' if names else ''}; nothing is profiled"
    return f"none of the {len(launched)} launches was asked for; their kernels are: {kernels}"
