"""The JSON files that options name (opprof.md 1.9)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from npuscope.cli.msopprof.grammar import Refused

LARGEST = 10 << 20
"""Bytes of a JSON file."""

MOST_LABELS = 1024
MAGIC = ("RT_DEV_BINARY_MAGIC_ELF", "RT_DEV_BINARY_MAGIC_ELF_AIVEC", "RT_DEV_BINARY_MAGIC_ELF_AICUBE")
MODES = ("onboard", "ca")
PARAMETERS = ("input", "output", "workspace", "tiling", "fftsAddr")


@dataclass(frozen=True, slots=True)
class Labels:
    """How the stretches between two time stamps of a kernel are called. `shown` is false where they are not wanted;
    `names` maps a description number to a name."""

    shown: bool = True
    names: dict[int, str] = field(default_factory=dict)


def read_config(path: Path) -> dict[str, Any]:
    """The description of one kernel object and how to run it. Raises Refused."""
    document = _document(path, "--config")
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


def read_labels(path: Path) -> Labels:
    """The names of ``--custom-input``. Raises Refused."""
    document = _document(path, "--custom-input")
    settings = document.get("mc2_trace_config")
    if not isinstance(settings, dict):
        raise Refused(f"--custom-input {path}: mc2_trace_config should be an object")
    shown, names = settings.get("enable_block_time", True), settings.get("descid_display", {})
    if not isinstance(shown, bool):
        raise Refused(f"--custom-input {path}: enable_block_time should be true or false")
    if not isinstance(names, dict):
        raise Refused(f"--custom-input {path}: descid_display should be an object")
    if len(names) > MOST_LABELS:
        raise Refused(
            f"--custom-input {path}: descid_display has {len(names)} entries, at most {MOST_LABELS} can be used"
        )
    return Labels(shown, dict(_label(path, key, name) for key, name in names.items()))


def _label(path: Path, key: str, name: Any) -> tuple[int, str]:
    if not re.fullmatch(r"\d{1,19}|0[xX][0-9a-fA-F]{1,16}", key, re.ASCII):
        raise Refused(f"--custom-input {path}: {key[:40]!r} is no description id")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9\-_ ]{1,64}", name):
        raise Refused(f"--custom-input {path}: the name of {key} should have 1 to 64 of A-Z a-z 0-9 - _ and space")
    return int(key, 16 if key[:2].lower() == "0x" else 10), name


def _document(path: Path, option: str) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST:
            raise Refused(f"{option} {path} is larger than 10 MB")
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        raise Refused(f"{option} {path} cannot be read: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise Refused(f"{option} {path} is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise Refused(f"{option} {path} should hold an object")
    return document
