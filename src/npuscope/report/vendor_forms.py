"""Each class of finding in the vendor's words (sanitizer.md 2.3)."""

from __future__ import annotations

from collections.abc import Callable
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
            return _other(page, finding)
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


def _illegal_free(page: Page, finding: Finding) -> list[str]:
    return [
        _head(finding, "illegal free() "),
        f"{DETAIL}at {_base(finding):#x} on GM",
        *_code(page, finding),
    ]


def _leak(page: Page, finding: Finding) -> list[str]:
    size = finding.size
    made = _made(finding)
    where = f"{made[0].file}:{made[0].line}" if made else "<unknown>"
    return [
        _head(finding, "LeakCheck: detected memory leaks"),
        "",
        f"{DETAIL}Direct leak of {size} byte(s)",
        f"{DEEP}at {_base(finding):#x} on GM",
        f"{DEEP}allocated in {where} (serialNo:{_serial(finding)})",
        "",
        f"{HEAD}SUMMARY: {size} byte(s) leaked in {finding.count} allocation(s)",
    ]


def _unused(page: Page, finding: Finding) -> list[str]:
    made = _made(finding)
    where = f"{made[0].file}:{made[0].line}" if made else "<unknown>"
    return [
        _head(finding, f"Unused memory of {finding.size} byte(s)"),
        f"{DETAIL}at {_base(finding):#x} on GM",
        f"{DETAIL}code in {where} (serialNo:{_serial(finding)})",
        "",
        f"{HEAD}SUMMARY: {finding.size}byte(s) unused memory in {finding.count} allocation(s)",
    ]


def _made(finding: Finding) -> tuple[Any, ...]:
    return (finding.owner.frames if finding.owner is not None else ()) or finding.frames


def _base(finding: Finding) -> int:
    if finding.owner is not None:
        return finding.owner.base
    return int(finding.facts.get("address", 0) or (finding.access.address if finding.access is not None else 0))


def _serial(finding: Finding) -> int:
    return int(finding.facts.get("serial", 0))


def _code(page: Page, finding: Finding) -> list[str]:
    """Host code: a line and the number of the event."""
    frames = finding.access.frames if finding.access is not None else finding.frames
    where = f"{frames[0].file}:{frames[0].line}" if frames else "<unknown>"
    return [f"{DETAIL}code in {where} (serialNo:{_serial(finding)})"]


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
        *location_lines(page, finding.access, finding.frames),
    ]


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
    return f"{later.role[0].upper()}A{earlier.role[0].upper()}"


def _side(page: Page, finding: Finding, access: Access, where: str) -> list[str]:
    core = access.core or (finding.cores[0] if finding.cores else "")
    return [
        f"{DETAIL}PIPE_{access.pipe} {access.role.capitalize()} at {where} in {one_block(page, finding, core)} "
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
    """A flag operation from one pipe to another."""

    def lines(page: Page, finding: Finding) -> list[str]:
        source, _, target = finding.edge.partition("_")
        if not target:
            return _other(page, finding)
        name = _operation(finding)
        return [
            _head(finding, f"{words} {name} instructions detected"),
            f"{DETAIL}from PIPE_{source} to PIPE_{target}{in_kernel(finding)}",
            block_line(page, finding),
            *location_lines(page, finding.access, finding.frames),
        ]

    return lines


def _operation(finding: Finding) -> str:
    opcode = str(finding.facts.get("opcode") or (finding.access.opcode if finding.access is not None else ""))
    return "wait_flag" if "wait" in opcode else "set_flag"


def _stuck(page: Page, finding: Finding) -> list[str]:
    stalled = finding.facts.get("stalled") or []
    lines = [_head(finding, "Sync error detected. kernel locked up at"), DETAIL]
    for pipe in stalled:
        frames = pipe.get("frames") or ()
        lines += [
            f"{DETAIL}{pipe['instruction']}{in_kernel(finding)}",
            f"{DETAIL}by PIPE_{pipe['pipe']} in block {blocks([pipe['core']], page.splits(finding))} {DEVICE}",
            f"{DETAIL}code in pc current {int(pipe.get('site', 0)):#x} (serialNo:{max(int(pipe.get('serial', 0)), 0)})",
            *frame_lines(page, tuple(frames)),
            DETAIL,
        ]
    if not stalled:
        lines += [*(f"{DETAIL}{note}" for note in finding.notes), DETAIL]
    return [*lines, f"{HEAD}SUMMARY: {len(stalled) or len(finding.notes)} pipe(s) locked up."]


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
    "relies-on-auto-sync": _race,
    "dcci-missing": _cache("Missing DCCI instructions"),
    "stale-write-back": _cache("Stale write-back"),
    "false-sharing": _cache("False sharing"),
    "unpaired-flag": _flag("Unpaired"),
    "redundant-flag": _flag("Redundant"),
    "flag-set-twice": _flag("Repeated"),
    "deadlock": _stuck,
}
"""The vendor's classes by ours. What is not here prints in the manner of the vendor's other reports."""
