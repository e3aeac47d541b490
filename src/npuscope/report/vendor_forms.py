"""Each class of finding in the vendor's words (sanitizer.md 2.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from npuscope.report.kinds import title
from npuscope.report.vendor_lines import (
    DEEP,
    DETAIL,
    DEVICE,
    HEAD,
    WORDS,
    Page,
    address_line,
    block_line,
    blocks,
    frame_lines,
    in_kernel,
    kernel_name,
    location_lines,
    one_block,
)
from npuscope.sanitizer.findings import Access, Finding
from npuscope.sanitizer.fingerprint import shown_path
from npuscope.trace.schema import SourceFrame

Form = Callable[[Page, Finding], list[str]]

WORD = 1 << 64
"""Registers print unsigned."""


def finding_lines(page: Page, finding: Finding) -> list[str]:
    """A finding as the vendor prints it; a class that the vendor does not have in the same manner."""
    return FORMS.get(finding.kind, _other)(page, finding)


def _head(finding: Finding, text: str) -> str:
    return f"{HEAD}{WORDS[finding.severity]}: {text}"


def _sized(words: str) -> Form:
    """An access of so many bytes."""

    def lines(page: Page, finding: Finding) -> list[str]:
        if finding.access is None:
            return _on_host(finding, words) if not finding.kernel else _other(page, finding)
        return [
            _head(finding, f"{words} of size {finding.size}"),
            f"{address_line(finding)}{in_kernel(finding)}",
            block_line(page, finding),
            *location_lines(page, finding.access, finding.frames),
        ]

    return lines


def _stomp(page: Page, finding: Finding) -> list[str]:
    if finding.access is None:
        return _other(page, finding)
    return [
        _head(finding, f"out of bounds of size {finding.size}"),
        f"{address_line(finding)} when writing data{in_kernel(finding)}",
        block_line(page, finding),
        *location_lines(page, finding.access, finding.frames),
    ]


def _on_host(finding: Finding, words: str) -> list[str]:
    """What the host did to device memory."""
    return [
        _head(finding, f"{words} of size {finding.size}"),
        f"{DETAIL}at {int(finding.facts.get('address', 0)):#x} on GM",
        f"{DETAIL}{DEVICE}",
        _host_code(finding),
    ]


def _illegal_free(page: Page, finding: Finding) -> list[str]:
    address = int(finding.facts.get("address", 0))
    return [_head(finding, "illegal free() "), f"{DETAIL}at {address:#x} on GM", _host_code(finding)]


def _leak(page: Page, finding: Finding) -> list[str]:
    lines = [_head(finding, "LeakCheck: detected memory leaks"), ""]
    for base, size, serial in _blocks_of(finding):
        lines += [
            f"{DETAIL}Direct leak of {size} byte(s)",
            f"{DEEP}at {base:#x} on GM",
            f"{DEEP}allocated in {_made_at(finding)} (serialNo:{serial})",
            "",
        ]
    return [*lines, f"{HEAD}SUMMARY: {finding.size} byte(s) leaked in {finding.count} allocation(s)"]


def _unused(page: Page, finding: Finding) -> list[str]:
    lines = []
    for base, size, serial in _blocks_of(finding):
        lines += [
            _head(finding, f"Unused memory of {size} byte(s)"),
            f"{DETAIL}at {base:#x} on GM",
            f"{DETAIL}code in {_made_at(finding)} (serialNo:{serial})",
            "",
        ]
    return [*lines, f"{HEAD}SUMMARY: {finding.size}byte(s) unused memory in {finding.count} allocation(s)"]


def _blocks_of(finding: Finding) -> list[tuple[int, int, int]]:
    """Address, size and event number of each block that a finding is about."""
    base = finding.owner.base if finding.owner is not None else 0
    listed = finding.facts.get("blocks") or [(base, finding.size, 0)]
    return [(int(start), int(size), int(serial)) for start, size, serial in listed]


def _made_at(finding: Finding) -> str:
    frames = (finding.owner.frames if finding.owner is not None else ()) or finding.frames
    return f"{shown_path(frames[0].file)}:{frames[0].line}" if frames else "<unknown>"


def _host_code(finding: Finding) -> str:
    """The line of the program and the number of the event."""
    where = f"{shown_path(finding.frames[0].file)}:{finding.frames[0].line}" if finding.frames else "<unknown>"
    return f"{DETAIL}code in {where} (serialNo:{int(finding.facts.get('serial', 0))})"


def _register(page: Page, finding: Finding) -> list[str]:
    facts = finding.facts
    expected, current = (int(facts.get(name, 0)) % WORD for name in ("expected", "current"))
    return [
        f"[mssanitizer] Warning:Register {facts.get('register', 'unknown')} was not reset to default in block "
        f"{blocks(finding.cores, page.splits(finding))} on kernel {kernel_name(finding.kernel)}. "
        f"Expected default value is ({expected}), but current value is ({current})"
    ]


def _mask(page: Page, finding: Finding) -> list[str]:
    facts = finding.facts
    name = facts.get("instruction") or (finding.access.opcode.upper() if finding.access is not None else "unknown")
    return [
        _head(
            finding,
            f"{name} is using non-default mask. MaskMode: {facts.get('mode', '?')}, "
            f"MaskHigh: {_hex(facts.get('mask_high', 0))}, MaskLow: {_hex(facts.get('mask_low', 0))}",
        ),
        f"{DETAIL}in kernel {kernel_name(finding.kernel)} {DEVICE}",
        *_place(page, finding),
    ]


def _place(page: Page, finding: Finding, site: int | None = None, row: int | None = None) -> list[str]:
    """Where an instruction without a memory access stands: the check says which site and row."""
    facts = finding.facts
    site = facts.get("site") if site is None else site
    if site is None:
        return location_lines(page, finding.access, finding.frames)
    row = int(facts.get("row", 0)) if row is None else row
    return [f"{DETAIL}code in pc current {int(site):#x} (serialNo:{max(row, 0)})", *frame_lines(page, finding.frames)]


def _hex(value: Any) -> str:
    return value if isinstance(value, str) else hex(int(value) % WORD)


def _race(page: Page, finding: Finding) -> list[str]:
    if finding.access is None or finding.other is None:
        return _other(page, finding)
    word = hazard(finding.other, finding.access)
    space = finding.owner.space if finding.owner is not None else "GM"
    return [
        _head(finding, f"Potential {word} hazard detected at {space}{in_kernel(finding)}:"),
        *_side(page, finding, finding.other, f"{word}()+{finding.other.address:#x}"),
        *_side(page, finding, finding.access, f"{word}()+{finding.access.address:#x}"),
    ]


def hazard(earlier: Access, later: Access) -> str:
    """RAW, WAR or WAW: the later access after the earlier one."""
    letters = ["R" if side.role == "read" else "W" for side in (later, earlier)]
    return "A".join(letters)


def _side(page: Page, finding: Finding, access: Access, where: str) -> list[str]:
    core = access.core or (finding.cores[0] if finding.cores else "")
    pipe = f"PIPE_{access.pipe} " if access.pipe else ""
    return [
        f"{DETAIL}{pipe}{access.role.capitalize()} at {where} in {one_block(page, finding, core)} "
        f"{DEVICE} at pc current {access.site:#x} (serialNo:{max(access.serial, 0)})",
        *frame_lines(page, access.frames),
    ]


def _cache(words: str) -> Form:
    """Two accesses through different caches; the writer comes first."""

    def lines(page: Page, finding: Finding) -> list[str]:
        if finding.access is None or finding.other is None:
            return _other(page, finding)
        sides = sorted((finding.other, finding.access), key=lambda side: side.role != "write")
        return [
            _head(finding, f"{words} detected on cross core data dependency at GM{in_kernel(finding)}:"),
            *(line for side in sides for line in _side(page, finding, side, f"{side.address:#x}")),
        ]

    return lines


def _flag(words: str) -> Form:
    """A set_flag that goes wrong."""

    def lines(page: Page, finding: Finding) -> list[str]:
        if "event" not in finding.facts:
            return _other(page, finding)
        return _flag_lines(page, finding, f"{words} set_flag", _place(page, finding))

    return lines


def _flag_lines(page: Page, finding: Finding, words: str, place: list[str]) -> list[str]:
    source, _, target = str(finding.facts["event"]).partition("_")
    return [
        _head(finding, f"{words} instructions detected"),
        f"{DETAIL}from PIPE_{source} to PIPE_{target}{in_kernel(finding)}",
        block_line(page, finding),
        *place,
    ]


def _redundant(page: Page, finding: Finding) -> list[str]:
    """Both of each pair of identical operations, the sets and the waits: four reports."""
    rows, places = finding.facts.get("rows"), finding.facts.get("places")
    if not rows or not places:
        return _flag("Redundant")(page, finding)
    lines = []
    for number, name in ((0, "set_flag"), (2, "set_flag"), (1, "wait_flag"), (3, "wait_flag")):
        site, frames = places[number]
        head = f"{DETAIL}code in pc current {int(site):#x} (serialNo:{max(int(rows[number]), 0)})"
        place = [head, *frame_lines(page, _frames(frames))]
        lines += ["", *_flag_lines(page, finding, f"Redundant {name}", place)]
    return lines[1:]


def _frames(plain: Sequence[Sequence[Any]]) -> tuple[SourceFrame, ...]:
    """Frames from the (file, line, column) of a finding's facts."""
    return tuple(SourceFrame(str(file), int(line), int(column)) for file, line, column in plain)


def _stuck(page: Page, finding: Finding) -> list[str]:
    waits = finding.facts.get("waits") or []
    lines = [_head(finding, "Sync error detected. kernel locked up at"), DETAIL]
    for wait in waits:
        where = f"in block {blocks([wait['core']], page.splits(finding))} {DEVICE}"
        lines += [
            f"{DETAIL}{wait['instruction']}{in_kernel(finding)}",
            f"{DETAIL}by PIPE_{wait['pipe']} {where}",
            f"{DETAIL}code in pc current {int(wait['site']):#x} (serialNo:{max(int(wait.get('row', 0)), 0)})",
            *frame_lines(page, _frames(wait["frames"])),
            DETAIL,
        ]
    return [*lines, f"{HEAD}SUMMARY: {len(waits)} pipe(s) locked up."]


def _other(page: Page, finding: Finding) -> list[str]:
    """A class that the vendor does not have."""
    lines = [_head(finding, f"{title(finding.kind)}: {finding.summary}")]
    if finding.access is not None and finding.owner is not None:
        lines.append(f"{address_line(finding)}{in_kernel(finding)}")
    elif finding.kernel:
        lines.append(f"{DETAIL}in kernel {kernel_name(finding.kernel)}")
    return [*lines, block_line(page, finding), *location_lines(page, finding.access, finding.frames)]


FORMS: dict[str, Form] = {
    "illegal-read": _sized("illegal read"),
    "illegal-write": _sized("illegal write"),
    "write-to-read-only": _sized("illegal write"),
    "misaligned": _sized("misaligned access"),
    "uninitialised-read": _sized("uninitialized read"),
    "use-after-free": _sized("use after free"),
    "overwrite": _stomp,
    "illegal-free": _illegal_free,
    "leak": _leak,
    "unused-memory": _unused,
    "register-not-reset": _register,
    "non-default-mask": _mask,
    "race-raw": _race,
    "race-war": _race,
    "race-waw": _race,
    "race-same-value": _race,
    "relies-on-auto-sync": _race,
    "dcci-missing": _cache("Missing DCCI instructions"),
    "stale-write-back": _cache("Stale write-back"),
    "false-sharing": _cache("False sharing"),
    "unpaired-flag": _flag("Unpaired"),
    "redundant-flag": _redundant,
    "flag-set-twice": _flag("Repeated"),
    "deadlock": _stuck,
}
"""The vendor's classes by ours. What is not here prints in the manner of the vendor's other reports."""
