"""TLS for whoever asks a daemon."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from npuscope.errors import UserError
from npuscope.monitor.certificates.contexts import CA, CRL, Own, Trust, about, build
from npuscope.monitor.certificates.files import AskPassword, BadCertificate, load_certificates, load_revocations
from npuscope.monitor.certificates.rules import Judge

EXIT_NO_TLS = 101
KEY_USAGE = "Found Key Usage extension"
Tell = Callable[[str], None]


def client_context(
    folder: Path, ask_password: AskPassword | None = None, tell: Tell = lambda _: None
) -> ssl.SSLContext:
    """How to speak TLS with a daemon: with `client.crt`, `client.key`, `ca.crt` and, if it is there, `ca.crl` of the
    folder. Give it to `wrap_socket` or to asyncio together with the daemon's name, which its certificate must bear.

    `ask_password` is called when the key is encrypted; `tell` hears which file is read. Raises UserError when a file is
    of no use: the daemon would turn it down, or could not be believed.
    """
    try:
        trust = _authorities(folder, tell)
        own = _own(folder, tell)
        trust = _revocations(trust, own, tell)
        tell(f"Loading client key from: {own.key_path}")
        context = build(ssl.PROTOCOL_TLS_CLIENT, trust, own, ask_password)
    except BadCertificate as error:
        raise UserError(str(error), exit_code=EXIT_NO_TLS) from None
    context.hostname_checks_common_name = False
    return context


def _authorities(folder: Path, tell: Tell) -> Trust:
    path = folder / CA
    tell(f"Loading CA cert from: {path}")
    authorities = load_certificates(path, "CA certificate")
    with about(path):
        for authority in authorities:
            Judge("CA", datetime.now(UTC)).authority(authority)
            tell(KEY_USAGE)
    return Trust(authorities, folder / CRL)


def _own(folder: Path, tell: Tell) -> Own:
    tell(f"Loading client cert from: {folder / 'client.crt'}")
    own = Own.load(folder, "client")
    with about(own.path):
        Judge("Client", datetime.now(UTC)).client(own.leaf)
    tell(KEY_USAGE)
    return own


def _revocations(trust: Trust, own: Own, tell: Tell) -> Trust:
    if not trust.path.exists():
        tell(f"CRL file does not exist: {trust.path}")
        return trust
    tell(f"Checking CRL file: {trust.path}")
    trust = replace(trust, lists=load_revocations(trust.path))
    judge = Judge("Client", datetime.now(UTC))
    with about(trust.path):
        judge.revocations(trust.lists, [*trust.authorities, *own.chain])
    with about(own.path):
        judge.unlisted(own.leaf, trust.lists)
    return trust
