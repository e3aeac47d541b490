"""JUnit XML: a test case for each kernel and check, for the test views of CI servers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from npuscope.report.document import Result, number
from npuscope.report.text import findings_text
from npuscope.report.verdict import looked_at, verdict_lines
from npuscope.sanitizer.findings import Finding
from npuscope.sanitizer.judge import counts_as_error
from npuscope.sanitizer.suite import Outcome

HOST = "host"
"""The test case of what was found outside every kernel."""

UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold."""


def junit_bytes(result: Result) -> bytes:
    """The document. Findings that make the run fail are failures, others stand in the case's output."""
    suites = Xml.Element("testsuites", name="npuscope")
    for outcome in result.outcomes:
        _suite(suites, result, outcome)
    for name, why in result.not_run.items():
        suite = Xml.SubElement(suites, "testsuite", name=name)
        Xml.SubElement(_case(suite, name, "all kernels"), "skipped", message=_printable(f"not run: {why}"))
        _totals(suite)
    run = Xml.SubElement(suites, "testsuite", name="run")
    case = _case(run, "run", "completeness")
    if result.partial:
        Xml.SubElement(case, "error", type="partial", message=_printable("; ".join(result.partial)))
    elif not result.checked:
        Xml.SubElement(case, "skipped", message=_printable(looked_at(result)))
    Xml.SubElement(case, "system-out").text = _printable("\n".join(verdict_lines(result)))
    _totals(run)
    for name in ("tests", "failures", "errors", "skipped"):
        suites.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    Xml.indent(suites)
    data: bytes = Xml.tostring(suites, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _suite(suites: Xml.Element, result: Result, outcome: Outcome) -> None:
    suite = Xml.SubElement(suites, "testsuite", name=outcome.name)
    kernels = dict.fromkeys(record.kernel for record in result.checked)
    kernels.update(dict.fromkeys(finding.kernel or HOST for finding in outcome.findings))
    for kernel in kernels:
        found = [finding for finding in outcome.findings if (finding.kernel or HOST) == kernel]
        _fill(_case(suite, outcome.name, kernel), found, result.strict, outcome.limits)
    _totals(suite)


def _case(suite: Xml.Element, check: str, kernel: str) -> Xml.Element:
    return Xml.SubElement(suite, "testcase", classname=f"npuscope.{check}", name=_printable(kernel), time="0")


def _fill(case: Xml.Element, found: Sequence[Finding], strict: bool, limits: tuple[str, ...]) -> None:
    """One failure element at most: there are readers that take no more."""
    failing = [finding for finding in found if counts_as_error(finding, strict)]
    if failing:
        kinds = ", ".join(dict.fromkeys(finding.kind for finding in failing))
        element = Xml.SubElement(
            case, "failure", type=failing[0].kind, message=_printable(f"{number(len(failing), 'finding')}: {kinds}")
        )
        element.text = _printable(findings_text(failing))
    rest = [finding for finding in found if finding not in failing]
    output = ([findings_text(rest)] if rest else []) + [f"not looked at: {limit}" for limit in limits]
    if output:
        Xml.SubElement(case, "system-out").text = _printable("\n\n".join(output))


def _totals(suite: Xml.Element) -> None:
    cases = list(suite)
    suite.set("tests", str(len(cases)))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))


def _printable(text: str) -> str:
    return UNPRINTABLE.sub("?", text)
