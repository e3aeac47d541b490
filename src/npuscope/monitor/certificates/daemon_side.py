"""TLS for the daemon, which runs for longer than a certificate or a revocation list may hold."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from npuscope.errors import UserError
from npuscope.monitor.certificates.contexts import CA, CRL, Own, Trust, about, build
from npuscope.monitor.certificates.files import AskPassword, BadCertificate, load_certificates, load_revocations
from npuscope.monitor.certificates.rules import Judge

FILES = ("server.crt", "server.key", CA, CRL)
Log = Callable[[str], None]
Mark = tuple[int, int, int] | None


@dataclass(frozen=True)
class CertificateFolder:
    """Where `server.crt`, `server.key`, `ca.crt` and perhaps `ca.crl` lie, and whom to ask for the key's password."""

    path: Path
    ask_password: AskPassword | None = None


class DaemonCertificates:
    """The daemon's TLS context, made anew when a file in the folder has changed."""

    def __init__(self, folder: CertificateFolder, log: Log) -> None:
        """Raises UserError when a file is of no use; a faulty revocation list is warned about only."""
        self._folder = folder
        self._password: str | None = None
        self._marks = self._look()
        try:
            self._context = server_context(folder.path, self._ask if folder.ask_password else None, log, lenient=True)
        except BadCertificate as error:
            raise UserError(str(error)) from None

    def context(self, log: Log) -> ssl.SSLContext:
        """The context for the next connection. New files that are of no use change nothing but the log."""
        marks = self._look()
        if marks != self._marks:
            self._marks = marks
            ask = self._remember if self._password is not None else None
            try:
                self._context = server_context(self._folder.path, ask, log, lenient=False)
            except BadCertificate as error:
                log(f"warning: {error}; the certificates that were read before stay in use")
            else:
                log(f"the certificates in {self._folder.path} have changed and are in use")
        return self._context

    def _ask(self) -> str:
        assert self._folder.ask_password
        self._password = self._folder.ask_password()
        return self._password

    def _remember(self) -> str:
        return self._password or ""

    def _look(self) -> list[Mark]:
        return [_mark(self._folder.path / name) for name in FILES]


def _mark(path: Path) -> Mark:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def server_context(folder: Path, ask_password: AskPassword | None, warn: Log, *, lenient: bool) -> ssl.SSLContext:
    """How a daemon speaks TLS. Raises BadCertificate; `lenient`, a revocation list that cannot be read is left out."""
    own = Own.load(folder, "server")
    judge = Judge("Server", datetime.now(UTC))
    with about(own.path):
        judge.server(own.leaf)
    trust = _revocations(_authorities(folder, warn), warn, lenient)
    with about(own.path):
        judge.unlisted(own.leaf, trust.lists)
    try:
        with about(trust.path):
            judge.revocations(trust.lists, [*trust.authorities, *own.chain])
    except BadCertificate as error:
        warn(f"warning: {error}; everybody is turned away until there is a new one")
    context = build(ssl.PROTOCOL_TLS_SERVER, trust, own, ask_password)
    # One connection, one request: nobody resumes, so nobody gets in on what was true an hour ago.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    return context


def _authorities(folder: Path, warn: Log) -> Trust:
    path = folder / CA
    authorities = load_certificates(path, "CA certificate")
    try:
        with about(path):
            for authority in authorities:
                Judge("CA", datetime.now(UTC)).authority(authority)
    except BadCertificate as error:
        warn(f"warning: {error}")
    return Trust(authorities, folder / CRL)


def _revocations(trust: Trust, warn: Log, lenient: bool) -> Trust:
    if not trust.path.exists():
        return trust
    try:
        return replace(trust, lists=load_revocations(trust.path))
    except BadCertificate as error:
        if not lenient:
            raise
        warn(f"warning: {error}; nobody counts as revoked")
        return trust
