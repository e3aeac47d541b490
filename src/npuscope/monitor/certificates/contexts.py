"""What the TLS contexts of both sides have in common: each shows a certificate and demands one of the other, and a
revocation list, where there is one, counts for both."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding

from npuscope.monitor.certificates.files import AskPassword, BadCertificate, load_certificates, load_key

CA, CRL = "ca.crt", "ca.crl"


@dataclass(frozen=True)
class Trust:
    """Whose certificates are good: those of the authorities, less what is in the revocation lists of a file."""

    authorities: Sequence[x509.Certificate]
    path: Path
    lists: Sequence[x509.CertificateRevocationList] = ()


@dataclass(frozen=True)
class Own:
    """A side's own certificate, with those that lead from it to the authority, and the file of its key."""

    who: str
    path: Path
    key_path: Path
    chain: Sequence[x509.Certificate]

    @classmethod
    def load(cls, folder: Path, who: str) -> Own:
        """The certificate of `who`, server or client. Raises BadCertificate."""
        path = folder / f"{who}.crt"
        return cls(who, path, folder / f"{who}.key", load_certificates(path, f"{who} certificate"))

    @property
    def leaf(self) -> x509.Certificate:
        """The one that the other side is to believe."""
        return self.chain[0]


@contextlib.contextmanager
def about(path: Path) -> Iterator[None]:
    """Has what is found fault with name the file."""
    try:
        yield
    except BadCertificate as error:
        raise BadCertificate(f"{error} ({path})") from None
    except (ValueError, UnsupportedAlgorithm) as error:  # what the library makes of oddities
        raise BadCertificate(f"Certificate cannot be read ({path}): {error}") from None


def build(protocol: int, trust: Trust, own: Own, ask_password: AskPassword | None) -> ssl.SSLContext:
    """A context that shows `own` and believes nobody but whom `trust` names. Raises BadCertificate."""
    context = ssl.SSLContext(protocol)
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        for authority in trust.authorities:
            context.load_verify_locations(cadata=authority.public_bytes(Encoding.DER))
        if trust.lists:
            context.load_verify_locations(cafile=trust.path)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    except OSError as error:
        raise BadCertificate(f"Failed to load CA certificate ({trust.path.parent / CA}): {error}") from None
    _show(context, own, ask_password)
    return context


def _show(context: ssl.SSLContext, own: Own, ask_password: AskPassword | None) -> None:
    what = f"{own.who} private key"
    key, password = load_key(own.key_path, what, ask_password)
    if key.public_key() != own.leaf.public_key():
        raise BadCertificate(f"Failed to load {what} ({own.key_path}): it does not belong to {own.path}")
    try:
        context.load_cert_chain(own.path, own.key_path, password)
    except OSError as error:  # such as a key that OpenSSL finds too short
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        raise BadCertificate(f"Failed to load {own.who} certificate ({own.path}): {reason}") from None
