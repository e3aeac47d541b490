"""Which certificates either side works with, and what it says of the others."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from certificate_maker import (
    CA,
    CLIENT,
    DAY,
    NOW,
    SERVER,
    SIGNER,
    Wanted,
    fill,
    key_pem,
    pem,
    revocations,
    rsa,
    usage,
)
from cryptography.hazmat.primitives import hashes

from npuscope.errors import UserError
from npuscope.monitor.certificates.client_side import client_context
from npuscope.monitor.certificates.daemon_side import CertificateFolder, DaemonCertificates
from npuscope.monitor.certificates.folder import require_folder
from npuscope.monitor.certificates.rules import NUMBERS, expiry

VERSION_1 = """-----BEGIN CERTIFICATE-----
MIIBFzCBvwIUStZ8XcU/cWN5gDf64/DRvx59GBUwCgYIKoZIzj0EAwIwDjEMMAoG
A1UEAwwDb2xkMCAXDTI2MTEzMDExMTAwN1oYDzIxMjYxMTA2MTExMDA3WjAOMQww
CgYDVQQDDANvbGQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASejbl/9G6VIrB5
V4LlmfgMDupRdf63/lezSeYaqfl3DwT24YSz7qZAS+TVvzkSTjZGBPQyEqfPXYVL
VRai7K7tMAoGCCqGSM49BAMCA0cAMEQCIFaNAWMPuGjEOEto33QhXe3YiaxhQMIH
+FWnJVgL+wtzAiAjaxm3vM7e2l/v6oCZ3ncG/64l9ZjgAq9rrUY3nysQyw==
-----END CERTIFICATE-----
"""
"""Made with the openssl command, which made the first version where it was not told otherwise."""
FUTURE = {"starts": NOW + DAY, "ends": NOW + 2 * DAY}
PAST = {"starts": NOW - 9 * DAY, "ends": NOW - DAY}
TOMORROW = (NOW + DAY).strftime("%Y-%m-%d %H:%M:%S UTC")
YESTERDAY = (NOW - DAY).strftime("%Y-%m-%d %H:%M:%S UTC")


def daemon_side(folder: Path, log: list[str] | None = None, ask: Callable[[], str] | None = None) -> DaemonCertificates:
    return DaemonCertificates(CertificateFolder(folder, ask), (log if log is not None else []).append)


@pytest.mark.parametrize(
    ("server", "text"),
    [
        (replace(SERVER, sha1=True), "Certificate uses insecure signature algorithm: 65"),
        (replace(SERVER, algorithm=hashes.SHA384()), "Certificate uses insecure signature algorithm: 669"),
        (replace(SERVER, bits=2048), "RSA key length 2048 bits is less than required 3072 bits"),
        (replace(SERVER, **FUTURE), f"Server certificate is not yet valid. Valid from: {TOMORROW}"),
        (replace(SERVER, **PAST), f"Server certificate has expired. Expired at: {YESTERDAY}"),
        (replace(SERVER, ca=True), "Client certificate should not have CA constraint"),
        (replace(SERVER, key_usage=None), "Client certificate must have key usage extension"),
    ],
    ids=["sha1", "sha384", "rsa2048", "future", "past", "ca", "no key usage"],
)
def test_a_daemon_does_not_start_with_this(tmp_path: Path, server: Wanted, text: str) -> None:
    fill(tmp_path, server=server)
    with pytest.raises(UserError) as raised:
        daemon_side(tmp_path)
    assert (str(raised.value), raised.value.exit_code) == (f"{text} ({tmp_path}/server.crt)", 2)


@pytest.mark.parametrize(
    ("client", "text"),
    [
        (replace(CLIENT, sha1=True), "Certificate uses insecure signature algorithm: 65"),
        (replace(CLIENT, **FUTURE), f"Client certificate is not yet valid. Valid from: {TOMORROW}"),
        (replace(CLIENT, **PAST), f"Client certificate has expired. Expired at: {YESTERDAY}"),
        (replace(CLIENT, ca=True), "Client certificate should not have CA constraint"),
        (replace(CLIENT, key_usage=None), "Client certificate must have key usage extension"),
    ],
    ids=["sha1", "future", "past", "ca", "no key usage"],
)
def test_nobody_asks_with_this(tmp_path: Path, client: Wanted, text: str) -> None:
    fill(tmp_path, client=client)
    with pytest.raises(UserError) as raised:
        client_context(tmp_path)
    assert (str(raised.value), raised.value.exit_code) == (f"{text} ({tmp_path}/client.crt)", 101)


@pytest.mark.parametrize(
    ("authority", "text"),
    [
        (replace(CA, sha1=True), "Certificate uses insecure signature algorithm: 65"),
        (replace(CA, ca=False), "CA certificate should have CA constraint"),
        (replace(CA, key_usage=None), "CA certificate must have key usage keyCertSign and cRLSign"),
        (
            replace(CA, key_usage=usage(key_cert_sign=True)),
            "CA certificate must have key usage keyCertSign and cRLSign",
        ),
        (replace(CA, **FUTURE), f"CA certificate is not yet valid. Valid from: {TOMORROW}"),
        (replace(CA, **PAST), f"CA certificate has expired. Expired at: {YESTERDAY}"),
    ],
    ids=["sha1", "no ca", "no key usage", "signs no lists", "future", "past"],
)
def test_an_authority_that_is_none_ends_the_command_and_is_logged_by_the_daemon(
    tmp_path: Path, authority: Wanted, text: str
) -> None:
    fill(tmp_path, ca=authority)
    with pytest.raises(UserError) as raised:
        client_context(tmp_path)
    assert (str(raised.value), raised.value.exit_code) == (f"{text} ({tmp_path}/ca.crt)", 101)
    log: list[str] = []
    daemon_side(tmp_path, log)
    assert log == [f"warning: {text} ({tmp_path}/ca.crt)"]


def test_what_is_good_enough(tmp_path: Path) -> None:
    strong = replace(SERVER, algorithm=hashes.SHA512())
    fill(tmp_path, server=strong, client=replace(CLIENT, algorithm=hashes.SHA384(), bits=2048))
    (tmp_path / "ca.crl").write_bytes(revocations([99]))
    log: list[str] = []
    for context in (daemon_side(tmp_path, log).context(log.append), client_context(tmp_path)):
        assert context.verify_mode is ssl.CERT_REQUIRED and context.minimum_version is ssl.TLSVersion.TLSv1_2
        assert context.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF
    assert log == []
    context = client_context(tmp_path)
    assert context.check_hostname and not context.hostname_checks_common_name


def test_what_is_read_is_told_in_order(tmp_path: Path) -> None:
    fill(tmp_path)
    told: list[str] = []
    client_context(tmp_path, None, told.append)
    assert told == [
        f"Loading CA cert from: {tmp_path}/ca.crt",
        "Found Key Usage extension",
        f"Loading client cert from: {tmp_path}/client.crt",
        "Found Key Usage extension",
        f"CRL file does not exist: {tmp_path}/ca.crl",
        f"Loading client key from: {tmp_path}/client.key",
    ]
    (tmp_path / "ca.crl").write_bytes(revocations([]))
    client_context(tmp_path, None, told.append)
    assert told[-2] == f"Checking CRL file: {tmp_path}/ca.crl"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("server.crt", "Failed to load server certificate"),
        ("server.key", "Failed to load server private key"),
        ("ca.crt", "Failed to load CA certificate"),
        ("client.crt", "Failed to load client certificate"),
        ("client.key", "Failed to load client private key"),
    ],
)
@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"])
def test_files_that_cannot_be_read(tmp_path: Path, file: str, text: str, content: bytes | None) -> None:
    fill(tmp_path)
    (tmp_path / file).unlink()
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(UserError, match=f"^{text} ") as raised:
        client_context(tmp_path) if file.startswith("client") else daemon_side(tmp_path)
    assert f"({tmp_path / file}): " in str(raised.value) and "\n" not in str(raised.value)
    assert ("No such file" in str(raised.value)) == (content is None)


@pytest.mark.parametrize("who", ["server", "client"])
def test_the_first_version_and_a_key_of_another(tmp_path: Path, who: str) -> None:
    fill(tmp_path)
    side = client_context if who == "client" else daemon_side
    (tmp_path / f"{who}.key").write_bytes(key_pem(rsa(number=1)))
    with pytest.raises(UserError, match=f"{who} private key .* does not belong to"):
        side(tmp_path)
    (tmp_path / f"{who}.crt").write_text(VERSION_1)
    with pytest.raises(UserError, match=r"^Certificate is not X.509v3 \("):
        side(tmp_path)


def test_a_key_that_openssl_finds_too_short_is_one_line(tmp_path: Path) -> None:
    fill(tmp_path, client=replace(CLIENT, bits=1024))
    with pytest.raises(UserError, match="^Failed to load client certificate .*(?i:key.too.small)"):
        client_context(tmp_path)


@pytest.mark.parametrize("who", ["server", "client"])
def test_a_password(tmp_path: Path, who: str) -> None:
    fill(tmp_path, server=SERVER, client=CLIENT)
    (tmp_path / f"{who}.key").write_bytes(key_pem(rsa(), "open sesame"))

    def side(ask: Callable[[], str] | None) -> object:
        return client_context(tmp_path, ask) if who == "client" else daemon_side(tmp_path, ask=ask)

    assert side(lambda: "open sesame")
    for wrong in ("", "shut", "x" * 256):
        with pytest.raises(UserError, match=f"^Failed to load {who} private key .*the password is wrong"):
            side(lambda answer=wrong: answer)
    with pytest.raises(UserError, match="encrypted, and there is nobody to ask"):
        side(None)


def test_a_daemon_reads_a_changed_encrypted_key_without_asking_again(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "server.key").write_bytes(key_pem(rsa(), "open sesame"))
    asked: list[str] = []
    log: list[str] = []
    certificates = daemon_side(tmp_path, log, lambda: asked.append("once") or "open sesame")
    first = certificates.context(log.append)
    assert certificates.context(log.append) is first and log == []
    (tmp_path / "ca.crl").write_bytes(revocations([CLIENT.serial]))
    second = certificates.context(log.append)
    assert second is not first and second.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF
    assert asked == ["once"] and log == [f"the certificates in {tmp_path} have changed and are in use"]


def test_changed_files_that_are_of_no_use_change_nothing(tmp_path: Path) -> None:
    fill(tmp_path)
    log: list[str] = []
    certificates = daemon_side(tmp_path, log)
    first = certificates.context(log.append)
    for file, text in (("ca.crl", "Failed to load CRL"), ("server.crt", "Failed to load server certificate")):
        (tmp_path / file).write_bytes(b"half of")
        assert certificates.context(log.append) is first
        assert log[-1].startswith(f"warning: {text}") and log[-1].endswith("read before stay in use")
    count = len(log)
    certificates.context(log.append)
    assert len(log) == count  # once is enough


def test_an_own_certificate_that_is_revoked(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "ca.crl").write_bytes(revocations([SERVER.serial]))
    assert client_context(tmp_path)
    with pytest.raises(UserError, match=r"^Server certificate is revoked \(.*server.crt\)$"):
        daemon_side(tmp_path)
    (tmp_path / "ca.crl").write_bytes(revocations([99]) + revocations([CLIENT.serial]))
    assert daemon_side(tmp_path)
    with pytest.raises(UserError, match=r"^Client certificate is revoked \(.*client.crt\)$"):
        client_context(tmp_path)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (lambda: b"nonsense", "Failed to load CRL"),
        (lambda: revocations([], NOW - DAY), f"CRL has expired. Expired at: {YESTERDAY}"),
        (lambda: revocations([], signer_number=1), "CRL is not signed by the CA certificate"),
    ],
    ids=["unreadable", "expired", "forged"],
)
def test_a_list_that_is_of_no_use_ends_the_command_and_is_logged_by_the_daemon(
    tmp_path: Path, content: Callable[[], bytes], text: str
) -> None:
    fill(tmp_path)
    (tmp_path / "ca.crl").write_bytes(content())
    with pytest.raises(UserError) as raised:
        client_context(tmp_path)
    assert str(raised.value).startswith(text) and f"({tmp_path}/ca.crl)" in str(raised.value)
    assert raised.value.exit_code == 101
    log: list[str] = []
    daemon_side(tmp_path, log)
    assert len(log) == 1 and log[0].startswith(f"warning: {text}")


def test_a_list_without_an_end_holds_for_a_year() -> None:
    undated = SimpleNamespace(next_update_utc=None, last_update_utc=NOW)
    assert expiry(undated) == NOW + timedelta(days=365)  # type: ignore[arg-type]


def test_several_authorities(tmp_path: Path) -> None:
    fill(tmp_path)
    other = replace(CA, subject="other", issuer="other", key_number=1, signer_number=1)
    (tmp_path / "ca.crt").write_bytes(pem(other.made()) + pem(CA.made()))
    assert {one["serialNumber"] for one in client_context(tmp_path).get_ca_certs()} == {"01"}
    assert len(client_context(tmp_path).get_ca_certs()) == 2
    weak = replace(other, key_usage=usage(**SIGNER, digital_signature=True), **PAST)
    (tmp_path / "ca.crt").write_bytes(pem(CA.made()) + pem(weak.made()))
    with pytest.raises(UserError, match="CA certificate has expired"):
        client_context(tmp_path)


def test_the_numbers_of_algorithms_are_those_of_openssl() -> None:
    lookup = pytest.importorskip("_ssl").txt2obj
    assert {oid.dotted_string: number for oid, number in NUMBERS.items()} == {
        oid.dotted_string: lookup(oid.dotted_string)[0] for oid in NUMBERS
    }


def test_odd_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def fatal(text: str) -> str:
        told.clear()
        with pytest.raises(UserError, match="^--certs-dir must be a valid directory!$") as raised:
            require_folder(text, "--certs-dir", 1, told.append)
        assert raised.value.exit_code == 1 and len(told) == 1
        return told[0]

    file = tmp_path / "file"
    file.touch()
    assert fatal("") == "ERROR: The path is empty."
    assert fatal("/" + "x" * 4096) == "ERROR: The length of path is too long, max allowed: 4096"
    assert fatal(f"{tmp_path}/none") == f"ERROR: The path does not exist: {tmp_path}/none"
    assert fatal(f"{tmp_path}/a\nb\0") == f"ERROR: The path does not exist: {tmp_path}/a\\nb\\x00"
    assert fatal(str(file)) == f"ERROR: The path is a file: {file}"
    assert require_folder(str(tmp_path), "--certs-dir", 1, told.append) == tmp_path
    told.clear()
    (tmp_path / "b$d").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "b$d")
    require_folder(f"{tmp_path}/b$d", "--certs-dir", 1, told.append)
    require_folder(f"{tmp_path}/link", "--certs-dir", 1, told.append)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    require_folder(str(tmp_path), "--certs-dir", 1, told.append)
    assert told == [
        f"WARNING: The path contains invalid character: {tmp_path}/b$d",
        f"WARNING: The path is a soft link: {tmp_path}/link",
        f"WARNING: The path is not readable: {tmp_path}",
    ]
