"""The JSON file of ``--config``: a kernel object and its test case (opprof.md 1.9)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from npuscope.cli.msopprof.grammar import Refused

LARGEST = 10 << 20
"""Bytes of a JSON file."""

MAGIC = ("RT_DEV_BINARY_MAGIC_ELF", "RT_DEV_BINARY_MAGIC_ELF_AIVEC", "RT_DEV_BINARY_MAGIC_ELF_AICUBE")
MODES = ("onboard", "ca")
PARAMETERS = ("input", "output", "workspace", "tiling", "fftsAddr")


def read_config(path: Path) -> dict[str, Any]:
    """The description of one kernel object and how to run it. Raises Refused."""
    document = _document(path)
    for name in ("kernel_name", "kernel_path"):
        if not isinstance(document.get(name), str) or not document[name]:
            raise Refused(f"--config {path}: {name} should be a text")
    if not isinstance(document.get("blockdim", 1), int) or document.get("blockdim", 1) < 1:
        raise Refused(f"--config {path}: blockdim should be a number of at least 1")
    if not isinstance(document.get("device_id", 0), int) or document.get("device_id", 0) < 0:
        raise Refused(f"--config {path}: device_id should be a number of at least 0")
    if document.get("mode", MODES[0]) not in MODES:
        raise Refused(f"--config {path}: mode should be {' or '.join(MODES)}")
    if document.get("magic", MAGIC[0]) not in MAGIC:
        raise Refused(f"--config {path}: magic should be one of {', '.join(MAGIC)}")
    cases = document.get("test_cases", [])
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise Refused(f"--config {path}: test_cases should be a list of cases")
    if len(cases) > 1:
        raise Refused("Only support one case for kernel.")
    for case in cases:
        _check_case(path, case)
    return document


def _check_case(path: Path, case: dict[str, Any]) -> None:
    parameters = case.get("param_desc", [])
    if not isinstance(parameters, list):
        raise Refused(f"--config {path}: param_desc should be a list")
    for parameter in parameters:
        kind = parameter.get("param_type") if isinstance(parameter, dict) else None
        if kind not in PARAMETERS:
            raise Refused(f"--config {path}: param_type should be one of {', '.join(PARAMETERS)}")


def _document(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST:
            raise Refused(f"--config {path} is larger than 10 MB")
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        raise Refused(f"--config {path} cannot be read: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise Refused(f"--config {path} is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise Refused(f"--config {path} should hold an object")
    return document
