"""Lists of hosts, from a flag and from a file."""

from __future__ import annotations

import sys

from npuscope.cli.dyno.usage import Usage
from npuscope.errors import UserError
from npuscope.monitor.fanout import Endpoint


def read_hosts(listed: str | None, path: str | None, port: int) -> tuple[Endpoint, ...]:
    """Every host once, in the order in which they come. Raises Usage for what is no host, UserError for the file."""
    if listed is None and path is None:
        return ()
    words = (listed or "").split(",") if listed is not None else []
    if path is not None:
        words += [line.partition("#")[0] for line in _lines(path)]
    found = dict.fromkeys(endpoint(word.strip(), port) for word in words if word.strip())
    if not found:
        raise Usage("no host is named by --hosts and --hostfile")
    return tuple(found)


def endpoint(word: str, port: int) -> Endpoint:
    """`host`, `host:port`, `address`, `[address]:port`."""
    host, number = word, ""
    if word.startswith("["):
        host, bracket, number = word[1:].partition("]")
        if not bracket or (number and not number.startswith(":")):
            raise Usage(f"not a host: '{word}'")
        number = number[1:]
    elif word.count(":") == 1:
        host, _, number = word.partition(":")
    if not host or any(character.isspace() for character in host):
        raise Usage(f"not a host: '{word}'")
    if not number:
        return Endpoint(host, port)
    if not (number.isascii() and number.isdigit() and 0 < int(number[:6]) < 65536):
        raise Usage(f"not a port: '{number}' in '{word}'")
    return Endpoint(host, int(number))


def _lines(path: str) -> list[str]:
    try:
        if path == "-":
            return sys.stdin.read().splitlines()
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the hosts in {path}: {getattr(error, 'strerror', None) or error}") from None
