"""What a certificate must be before either side works with it. The texts are those that operators of the stock tools
know, so some speak of a client's certificate where a server's is judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.x509.oid import SignatureAlgorithmOID

from npuscope.monitor.certificates.files import NOT_VERSION_3, BadCertificate

LEAST_RSA_BITS = 3072
UNDATED_LIFE = timedelta(days=365)
"""How long a revocation list holds that does not say so itself."""
STRONG = frozenset({SignatureAlgorithmOID.RSA_WITH_SHA256, SignatureAlgorithmOID.RSA_WITH_SHA512})
MD2 = x509.ObjectIdentifier("1.2.840.113549.1.1.2")
SHA1_OLD = x509.ObjectIdentifier("1.3.14.3.2.29")
WEAK = frozenset({MD2, SHA1_OLD, SignatureAlgorithmOID.RSA_WITH_MD5, SignatureAlgorithmOID.RSA_WITH_SHA1})
NUMBERS = {
    MD2: 7,
    SHA1_OLD: 115,
    SignatureAlgorithmOID.RSA_WITH_MD5: 8,
    SignatureAlgorithmOID.RSA_WITH_SHA1: 65,
    SignatureAlgorithmOID.RSA_WITH_SHA224: 671,
    SignatureAlgorithmOID.RSA_WITH_SHA384: 669,
    SignatureAlgorithmOID.RSASSA_PSS: 912,
    SignatureAlgorithmOID.ECDSA_WITH_SHA1: 416,
    SignatureAlgorithmOID.ECDSA_WITH_SHA224: 793,
    SignatureAlgorithmOID.ECDSA_WITH_SHA256: 794,
    SignatureAlgorithmOID.ECDSA_WITH_SHA384: 795,
    SignatureAlgorithmOID.ECDSA_WITH_SHA512: 796,
    SignatureAlgorithmOID.ED25519: 1087,
    SignatureAlgorithmOID.ED448: 1088,
}
"""OpenSSL's numbers, by which the stock message names an algorithm; 0 stands for any other."""

Extension = TypeVar("Extension", x509.BasicConstraints, x509.KeyUsage)


@dataclass(frozen=True)
class Judge:
    """Judges the certificates of one file; `who` begins the messages: Server, Client or CA."""

    who: str
    now: datetime

    def server(self, leaf: x509.Certificate) -> None:
        """Raises BadCertificate unless a daemon may show this one."""
        _require_version_3(leaf)
        _require_signature(leaf, leaf.signature_algorithm_oid in STRONG)
        key = leaf.public_key()
        if not isinstance(key, RSAPublicKey):
            raise BadCertificate("Certificate has no RSA key")
        if key.key_size < LEAST_RSA_BITS:
            raise BadCertificate(f"RSA key length {key.key_size} bits is less than required {LEAST_RSA_BITS} bits")
        self._require_current(leaf)
        _require_leaf(leaf)

    def client(self, leaf: x509.Certificate) -> None:
        """Raises BadCertificate unless whoever asks a daemon may show this one."""
        _require_version_3(leaf)
        _require_signature(leaf, leaf.signature_algorithm_oid not in WEAK)
        _require_leaf(leaf)
        self._require_current(leaf)

    def authority(self, certificate: x509.Certificate) -> None:
        """Raises BadCertificate unless others may be judged by this one."""
        _require_version_3(certificate)
        _require_signature(certificate, certificate.signature_algorithm_oid not in WEAK)
        constraints, usage = _extension(certificate, x509.BasicConstraints), _extension(certificate, x509.KeyUsage)
        if not constraints or not constraints.ca:
            raise BadCertificate("CA certificate should have CA constraint")
        if not usage or not (usage.key_cert_sign and usage.crl_sign):
            raise BadCertificate("CA certificate must have key usage keyCertSign and cRLSign")
        self._require_current(certificate)

    def revocations(
        self, lists: Sequence[x509.CertificateRevocationList], authorities: Iterable[x509.Certificate]
    ) -> None:
        """Raises BadCertificate when a list is forged or has expired."""
        by_name = {authority.subject: authority for authority in authorities}
        for one in lists:
            signer = by_name.get(one.issuer)  # an authority between comes with the peer's own certificate
            if signer and not one.is_signature_valid(signer.public_key()):  # type: ignore[arg-type]
                raise BadCertificate("CRL is not signed by the CA certificate")
        for one in lists:
            if self.now > (end := expiry(one)):
                raise BadCertificate(f"CRL has expired. Expired at: {_date(end)}")

    def unlisted(self, leaf: x509.Certificate, lists: Sequence[x509.CertificateRevocationList]) -> None:
        """Raises BadCertificate when the certificate is in a list of its issuer."""
        for one in lists:
            if one.issuer == leaf.issuer and one.get_revoked_certificate_by_serial_number(leaf.serial_number):
                raise BadCertificate(f"{self.who} certificate is revoked")

    def _require_current(self, certificate: x509.Certificate) -> None:
        if self.now < (start := certificate.not_valid_before_utc):
            raise BadCertificate(f"{self.who} certificate is not yet valid. Valid from: {_date(start)}")
        if self.now > (end := certificate.not_valid_after_utc):
            raise BadCertificate(f"{self.who} certificate has expired. Expired at: {_date(end)}")


def expiry(revocations: x509.CertificateRevocationList) -> datetime:
    """When a list is to be replaced by a newer one."""
    return revocations.next_update_utc or revocations.last_update_utc + UNDATED_LIFE


def _require_version_3(certificate: x509.Certificate) -> None:
    if certificate.version is not x509.Version.v3:
        raise BadCertificate(NOT_VERSION_3)


def _require_signature(certificate: x509.Certificate, good: bool) -> None:
    if not good:
        number = NUMBERS.get(certificate.signature_algorithm_oid, 0)
        raise BadCertificate(f"Certificate uses insecure signature algorithm: {number}")


def _require_leaf(certificate: x509.Certificate) -> None:
    constraints = _extension(certificate, x509.BasicConstraints)
    if constraints and constraints.ca:
        raise BadCertificate("Client certificate should not have CA constraint")
    if not _extension(certificate, x509.KeyUsage):
        raise BadCertificate("Client certificate must have key usage extension")


def _extension(certificate: x509.Certificate, kind: type[Extension]) -> Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _date(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
