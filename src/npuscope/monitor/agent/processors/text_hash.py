"""The hash by which the vendor's tools know a host and a group of ranks."""

from __future__ import annotations

from collections.abc import Iterable

FACTORS = (29, 131)
MASK = 2**32 - 1
DIGITS = 3
"""Of a group's hash, the last ones, that stand in the name of a collective."""


def text_hash(text: str) -> int:
    """Two polynomials over the bytes of UTF-8, modulo 2^32, one above the other (monitor formats, 4.6). Bytes from
    0x80 on count as negative, as on x86-64; on aarch64 the vendor's differs for such texts."""
    high = low = 0
    for byte in text.encode("utf-8", "replace"):
        signed = byte - 256 if byte >= 128 else byte
        high = high * FACTORS[0] + signed & MASK
        low = low * FACTORS[1] + signed & MASK
    return high << 32 | low


def group_digits(name: str) -> str:
    """The digits of a group in the names of its collectives."""
    return str(text_hash(name))[-DIGITS:]


def hardware_hash(addresses: Iterable[bytes]) -> str:
    """A host's number from the addresses of its network cards, decimal; empty without any. Addresses that a maker
    gave count before those that were made up here (bit 1 of the first byte)."""
    known = [address for address in addresses if address]
    given = [address for address in known if not address[0] & 2]
    words = sorted(address.hex() for address in given or known)
    return str(text_hash("-".join(words))) if words else ""
