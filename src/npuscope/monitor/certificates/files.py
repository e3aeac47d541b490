"""Certificates, keys and revocation lists, read from files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key

LONGEST_PASSWORD = 255
ENCRYPTED = re.compile(rb"^-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED", re.MULTILINE)
REVOCATIONS = re.compile(rb"^-----BEGIN X509 CRL-----.*?^-----END X509 CRL-----", re.MULTILINE | re.DOTALL)
NOT_VERSION_3 = "Certificate is not X.509v3"

AskPassword = Callable[[], str]


class BadCertificate(ValueError):
    """A certificate, key or revocation list that cannot be used; the message is one line."""


def load_certificates(path: Path, what: str) -> list[x509.Certificate]:
    """The certificates of a PEM file, at least one. Raises BadCertificate."""
    data = _read(path, what)
    try:
        return x509.load_pem_x509_certificates(data)
    except x509.InvalidVersion:
        raise BadCertificate(f"{NOT_VERSION_3} ({path})") from None
    except (ValueError, UnsupportedAlgorithm):
        raise _failed(path, what, "it holds no certificate in PEM form") from None


def load_key(path: Path, what: str, ask_password: AskPassword | None) -> tuple[PrivateKeyTypes, bytes]:
    """The private key of a PEM file and its password, empty where it has none. Raises BadCertificate."""
    data = _read(path, what)
    encrypted = ENCRYPTED.search(data) is not None
    if encrypted and ask_password is None:
        raise _failed(path, what, "it is encrypted, and there is nobody to ask for its password")
    password = ask_password().encode() if encrypted and ask_password else b""
    try:
        if len(password) > LONGEST_PASSWORD:
            raise ValueError
        return load_pem_private_key(data, password if encrypted else None), password
    except (ValueError, TypeError, UnsupportedAlgorithm):
        reason = "the password is wrong, or the file is damaged" if encrypted else "it holds no private key in PEM form"
        raise _failed(path, what, reason) from None


def load_revocations(path: Path) -> list[x509.CertificateRevocationList]:
    """The revocation lists of a PEM file, at least one. Raises BadCertificate."""
    found = REVOCATIONS.findall(_read(path, "CRL"))
    try:
        if not found:
            raise ValueError
        return [x509.load_pem_x509_crl(one) for one in found]
    except (ValueError, UnsupportedAlgorithm):
        raise _failed(path, "CRL", "it holds no revocation list in PEM form") from None


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _failed(path, what, error.strerror or str(error)) from None


def _failed(path: Path, what: str, reason: str) -> BadCertificate:
    return BadCertificate(f"Failed to load {what} ({path}): {reason}")
