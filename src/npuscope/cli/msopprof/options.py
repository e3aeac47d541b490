"""What the options of `msopprof` may be, looked at in the vendor's order (opprof.md 1.5): the first mistake is told."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from npuscope.cli.msopprof.config import read_config
from npuscope.cli.msopprof.grammar import Refused, Words, looks_like_ours
from npuscope.cli.program import found_program
from npuscope.errors import UserError
from npuscope.npu.chip import DEFAULT_CHIP, Chip, chip_names, load_chip
from npuscope.profiler import selection as groups
from npuscope.profiler.choice import REGEX, Choice
from npuscope.profiler.instruction_timeline.labels import NO_LABELS, Labels, read_labels
from npuscope.profiler.instruction_timeline.pipes import EVERY_PIPE, PipeChoice, read_pipes
from npuscope.profiler.selection import A5, P310, Selection, columns_of, select

LONGEST_OUTPUT = LONGEST_LIST = 200
LONGEST_NAMES = 1023
LONGEST_NAME = 255
"""Characters; the last one, of a single kernel's name, is ours."""


@dataclass(slots=True)
class Options:
    """A command line that can be followed. `program` is the application with its words, empty for `export` and
    `config`; `chip` is None where the script's own counts; `cores` empty means all; `timeout` is in minutes; `warm_up`
    is None where it was not given; `warnings` are to be said."""

    simulator: bool = False
    program: list[str] = field(default_factory=list)
    command: str = ""
    config: Path | None = None
    export: Path | None = None
    output: Path = Path(".")
    names: str = ""
    count: int = 1
    skip: int = 0
    ranges: tuple[str, ...] | None = None
    selection: Selection = Selection(frozenset(("Default",)))
    cores: tuple[int, ...] = ()
    dump: bool = False
    chip: str | None = None
    timeout: int | None = None
    kill: bool = False
    replay: str = "kernel"
    warm_up: int | None = None
    pipes: PipeChoice = EVERY_PIPE
    labels: Labels = NO_LABELS
    warnings: list[str] = field(default_factory=list)

    @property
    def choice(self) -> Choice:
        """The launches that are wanted."""
        return Choice(self.names, self.count, self.skip, self.ranges, self.kill)


Check = Callable[[Options, dict[str, str]], None]


def read_options(words: Words) -> Options:
    """Look at everything; raises Refused at the first mistake."""
    options = Options(words.simulator)
    for word in looks_like_ours(words):
        options.warnings.append(f"{word} stands after the application and belongs to it; our options come before it")
    _application(options, words)
    for check in (*SHARED, *(SIMULATOR if words.simulator else OP)):
        check(options, words.options)
    return options


def _application(options: Options, words: Words) -> None:
    given = words.options
    applications = [
        *([given["application"]] if "application" in given else []),
        *(["bare"] if words.application else []),
    ]
    if len(applications) + ("config" in given) + ("export" in given) != 1:
        raise Refused(
            "Input parameter config, export and application can not be used together or empty at the same time"
        )
    if "config" in given:
        options.config = Path(given["config"])
        read_config(options.config)
        return
    if "export" in given:
        options.export = Path(given["export"])
        return
    program = words.application
    if "application" in given:
        options.warnings.append("--application is deprecated; write the application after the options")
        try:
            program = shlex.split(given["application"])
        except ValueError:
            program = []
    options.command = " ".join(program)
    try:
        options.program = found_program(program) if program else []
    except UserError:
        options.program = []
    if not options.program:
        raise Refused("application to be profiled is not exist or not executable.")


def _output(options: Options, given: dict[str, str]) -> None:
    text = given.get("output", "./")
    path = Path(text)
    if len(text) > LONGEST_OUTPUT:
        raise Refused("--output parameter length is larger than 200.")
    if os.path.lexists(path) and not path.is_dir():
        raise Refused("--output parameter is not a folder but already exist, please check output path is correct.")
    if path.is_symlink():
        options.warnings.append(f"--output {text} is a soft link; results go to {path.resolve()}")
    if not _can_write(path):
        options.warnings.append(f"--output {text} is not writable; results go to the current directory")
        path = Path(".")
    options.output = path


def _can_write(path: Path) -> bool:
    """Whether a folder can be written to, or made."""
    there = next((folder for folder in (path, *path.absolute().parents) if folder.exists()), Path("/"))
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _kernel_name(options: Options, given: dict[str, str]) -> None:
    names = given.get("kernel-name", "")
    if not names:
        return
    if options.config is not None or options.export is not None:
        raise Refused("--kernel-name only supports application mode")
    if len(names) >= LONGEST_NAMES:
        raise Refused("--kernel-name input length exceeds limitation.")
    if names.startswith(REGEX):
        try:
            Choice(names)
        except UserError as error:
            raise Refused(f"--kernel-name is invalid: {error}") from None
    else:
        for name in names.split("|"):
            if not name or len(name) > LONGEST_NAME:
                raise Refused("invalid kernel name, name is too long or empty")
            if not re.fullmatch(r"[A-Za-z0-9_*]+", name):
                raise Refused(
                    "invalid kernel name, name contains unsupported character in name,"
                    "Support characters in one kernel name are: A-Z a-z 0-9 _ *"
                )
    options.names = names


def _number(text: str, low: int, high: int, what: str) -> int:
    if not re.fullmatch(r"\d+", text, re.ASCII):
        raise Refused(f"{what} should be number and within [{low}, {high}]")
    if not low <= int(text[:10]) <= high or len(text.lstrip("0")) > len(str(high)):
        raise Refused(f"{what} should within [{low}, {high}]")
    return int(text)


def _launch_count(options: Options, given: dict[str, str]) -> None:
    options.count = _number(given.get("launch-count", "1"), 1, 5000, "Launch count")


def _switch(given: dict[str, str], name: str, text: str) -> bool:
    value = given.get(name, "off")
    if value not in ("on", "off"):
        raise Refused(text)
    return value == "on"


def _mstx(options: Options, given: dict[str, str]) -> None:
    options.ranges = () if _switch(given, "mstx", "--mstx should use on/off") else None


def _mstx_include(options: Options, given: dict[str, str]) -> None:
    messages = given.get("mstx-include")
    if messages is None:
        return
    if options.ranges is None:
        raise Refused("--mstx-include only support when --mstx=on")
    if len(messages) >= LONGEST_NAMES:
        raise Refused("--mstx-include input length exceeds limitation")
    options.ranges = tuple(message for message in messages.split("|") if message)


def _metrics(options: Options, given: dict[str, str]) -> None:
    text = given.get("aic-metrics", "")
    if len(text) > LONGEST_LIST:
        raise Refused("Invalid --aic-metrics options!")
    chip = _assumed_chip(options, given)
    try:
        options.selection = select(text.split(",") if text else (), columns_of(chip), options.simulator)
    except groups.Refused as error:
        refused = str(error)
        if refused.endswith("soc platform") and not _chip_name(options, given):
            refused += f" ({chip.name} is assumed: name the kernel's chip with --soc-version)"
        raise Refused(refused) from None
    if "OverHead" in options.selection.groups and columns_of(chip) != groups.A2:
        options.warnings.append(f"OverHead is not supported on {chip.name}: its timeline has no scalar spans")


def _chip_name(options: Options, given: dict[str, str]) -> str:
    """The chip that the command names, or the path of the simulator's library does; "" where neither does."""
    found = re.search(r"/simulator/(Ascend\w+)/lib", os.environ.get("LD_LIBRARY_PATH", ""))
    return given.get("soc-version", "") or (found[1] if found and options.simulator else "")


def _assumed_chip(options: Options, given: dict[str, str]) -> Chip:
    try:
        return load_chip(_chip_name(options, given) or DEFAULT_CHIP)
    except UserError:
        return load_chip(DEFAULT_CHIP)  # a bad --soc-version is told in its turn


def _core_id(options: Options, given: dict[str, str]) -> None:
    text = given.get("core-id")
    if text is None:
        return
    if len(text) > LONGEST_LIST:
        raise Refused("--core-id input length exceeds limitation.")
    words = text.split("|")
    if not all(re.fullmatch(r"\d{1,2}", word, re.ASCII) and int(word) <= 49 for word in words):
        raise Refused(
            "--core-id is invalid, the cores to be parsed should be separated by '|', "
            "and each core id should be an integer which within [0, 49]."
        )
    _needs_detail(options, "core-id")
    options.cores = tuple(sorted({int(word) for word in words}))


def _needs_detail(options: Options, name: str) -> None:
    if not options.simulator and "TimelineDetail" not in options.selection.groups:
        raise Refused(f"--{name} requires --aic-metrics=TimelineDetail.")


def _dump(options: Options, given: dict[str, str]) -> None:
    if "dump" in given:
        options.dump = _switch(given, "dump", "--dump should be on/off")
        _needs_detail(options, "dump")


def _export(options: Options, given: dict[str, str]) -> None:
    if options.export is not None and not options.export.is_dir():
        raise Refused(f"--export {options.export} is not a directory")


def _soc_version(options: Options, given: dict[str, str]) -> None:
    name = _chip_name(options, given)
    if not name:
        return
    if options.config is not None:
        raise Refused("--soc-version is not effective in config mode")
    try:
        options.chip = load_chip(name).name
    except UserError:
        if "soc-version" not in given:
            options.warnings.append(f"LD_LIBRARY_PATH names the simulator of {name}, which is not known here")
            return
        raise Refused(f"--soc-version is invalid, please specify a simulator in [{' '.join(chip_names())}]") from None


def _timeout(options: Options, given: dict[str, str]) -> None:
    text = given.get("timeout")
    if text is None:
        return
    if not re.fullmatch(r"\d{1,4}", text, re.ASCII) or not 1 <= int(text) <= 2880:
        raise Refused("--timeout is invalid, it should be an integer which within [1, 2880].")
    options.timeout = int(text)


def _skip(options: Options, given: dict[str, str]) -> None:
    options.skip = _number(given.get("launch-skip-before-match", "0"), 0, 1000, "Launch-skip-before-match")


def _kill(options: Options, given: dict[str, str]) -> None:
    options.kill = _switch(given, "kill", "Kill should be on/off")


def _replay(options: Options, given: dict[str, str]) -> None:
    mode, kind = given.get("replay-mode", "kernel"), columns_of(_assumed_chip(options, given))
    modes = ("application", "kernel") if kind == P310 else ("application", "kernel", "range")
    if mode not in modes:
        raise Refused(f"Replay mode should be {'/'.join(modes)}")
    if mode == "range" and options.ranges is None:
        raise Refused("--replay-mode=range only support when --mstx=on")
    if mode == "application" and "TimelineDetail" in options.selection.groups:
        raise Refused("--aic-metrics=TimelineDetail is invalid when --replay-mode=application")
    never = ["TimelineDetail", "Source", "MemoryDetail"]
    if kind == A5:
        never += ["PcSampling", "Roofline", "PipeTimeline", "InstrTimeline"]
    if mode == "range" and options.selection.groups & set(never):
        raise Refused(f"--aic-metrics={'/'.join(never)} is invalid when --replay-mode=range")
    options.replay = mode


def _warm_up(options: Options, given: dict[str, str]) -> None:
    text = given.get("warm-up")
    if text is not None:
        options.warm_up = _number(text, 0, 500, "Warm up times")
    if options.replay == "range" and options.warm_up == 0:
        raise Refused("Warm up times should within [1, 500] when --replay-mode=range")


def _pipes(options: Options, given: dict[str, str]) -> None:
    text = given.get("pipe", given.get("instr-timeline-pipe"))
    if text is None:
        return
    if "InstrTimeline" not in options.selection.groups:
        raise Refused("--instr-timeline-pipe only support when --aic-metrics include InstrTimeline.")
    try:
        options.pipes = read_pipes(text)
    except UserError as error:
        raise Refused(str(error).partition(" (")[0]) from None  # the vendor's words end there


def _custom_input(options: Options, given: dict[str, str]) -> None:
    if "custom-input" in given:
        try:
            options.labels = read_labels(Path(given["custom-input"]))
        except UserError as error:
            raise Refused(str(error)) from None


SHARED: tuple[Check, ...] = (
    _output,
    _kernel_name,
    _launch_count,
    _mstx,
    _mstx_include,
    _metrics,
    _core_id,
    _dump,
)
SIMULATOR: tuple[Check, ...] = (_export, _soc_version, _timeout, _kill)
OP: tuple[Check, ...] = (_skip, _kill, _replay, _warm_up, _pipes, _custom_input, _soc_version, _timeout)
"""In the order in which mistakes are told."""
