"""From what a run came to, to the report and the exit code; what `npuscope check` and `mssanitizer` have in common."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from npuscope.cli.collect import Collected
from npuscope.cli.output import discard, write_atomically
from npuscope.errors import UserError
from npuscope.report.document import Result
from npuscope.sanitizer.judge import (
    ADVISORIES,
    Baseline,
    PerSite,
    Screen,
    counts_as_error,
    is_quiet_advisory,
    judge,
    of_other_block,
)
from npuscope.sanitizer.suite import CHECKS
from npuscope.sanitizer.suppressions import Rule, Rules, allowed_in_source, parse_rules, rule_for

Printer = Callable[[Result], bytes]


@dataclass(frozen=True, slots=True)
class Form:
    """A form of report: the module with its printer, which is imported when it is asked for, and how its files end."""

    name: str
    module: str
    suffix: str

    @property
    def printer(self) -> Printer:
        """A report's bytes from a result."""
        printer: Printer = getattr(importlib.import_module(f"npuscope.report.{self.module}"), f"{self.name}_bytes")
        return printer


FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        Form("text", "text", "txt"),
        Form("json", "document", "json"),
        Form("sarif", "sarif", "sarif"),
        Form("junit", "junit", "xml"),
        Form("github", "github", "github"),
        Form("vendor", "vendor", "log"),
    )
}


@dataclass(frozen=True, slots=True)
class Reporting:
    """How the user wants to hear of it."""

    formats: tuple[str, ...] = ("text",)
    output: Path | None = None
    strict: bool = False
    rules: tuple[Rule, ...] = ()
    generate: bool = False
    baseline: tuple[str, ...] | None = None  # fingerprints of an earlier report
    print_limit: int | None = None
    max_per_site: int | None = None
    block: int | None = None
    screens: tuple[Screen, ...] = ()
    advisories: bool = False
    always_suffix: bool = False


def chosen_formats(words: str) -> tuple[str, ...]:
    """``text,json`` as names of forms. Raises UserError for a word that is none."""
    names = tuple(dict.fromkeys(word.strip() for word in words.split(",")))
    for name in names:
        if name not in FORMS:
            raise UserError(f"no report format is called {name or 'nothing'}; there are {', '.join(FORMS)}")
    return names


def read_rules(files: tuple[Path, ...]) -> tuple[Rule, ...]:
    """The rules of suppression files. Raises UserError for one that cannot be read."""
    rules: list[Rule] = []
    for file in files:
        rules += parse_rules(_text(file), str(file))
    return tuple(rules)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"cannot read {file}: it is not text") from None


def read_baseline(file: Path | None) -> tuple[str, ...] | None:
    """The fingerprints in an earlier JSON report. Raises UserError when the file is none."""
    if file is None:
        return None
    try:
        findings = orjson.loads(_text(file))["findings"]
        return tuple(str(finding["fingerprint"]) for finding in findings)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise UserError(f"{file}: not a JSON report of this version (npuscope check --format json)") from None


def result_of(collected: Collected, choices: Reporting, not_run: Mapping[str, str]) -> Result:
    """What is reported of what was found."""
    rules = Rules(choices.rules)
    screens = [Screen("rules", rules), Screen("comments", allowed_in_source)]
    if choices.baseline is not None:
        screens.append(Screen("baseline", Baseline(choices.baseline)))
    if choices.block is not None:
        screens.append(Screen("other blocks", of_other_block(choices.block)))
    screens += choices.screens
    if not (choices.strict or choices.advisories):
        screens.append(Screen(ADVISORIES, is_quiet_advisory))
    if choices.max_per_site is not None:
        screens.append(Screen("per site", PerSite(choices.max_per_site)))
    judged = judge(collected.outcomes, screens)
    total = sum(len(outcome.findings) for outcome in judged.outcomes)
    unlisted = 0 if choices.print_limit is None else max(0, total - choices.print_limit)
    notes = tuple(f"{rule.source}: the rule for {rule.kind} matched nothing" for rule in rules.unused)
    return Result(judged.outcomes, collected.records, collected.partial, judged.suppressed, not_run, notes, unlisted,
                  choices.strict)


def not_asked(names: tuple[str, ...] | None) -> dict[str, str]:
    """The checks that a choice of names leaves out."""
    return {} if names is None else {name: "not asked for" for name in CHECKS if name not in names}


def failing(result: Result, strict: bool) -> bool:
    """Whether anything that is reported makes the run fail."""
    return any(counts_as_error(finding, strict) for finding in result.findings)


def write_reports(result: Result, choices: Reporting) -> None:
    """Print the report, or write it to the files asked for; with `generate` the rules come after it."""
    sys.stdout.flush()
    if choices.output is not None:
        write_files(result, choices)
    else:
        to_stderr(FORMS[choices.formats[0]].printer(result))
    to_stderr(generated(result, choices))


def write_files(result: Result, choices: Reporting) -> None:
    """Each form into its file: the name asked for when there is one form, else that name and the form's suffix."""
    assert choices.output is not None or not choices.formats
    for name in choices.formats:
        path = Path(choices.output or "")
        if len(choices.formats) > 1 or choices.always_suffix:
            path = path.with_name(f"{path.name}.{FORMS[name].suffix}")
        write_atomically(path, FORMS[name].printer(result))


def generated(result: Result, choices: Reporting) -> bytes:
    """Rules for what was found, when they were asked for."""
    if not choices.generate or not result.findings:
        return b""
    rules = dict.fromkeys(rule_for(finding).line() for finding in result.findings)
    return ("\n".join(["# rules for what was found", *rules]) + "\n").encode()


def to_stderr(data: bytes) -> None:
    """Write to standard error. Raises UserError when that cannot be done."""
    sys.stderr.flush()
    try:
        sys.stderr.buffer.write(data)
        sys.stderr.flush()
    except OSError as error:
        discard(2)
        raise UserError(f"cannot write the report: {error.strerror}") from None
