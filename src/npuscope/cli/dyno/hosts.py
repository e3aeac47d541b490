"""The hosts of `--hosts` and `--hostfile`."""

from __future__ import annotations

from npuscope.cli.dyno.usage import Usage
from npuscope.cli.lines import read_lines
from npuscope.monitor.endpoint import Endpoint, read_endpoints


def read_hosts(listed: str | None, path: str | None, port: int) -> tuple[Endpoint, ...]:
    """Every host once, in the order in which they come. Raises Usage for what is no host, UserError for the file."""
    if listed is None and path is None:
        return ()
    lines = (listed or "").split(",")
    if path is not None:
        lines += read_lines(path, "the hosts in")
    try:
        found = read_endpoints(lines, port)
    except ValueError as error:
        raise Usage(str(error)) from None
    if not found:
        raise Usage("no host is named by --hosts and --hostfile")
    return found
