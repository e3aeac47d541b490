"""Certificates for tests, good ones and such as nobody should believe. All share one key, for a key takes long to make."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.x509.oid import NameOID

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
HOSTS = ("localhost", "127.0.0.1", "::1")
SHA256_WITH_RSA, SHA1_WITH_RSA = bytes.fromhex("2a864886f70d01010b"), bytes.fromhex("2a864886f70d010105")
SIGNER = {"key_cert_sign": True, "crl_sign": True}


def rsa(bits: int = 3072, number: int = 0) -> RSAPrivateKey:
    """A key; another number is another key."""
    return _rsa(bits, number)


@cache
def _rsa(bits: int, number: int) -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=bits)


def name(text: str) -> x509.Name:
    """A name of one part."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def usage(**allowed: bool) -> x509.KeyUsage:
    """Key usage: a signature, unless something else is named."""
    every = (
        "digital_signature content_commitment key_encipherment data_encipherment key_agreement key_cert_sign crl_sign "
        "encipher_only decipher_only"
    )
    chosen = allowed or {"digital_signature": True}
    return x509.KeyUsage(**{one: chosen.get(one, False) for one in every.split()})


@dataclass(frozen=True)
class Wanted:
    """A certificate to be made."""

    subject: str
    issuer: str = "CA"
    hosts: tuple[str, ...] = ()
    starts: datetime = NOW - DAY
    ends: datetime = NOW + 30 * DAY
    ca: bool = False
    key_usage: x509.KeyUsage | None = field(default_factory=usage)
    bits: int = 3072
    key_number: int = 0
    signer_number: int = 0
    algorithm: hashes.HashAlgorithm = field(default_factory=hashes.SHA256)
    sha1: bool = False
    serial: int = 7

    @property
    def key(self) -> RSAPrivateKey:
        """Its private key."""
        return rsa(self.bits, self.key_number)

    def made(self) -> x509.Certificate:
        """The certificate."""
        builder = (
            x509.CertificateBuilder()
            .subject_name(name(self.subject))
            .issuer_name(name(self.issuer))
            .public_key(self.key.public_key())
            .serial_number(self.serial)
            .not_valid_before(self.starts)
            .not_valid_after(self.ends)
            .add_extension(x509.BasicConstraints(self.ca, None), critical=True)
        )
        if self.key_usage:
            builder = builder.add_extension(self.key_usage, critical=True)
        if self.hosts:
            alternatives = x509.SubjectAlternativeName([_general(host) for host in self.hosts])
            builder = builder.add_extension(alternatives, critical=False)
        made = builder.sign(rsa(number=self.signer_number), self.algorithm)
        if not self.sha1:
            return made
        # The library does not sign so any more; whoever looks at the label first does not need a signature that holds.
        encoded = made.public_bytes(serialization.Encoding.DER)
        assert encoded.count(SHA256_WITH_RSA) == 2
        return x509.load_der_x509_certificate(encoded.replace(SHA256_WITH_RSA, SHA1_WITH_RSA))

    def write(self, folder: Path, stem: str, password: str = "") -> None:
        """The files STEM.crt and STEM.key."""
        (folder / f"{stem}.crt").write_bytes(pem(self.made()))
        (folder / f"{stem}.key").write_bytes(key_pem(self.key, password))


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


CA = Wanted("CA", ca=True, key_usage=usage(**SIGNER), serial=1)
SERVER = Wanted("server", hosts=HOSTS, serial=2)
CLIENT = Wanted("client", serial=3)


def pem(certificate: x509.Certificate) -> bytes:
    """As it stands in a file."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: RSAPrivateKey, password: str = "") -> bytes:
    """A key as it stands in a file, encrypted where there is a password."""
    lock = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)


def revocations(
    serials: Sequence[int], ends: datetime = NOW + 30 * DAY, signer_number: int = 0, starts: datetime = NOW - 2 * DAY
) -> bytes:
    """The file of a list that revokes certificates of CA."""
    builder = x509.CertificateRevocationListBuilder().issuer_name(name("CA")).last_update(starts).next_update(ends)
    for serial in serials:
        one = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(starts).build()
        builder = builder.add_revoked_certificate(one)
    return builder.sign(rsa(number=signer_number), hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def fill(folder: Path, *, ca: Wanted = CA, server: Wanted = SERVER, client: Wanted = CLIENT) -> Path:
    """A folder with all that both sides need, but for a revocation list."""
    folder.mkdir(exist_ok=True)
    (folder / "ca.crt").write_bytes(pem(ca.made()))
    server.write(folder, "server")
    client.write(folder, "client")
    return folder
