"""One run of `msopprof`: the application, its launches, the files, and the lines that tell of them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from npuscope.cli.attend import Ended
from npuscope.cli.msopprof.log import Log, say
from npuscope.cli.msopprof.options import Options
from npuscope.cli.plan import Plan
from npuscope.cli.profile_files import Wanted
from npuscope.cli.profile_folder import RunFolder, opprof_folder
from npuscope.cli.profile_launches import Model, Profiled, from_dumps, from_run
from npuscope.cli.profile_run import SPOOL, Gathered, gathered
from npuscope.cli.profile_status import Status
from npuscope.cli.profile_write import Writer
from npuscope.cli.run_plan import run_program
from npuscope.errors import UserError
from npuscope.npu.chip import DEFAULT_CHIP, load_chip
from npuscope.profiler.profile import Profile
from npuscope.profiler.rounds import rounds
from npuscope.profiler.selection import columns_of
from npuscope.report.profile.text import on_board_text, simulator_text

MINUTE = 60.0
"""Seconds of a unit of --timeout."""

MANUAL = (
    "Child process exited with status {}, The process is manually stopped. "
    "The existing data has been saved for subsequent analysis"
)
FAILED = "Running task failed, data parsing start"
EMPTY = "Profiling results are empty. No kernel profiling data was generated. Please check the dump output."


class Task:
    """Carries out a command line that was found good."""

    def __init__(self, options: Options, log: Log) -> None:
        self.options = options
        self.log = log
        self.wanted = Wanted(
            options.selection, cores=options.cores, pipes=options.pipes, dump=options.dump, labels=options.labels
        )
        self.status = Status(
            "export" if options.export else "simulator" if options.simulator else "op", options.command
        )

    def run(self) -> bool:
        """Do it; returns whether there are results. Raises UserError, and Quit at a second Ctrl-C."""
        options = self.options
        if options.config is not None:
            raise UserError(
                f"{options.config}: a kernel object needs a card to run on, and there is none here; "
                "profile the script that launches the kernel instead"
            )
        if options.export is not None:
            return self._export(options.export)
        return self._application()

    def _application(self) -> bool:
        with self._folder() as folder, only_one(self.log):
            self._say_start()
            self._say_rounds()
            options = self.options
            plan = Plan(checks=(), chip=options.chip, keep=options.choice)
            with gathered(
                plan,
                lambda spool, interrupted, limit: run_program(
                    spool, options.program, interrupted, limit, f"{'[ERROR]':<8}"
                ),
                folder.stage / SPOOL,
                None if options.timeout is None else MINUTE * options.timeout,
                lambda: self.log.info("Ctrl-C: the application is being ended (Ctrl-C again: quit at once)"),
                lambda: self.log.warn("The timeout has reached and the application will be forcibly killed."),
            ) as got:
                self._say_end(got.ended)
                self.status.application(got)
                if not got.kept:
                    self._say_nothing(got)
                    return False
                self._say_left_out(got)
                model = Model(
                    options.chip,
                    warm=options.replay == "application",
                    warmed=options.replay == "application" and bool(options.warm_up),
                )
                return self._parse(folder, from_run(got.folder, model))

    def _export(self, dumps: Path) -> bool:
        options = self.options
        chip = load_chip(options.chip) if options.chip else None
        launches = list(from_dumps(dumps, chip, options.cores))  # before anything is made
        with self._folder() as folder:
            return self._parse(folder, launches)

    @contextmanager
    def _folder(self) -> Iterator[RunFolder]:
        folder = RunFolder(opprof_folder(self.options.output))
        try:
            yield folder
        finally:
            folder.discard()  # keeps what has its final name

    def _parse(self, folder: RunFolder, launches: Iterable[Profiled]) -> bool:
        """Write every launch, then what belongs to all of them."""
        self.log.info("Start parse dump file")
        writer = Writer(folder, self.wanted, self.status, self.log)
        writer.take(launches)
        if not writer.done:
            self.log.error("Profiling data parse failed. Please check")
            if writer.failed:
                raise UserError("no launch is left that can be profiled")
            return False
        writer.finish()
        for profile in writer.profiles:
            say(self._summary(profile).rstrip())
        self.log.info("Profiling data parse finished.")
        result = f"Profiling kernels result is: {len(writer.done)} success, {len(writer.failed)} failed."
        (self.log.warn if writer.failed else self.log.info)(f"{result} Please check" if writer.failed else result)
        writer.say_files()
        self.log.info(f"Profiling results saved in {folder.root}")
        return True

    def _summary(self, profile: Profile) -> str:
        """The tables that a launch ends with."""
        if self.options.simulator:
            return simulator_text(profile)
        selection = self.options.selection
        return on_board_text(profile, selection.roofline, selection.occupancy)

    def _say_start(self) -> None:
        options = self.options
        if not options.simulator:
            self.log.info(f"Running device task: {options.command}")
        else:
            chip = f", use simulator {options.chip} by --soc-version" if options.chip else ""
            self.log.info(f"Running simulation task: {options.command}{chip}")

    def _say_rounds(self) -> None:
        """What application replay would mean on a card."""
        options = self.options
        if options.replay != "application":
            return
        kind = columns_of(load_chip(options.chip or DEFAULT_CHIP))
        self.log.info(
            f"Application replay takes {rounds(options.selection, kind)} rounds on a card; "
            "one run collects everything here, and the L2 cache goes from launch to launch"
        )

    def _say_end(self, ended: Ended) -> None:
        if ended.interrupted:
            self.log.warn(MANUAL.format(ended.code))
        elif ended.code and not ended.stopped and not ended.timed_out:
            self.log.warn("Profiling running finished. May cause generating performance files to fail.")
            self.log.warn(f"{FAILED} (the application ended with {ended.code})")
        else:
            self.log.info("Profiling running finished. All task success.")

    def _say_nothing(self, got: Gathered) -> None:
        for python in got.outside:
            self.log.warn(f"kernels of a Python without npuscope were not seen: {python}")
        kernels = ", ".join(dict.fromkeys(item.kernel for item in got.launched))
        if not kernels:
            self.log.error(EMPTY)
        elif self.options.names:
            self.log.error(
                f"No profiling data matched --kernel-name={self.options.names}. "
                f"{len(got.launched)} launches were seen, of: {kernels}"
            )
        else:
            self.log.error(
                f"No profiling data dumped. {len(got.launched)} launches were seen and left out, of: {kernels}"
            )

    def _say_left_out(self, got: Gathered) -> None:
        left = [item.kernel for item in got.launched if item.kept < 0]
        if left:
            self.log.info(
                f"{len(got.kept)} of {len(got.launched)} launches are kept; left out: "
                f"{', '.join(dict.fromkeys(left))} (--kernel-name, --launch-count)"
            )
        for python in got.outside:
            self.log.warn(f"kernels of a Python without npuscope were not seen: {python}")


@contextmanager
def only_one(log: Log) -> Iterator[None]:
    """Say when another run of this user is under way. Nothing is shared, so that neither sees the other's launches."""
    path = Path(tempfile.gettempdir()) / f"npuscope-profiling-{os.getuid()}.lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        yield  # somebody else's file: only the word of warning is lost
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.warn("another profiling run is under way on this device; this one writes to a directory of its own")
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
