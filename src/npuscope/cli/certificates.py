"""Certificates for commands: the folder that a flag names, and asking a person for a password."""

from __future__ import annotations

import getpass
import warnings
from functools import partial
from typing import TYPE_CHECKING

from npuscope.cli.output import complain
from npuscope.errors import EXIT_USAGE, UserError
from npuscope.monitor.certificates.folder import NO_CERTS, require_folder

if TYPE_CHECKING:
    import ssl

    from npuscope.monitor.certificates.daemon_side import CertificateFolder

EXIT_NO_FOLDER = 1
EXIT_INTERRUPTED = 130
NO_TERMINAL = "the private key is encrypted, and there is no terminal to ask for its password at"
PROMPT = "Please enter the certificate password: "


def daemon_certificates(certs_dir: str) -> CertificateFolder | None:
    """Where a daemon's certificates are, None for none. Raises UserError when there is no such folder."""
    if certs_dir == NO_CERTS:
        return None
    from npuscope.monitor.certificates.daemon_side import CertificateFolder

    return CertificateFolder(require_folder(certs_dir, "--certs-dir", EXIT_USAGE, complain), ask_password)


def client_certificates(certs_dir: str, *, quiet: bool) -> ssl.SSLContext | None:
    """How to speak with a daemon, None for without TLS; what is read is told unless `quiet`. Raises UserError."""
    if certs_dir == NO_CERTS:
        return None
    from npuscope.monitor.certificates.client_side import EXIT_NO_TLS, client_context

    folder = require_folder(certs_dir, "--certs_dir", EXIT_NO_FOLDER, complain)
    ask = partial(ask_password, EXIT_NO_TLS)
    if quiet:
        return client_context(folder, ask)
    print("Running in certificate mode")
    return client_context(folder, ask, print)


def ask_password(exit_code: int = EXIT_USAGE) -> str:
    """What a person types, unseen. Raises UserError when there is no terminal, or no answer."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass(PROMPT)
    except getpass.GetPassWarning:
        raise UserError(NO_TERMINAL, exit_code=exit_code) from None
    except (EOFError, KeyboardInterrupt):
        raise UserError("no password was given", exit_code=EXIT_INTERRUPTED) from None
