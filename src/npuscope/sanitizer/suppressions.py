"""Rules that keep known findings out of a report, as files and as comments in the source (docs/suppressions.md).

A file holds one rule a line: the class, then what else must be true of the finding, then why::

    race-waw  kernel=add_*  space=UB  at=kernels/add.py:41  pipes=MTE2,V   # both copies write the same constants
"""

from __future__ import annotations

import linecache
import re
import shlex
from dataclasses import dataclass
from fnmatch import fnmatchcase

from npuscope.errors import UserError
from npuscope.sanitizer.findings import Access, Finding
from npuscope.sanitizer.fingerprint import place, shown_path
from npuscope.trace.schema import SourceFrame, Space

KEYS = ("kernel", "space", "at", "pipes", "frame")


@dataclass(frozen=True, slots=True)
class Rule:
    """Which findings to suppress. All that is given must hold; names are globs.

    `at` is FILE, FILE:LINE or FILE:FIRST-LAST of either access, `pipes` the pipes of a pair in any order, `frame` a
    file or a function anywhere in the stacks. `reason` is the comment, `source` where the rule was written.
    """

    kind: str
    kernel: str = "*"
    space: str = "*"
    at: str = ""
    pipes: tuple[str, ...] = ()
    frame: str = ""
    reason: str = ""
    source: str = ""

    def matches(self, finding: Finding) -> bool:
        """Whether the rule is about this finding."""
        return (
            fnmatchcase(finding.kind, self.kind)
            and fnmatchcase(finding.kernel, self.kernel)
            and fnmatchcase(finding.owner.space if finding.owner is not None else "", self.space)
            and (not self.pipes or sorted(self.pipes) == sorted(side.pipe for side in _sides(finding)))
            and (not self.at or any(_at(frame, self.at) for frame in lines(finding)))
            and (not self.frame or any(_names(frame, self.frame) for frame in _frames(finding)))
        )

    def line(self) -> str:
        """The rule as a file holds it."""
        parts = [("kernel", self.kernel), ("space", self.space), ("at", self.at), ("pipes", ",".join(self.pipes)),
                 ("frame", self.frame)]
        words = [self.kind, *(shlex.quote(f"{key}={value}") for key, value in parts if value not in ("", "*"))]
        return " ".join(words) + (f"  # {self.reason}" if self.reason else "")


def parse_rules(text: str, name: str) -> list[Rule]:
    """The rules of a file called `name`. Raises UserError that names the line of a bad one."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{name}:{number}"
        body, _, reason = _split_comment(line)
        try:
            words = shlex.split(body)
        except ValueError as error:
            raise UserError(f"{where}: {str(error).lower()}") from None
        if words:
            found.append(_rule(words, reason.strip(), where))
    return found


def _split_comment(line: str) -> tuple[str, str, str]:
    """The line before and after a ``#`` that starts a word."""
    match = re.search(r"(?:^|\s)#", line)
    return (line, "", "") if match is None else (line[: match.start()], "#", line[match.end() :])


def _rule(words: list[str], reason: str, where: str) -> Rule:
    kind, *rest = words
    if "=" in kind or not re.fullmatch(r"[\w*?\[\]-]+", kind):
        raise UserError(f"{where}: a rule starts with a class such as race-waw, not {kind}")
    values: dict[str, str] = {}
    for word in rest:
        key, separator, value = word.partition("=")
        if key not in KEYS or not separator or not value:
            raise UserError(f"{where}: {word} is not one of {', '.join(f'{known}=...' for known in KEYS)}")
        if key in values:
            raise UserError(f"{where}: {key} is given twice")
        values[key] = value
    space = values.get("space", "*")
    if not re.search(r"[*?\[]", space) and space not in Space.__members__:
        raise UserError(f"{where}: no memory is called {space}; there are {', '.join(Space.__members__)}")
    if not re.fullmatch(r".*?(:\d+(-\d+)?)?", values.get("at", "")):
        raise UserError(f"{where}: at={values['at']} is not FILE, FILE:LINE or FILE:FIRST-LAST")
    pipes = tuple(values["pipes"].split(",")) if "pipes" in values else ()
    return Rule(
        kind, values.get("kernel", "*"), space, values.get("at", ""), pipes, values.get("frame", ""), reason, where
    )


def rule_for(finding: Finding) -> Rule:
    """A rule that matches this finding and those like it on the same line."""
    where = place(finding)
    return Rule(
        finding.kind, finding.kernel, finding.owner.space if finding.owner is not None else "*",
        f"{shown_path(where.file)}:{where.line}" if where is not None else "",
        tuple(side.pipe for side in _sides(finding)), reason=finding.summary.replace("\n", " "),
    )


class Rules:
    """Rules at work: they remember which of them were of use."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self.rules = rules
        self._used: set[Rule] = set()

    def __call__(self, finding: Finding) -> bool:
        """Whether any rule matches."""
        matching = [rule for rule in self.rules if rule.matches(finding)]
        self._used.update(matching)
        return bool(matching)

    @property
    def unused(self) -> list[Rule]:
        """Rules that have matched nothing."""
        return [rule for rule in self.rules if rule not in self._used]


_COMMENT = re.compile(r"#\s*npuscope:\s*allow\[([^\]]*)\]")


def allowed_in_source(finding: Finding) -> bool:
    """Whether a line of the finding says ``# npuscope: allow[class]``; the class may be a glob."""
    for frame in lines(finding):
        comment = _COMMENT.search(linecache.getline(frame.file, frame.line))
        if comment and any(fnmatchcase(finding.kind, kind.strip()) for kind in comment.group(1).split(",")):
            return True
    return False


def lines(finding: Finding) -> list[SourceFrame]:
    """The innermost line of each side of a finding."""
    sides = [side.frames[0] for side in _sides(finding) if side.frames]
    where = place(finding)
    return sides or ([where] if where is not None else [])


def _sides(finding: Finding) -> list[Access]:
    return [side for side in (finding.access, finding.other) if side is not None]


def _frames(finding: Finding) -> list[SourceFrame]:
    return [*finding.frames, *(frame for side in _sides(finding) for frame in side.frames)]


def _at(frame: SourceFrame, pattern: str) -> bool:
    match = re.fullmatch(r"(.*?)(?::(\d+)(?:-(\d+))?)?", pattern)
    assert match is not None
    file, first, last = match.groups()
    if first is not None and not int(first) <= frame.line <= int(last or first):
        return False
    return _file_matches(frame.file, file)


def _names(frame: SourceFrame, pattern: str) -> bool:
    return fnmatchcase(frame.function or "", pattern) or _file_matches(frame.file, pattern)


def _file_matches(file: str, pattern: str) -> bool:
    """The path as reports show it, the whole path, or the end of it after a folder."""
    return any(fnmatchcase(name, glob) for name in (shown_path(file), file) for glob in (pattern, f"*/{pattern}"))
