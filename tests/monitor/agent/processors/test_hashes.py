"""The hash of texts, and what is made of it: values of the vendor's own implementation (monitor formats, 4.6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuscope.monitor.agent.processors.host import host_number
from npuscope.monitor.agent.processors.text_hash import group_digits, hardware_hash, text_hash


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 416611827809),
        ("abc", 363002047600882),
        ("hccl_world_group", 7415574198778220483),
        ("group_name_0", 5862276093215481612),
    ],
)
def test_known_values(text: str, value: int) -> None:
    assert text_hash(text) == value


def test_bytes_beyond_ascii_count_as_negative() -> None:
    # U+00E9 is C3 A9: -61 and -87. 29 * -61 - 87 = -1856 and 131 * -61 - 87 = -8078, modulo 2^32.
    assert text_hash("é") == (2**32 - 1856) << 32 | 2**32 - 8078


def test_the_digits_of_a_group() -> None:
    assert group_digits("hccl_world_group") == "483"
    assert group_digits("") == "0"


def test_addresses_that_a_maker_gave_count_first() -> None:
    given, made_up = bytes.fromhex("001122334455"), bytes.fromhex("021122334455")
    other = bytes.fromhex("00aabbccddee")
    assert hardware_hash([other, made_up, given]) == str(text_hash("001122334455-00aabbccddee"))
    assert hardware_hash([made_up, b""]) == str(text_hash("021122334455"))
    assert hardware_hash([]) == ""


def test_the_loopback_is_no_card(tmp_path: Path) -> None:
    for name, flags, address in (("lo", "0x9", "00:00:00:00:00:00"), ("eth0", "0x1003", "00:11:22:33:44:55")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "flags").write_text(flags + "\n")
        (tmp_path / name / "address").write_text(address + "\n")
    assert host_number(tmp_path) == str(text_hash("001122334455"))
    assert host_number(tmp_path / "nothing") == ""
