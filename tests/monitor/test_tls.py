"""A real daemon and a real `dyno` that speak TLS. Whatever is wrong is one line on the side where a person looks, and the
daemon goes on serving."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from certificate_maker import CA, CLIENT, DAY, NOW, SERVER, Wanted, fill, key_pem, pem, revocations, rsa
from daemon_process import Daemon, environment, python

from npuscope import __version__
from npuscope.monitor.protocol import fabric, rpc
from npuscope.monitor.protocol.fabric import Types

LISTED = replace(CLIENT, serial=33)
"""A client that the daemon's revocation list names."""
STRANGER = replace(CA, key_number=1, signer_number=1)
"""An authority of the same name with another key."""
SECONDS = 30.0


@pytest.fixture(scope="module")
def served() -> Iterator[Daemon]:
    """A daemon with certificates for localhost, and a revocation list."""
    folder = Path(tempfile.mkdtemp(prefix="npuscope-", dir="/tmp"))
    certificates = fill(folder / "certs", server=replace(SERVER, hosts=("localhost",)))
    (certificates / "ca.crl").write_bytes(revocations([LISTED.serial]))
    log = folder / "log"
    words = ["npuscope", "monitor", "daemon", "--port", "0", "--ipc", "directory", "--certs-dir", str(certificates)]
    with log.open("w") as stream:
        process = subprocess.Popen([sys.executable, "-m", *words], env=environment(folder), stderr=stream, text=True)
    daemon = Daemon(folder, process, log)
    try:
        daemon.wait_until_it_listens()
        yield daemon
        assert process.poll() is None, "the daemon has ended"
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder)


@pytest.fixture
def goes_on(served: Daemon) -> Iterator[Daemon]:
    """The same daemon; after the test it still serves."""
    yield served
    assert asked(served, served.folder / "certs")["version"] == __version__


def asked(daemon: Daemon, folder: Path) -> dict[str, object]:
    """What the daemon answers to a good client."""
    with client_socket(daemon, folder) as stream:
        stream.sendall(rpc.frame(rpc.simple_request("getVersion")))
        answer: dict[str, object] = json.loads(stream.makefile("rb").read()[4:])
        return answer


def client_socket(daemon: Daemon, folder: Path | None) -> ssl.SSLSocket:
    """TLS as Python's library speaks it, without our own client's checks."""
    context = ssl.create_default_context(cafile=daemon.folder / "certs" / "ca.crt")
    if folder:
        context.load_cert_chain(folder / "client.crt", folder / "client.key")
    connection = socket.create_connection(("127.0.0.1", daemon.port), timeout=SECONDS)
    return context.wrap_socket(connection, server_hostname="localhost")


def logged(daemon: Daemon, text: str, since: int = 0) -> str:
    """The line of the daemon's log with a text in it, when it has come."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for line in daemon.log.read_text()[since:].splitlines():
            if text in line:
                return line
        time.sleep(0.05)
    raise AssertionError(f"no {text!r} in {daemon.log.read_text()[since:]!r}")


def mark(daemon: Daemon) -> int:
    return len(daemon.log.read_text())


def detached(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a module with no terminal to ask at."""
    return subprocess.run(
        [sys.executable, "-m", *words],
        env=environment(folder),
        text=True,
        capture_output=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def refused(done: subprocess.CompletedProcess[str], text: str, code: int = 101) -> None:
    """One line that has the text, and the exit code."""
    assert done.returncode == code, done
    assert text in done.stderr and len(done.stderr.splitlines()) == 1 and done.stderr.startswith("dyno: ")


def test_dyno_and_daemon_know_each_other(served: Daemon) -> None:
    client = served.client()
    served.exchange(client, fabric.encode_poll(Types.EVENTS | Types.ACTIVITIES, 0, (os.getpid(), os.getppid())))
    certificates = served.folder / "certs"
    done = served.dyno("--certs-dir", str(certificates), "version")
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "Running in certificate mode" and f"Checking CRL file: {certificates}/ca.crl" in lines
    assert lines[-1] == f'response = {{"version":"{__version__}"}}'
    words = ("gputrace", "--log-file", f"{served.folder}/x.json", "--pids", str(os.getpid()), "--json")
    done = served.dyno("--certs-dir", str(certificates), *words)
    assert done.returncode == 0 and json.loads(done.stdout)["activityProfilersTriggered"] == [os.getpid()]
    text = served.log.read_text()
    assert f"listening on port {served.port} of :: with TLS" in text and "warning" not in text


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions_of_tls(served: Daemon, version: ssl.TLSVersion) -> None:
    folder = served.folder / "certs"
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    context.load_cert_chain(folder / "client.crt", folder / "client.key")
    context.minimum_version = context.maximum_version = version
    with (
        socket.create_connection(("::1" if socket.has_ipv6 else "127.0.0.1", served.port), timeout=SECONDS) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as stream,
    ):
        frame = rpc.frame(rpc.simple_request("getVersion"))
        for byte in frame:  # each in a record of its own
            stream.send(bytes([byte]))
        size = rpc.length(stream.recv(4))
        assert json.loads(stream.recv(size)) == {"version": __version__}
        assert stream.recv(1) == b""  # a proper goodbye; without one this raises
        assert stream.session is None or not stream.session.has_ticket


@pytest.mark.parametrize(
    ("server", "text"),
    [
        (replace(SERVER, sha1=True), "Certificate uses insecure signature algorithm: 65"),
        (replace(SERVER, bits=2048), "RSA key length 2048 bits is less than required 3072 bits"),
        (replace(SERVER, starts=NOW + DAY), "Server certificate is not yet valid. Valid from: "),
        (replace(SERVER, ends=NOW - DAY / 2), "Server certificate has expired. Expired at: "),
        (replace(SERVER, ca=True), "Client certificate should not have CA constraint"),
        (replace(SERVER, key_usage=None), "Client certificate must have key usage extension"),
        (replace(SERVER, serial=77), "Server certificate is revoked"),
    ],
    ids=["sha1", "rsa2048", "future", "past", "ca", "no key usage", "revoked"],
)
def test_a_daemon_says_why_it_does_not_start(folder: Path, server: Wanted, text: str) -> None:
    certificates = fill(folder / "certs", server=server)
    (certificates / "ca.crl").write_bytes(revocations([77]))
    done = python(
        ["npuscope.cli.dynolog", "--port=0", "--noenable_ipc_monitor", f"--certs_dir={certificates}"],
        environment(folder),
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith(f"dynolog: {text}")


@pytest.mark.parametrize(
    ("client", "text"),
    [
        (replace(CLIENT, sha1=True), "Certificate uses insecure signature algorithm: 65"),
        (replace(CLIENT, starts=NOW + DAY), "Client certificate is not yet valid. Valid from: "),
        (replace(CLIENT, ends=NOW - DAY / 2), "Client certificate has expired. Expired at: "),
        (replace(CLIENT, ca=True), "Client certificate should not have CA constraint"),
        (replace(CLIENT, key_usage=None), "Client certificate must have key usage extension"),
    ],
    ids=["sha1", "future", "past", "ca", "no key usage"],
)
def test_dyno_says_why_it_does_not_ask(served: Daemon, folder: Path, client: Wanted, text: str) -> None:
    refused(served.dyno("--certs-dir", str(fill(folder / "certs", client=client)), "status"), text)


def test_folders_and_files_that_are_not_there(goes_on: Daemon, folder: Path) -> None:
    done = goes_on.dyno("--certs-dir", f"{folder}/none", "status")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.splitlines() == [
        f"ERROR: The path does not exist: {folder}/none",
        "dyno: --certs_dir must be a valid directory!",
    ]
    done = python(["npuscope", "monitor", "daemon", "--certs-dir", str(goes_on.log)], environment(folder))
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"ERROR: The path is a file: {goes_on.log}",
        "npuscope: --certs-dir must be a valid directory!",
    ]
    (folder / "empty").mkdir()
    refused(
        goes_on.dyno("--certs-dir", f"{folder}/empty", "status"),
        f"Failed to load CA certificate ({folder}/empty/ca.crt): No such",
    )
    done = python(["npuscope", "monitor", "daemon", "--port=0", "--certs-dir", f"{folder}/empty"], environment(folder))
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "Failed to load server certificate" in done.stderr


def test_a_revoked_client_is_told_so(goes_on: Daemon, folder: Path) -> None:
    since = mark(goes_on)
    done = goes_on.dyno("--certs-dir", str(fill(folder / "certs", client=LISTED)), "status")
    refused(done, "the daemon does not accept this side's certificate or TLS: certificate revoked")
    assert "response" not in done.stdout
    line = logged(goes_on, "turned", since)
    assert re.search(
        r"turned (127\.0\.0\.1|::1) away: the certificate of the peer is not accepted: certificate revoked$", line
    )


@pytest.mark.parametrize(
    ("client", "text"),
    [
        (replace(CLIENT, ends=NOW - DAY / 2), "certificate has expired"),
        (replace(CLIENT, starts=NOW + DAY), "certificate is not yet valid"),
        (replace(CLIENT, issuer="somebody", key_number=1, signer_number=1), "unable to get local issuer certificate"),
        (replace(CLIENT, signer_number=1), "certificate signature failure"),
        (LISTED, "certificate revoked"),
    ],
    ids=["past", "future", "other authority", "forged", "revoked"],
)
def test_the_daemon_judges_clients_that_do_not_judge_themselves(
    goes_on: Daemon, folder: Path, client: Wanted, text: str
) -> None:
    fill(folder / "certs", client=client)
    since = mark(goes_on)
    with pytest.raises(ssl.SSLError, match="(?i)alert"), client_socket(goes_on, folder / "certs") as stream:
        stream.sendall(rpc.frame(rpc.simple_request("getVersion")))
        stream.recv(1)
    assert logged(goes_on, "turned", since).endswith(f"the certificate of the peer is not accepted: {text}")


def test_a_client_without_a_certificate(goes_on: Daemon) -> None:
    since = mark(goes_on)
    with pytest.raises(ssl.SSLError, match="(?i)certificate.required"), client_socket(goes_on, None) as stream:
        stream.recv(1)
    assert logged(goes_on, "turned", since).endswith("the peer has shown no certificate")


def test_a_daemon_that_dyno_does_not_believe(goes_on: Daemon, folder: Path) -> None:
    mine = str(goes_on.folder / "certs")
    since = mark(goes_on)
    done = goes_on.dyno("--hostname", "127.0.0.1", "--certs-dir", mine, "status")
    refused(done, "the certificate of the daemon is not accepted: IP address mismatch")
    assert "the peer does not accept this side's certificate or TLS: bad certificate" in logged(
        goes_on, "turned", since
    )
    strange = fill(folder / "strange")
    (strange / "ca.crt").write_bytes(pem(STRANGER.made()))
    refused(
        goes_on.dyno("--certs-dir", str(strange), "status"),
        "the certificate of the daemon is not accepted: certificate signature failure",
    )
    wary = fill(folder / "wary")
    (wary / "ca.crl").write_bytes(revocations([SERVER.serial]))
    refused(
        goes_on.dyno("--certs-dir", str(wary), "status"),
        "the certificate of the daemon is not accepted: certificate revoked",
    )


def test_no_tls_on_a_port_with_tls(goes_on: Daemon) -> None:
    since = mark(goes_on)
    refused(goes_on.dyno("status"), "the daemon speaks TLS only (name your certificates with --certs-dir)")
    assert logged(goes_on, "turned", since).endswith("away: it does not speak TLS")
    assert goes_on.ask(rpc.simple_request("getStatus")) == json.loads(rpc.NEEDS_TLS)
    assert goes_on.raw(b"GET / HTTP/1.0\r\n\r\n")[4:] == rpc.NEEDS_TLS.encode()


def test_tls_on_a_port_without(daemon: Daemon, folder: Path) -> None:
    certificates = fill(folder / "certs")
    refused(
        daemon.dyno("--certs-dir", str(certificates), "status"),
        "the daemon does not speak TLS (does it run with --certs-dir?)",
    )
    assert daemon.dyno("version").returncode == 0


def test_a_probe_is_not_worth_a_line(goes_on: Daemon, folder: Path) -> None:
    since = mark(goes_on)
    socket.create_connection(("127.0.0.1", goes_on.port)).close()
    with pytest.raises(ssl.SSLError), client_socket(goes_on, None) as stream:
        stream.recv(1)
    assert logged(goes_on, "shown no certificate", since)
    assert goes_on.log.read_text()[since:].count("turned") == 1


def test_peers_that_say_nothing_or_nonsense(goes_on: Daemon) -> None:
    idle = [socket.create_connection(("127.0.0.1", goes_on.port), timeout=SECONDS) for _ in range(20)]
    since = mark(goes_on)
    idle[0].sendall(b"\x16\x03\x01")  # begins, and does not go on
    idle[1].sendall(b"\x16\x03\x01\x00\x05hello")
    assert asked(goes_on, goes_on.folder / "certs")["version"] == __version__
    assert logged(goes_on, "no TLS with the peer", since)
    assert idle[0].recv(100) == b""
    assert logged(goes_on, "the TLS handshake took more than 5 s", since)
    for connection in idle:
        connection.close()


def test_a_new_revocation_list_counts_at_once(start: Callable[..., Daemon], folder: Path) -> None:
    certificates = fill(folder / "certs")
    daemon = start("--certs-dir", str(certificates), "--bind", "127.0.0.1")
    assert asked(daemon, certificates)["version"] == __version__
    fresh = folder / "new.crl"
    fresh.write_bytes(revocations([CLIENT.serial]))
    fresh.rename(certificates / "ca.crl")
    with pytest.raises(ssl.SSLError, match="(?i)revoked"):
        asked(daemon, certificates)
    assert logged(daemon, "have changed and are in use")
    assert "of 127.0.0.1 with TLS" in daemon.log.read_text()
    fresh.write_bytes(revocations([], NOW - DAY))
    fresh.rename(certificates / "ca.crl")
    with pytest.raises(ssl.SSLError, match="(?i)alert"):
        asked(daemon, certificates)
    assert "CRL has expired" in logged(daemon, "everybody is turned away until there is a new one")
    assert logged(daemon, "turned 127.0.0.1 away").endswith("certificate revoked")
    assert logged(daemon, "not accepted: CRL has expired")


def test_without_tls_an_open_port_is_warned_about(start: Callable[..., Daemon]) -> None:
    assert "warning: 0.0.0.0 is open to other hosts" in start("--bind", "0.0.0.0").log.read_text()


def test_an_encrypted_key_without_a_terminal(goes_on: Daemon, folder: Path) -> None:
    certificates = fill(folder / "certs")
    for who in ("server", "client"):
        (certificates / f"{who}.key").write_bytes(key_pem(rsa(), "open sesame"))
    words = ["npuscope.cli.dyno", "--port", str(goes_on.port), "--certs-dir", str(certificates), "status"]
    refused(
        detached(words, folder), "the private key is encrypted, and there is no terminal to ask for its password at"
    )
    done = detached(["npuscope", "monitor", "daemon", "--port=0", "--certs-dir", str(certificates)], folder)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1) and "there is no terminal" in done.stderr


@pytest.mark.parametrize(("password", "code", "text"), [("open sesame", 0, ""), ("shut", 101, "the password is wrong")])
def test_dyno_asks_for_a_password(goes_on: Daemon, folder: Path, password: str, code: int, text: str) -> None:
    certificates = fill(folder / "certs")
    (certificates / "client.key").write_bytes(key_pem(rsa(), "open sesame"))
    words = ["npuscope.cli.dyno", "--port", str(goes_on.port), "--certs-dir", str(certificates), "version"]
    with asking(words, folder, password) as (process, rest):
        assert process.wait(SECONDS) == code
        assert text in rest() and password not in rest()


def test_a_daemon_asks_for_a_password(folder: Path) -> None:
    certificates = fill(folder / "certs")
    (certificates / "server.key").write_bytes(key_pem(rsa(), "open sesame"))
    words = ["npuscope", "monitor", "daemon", "--port", "0", "--ipc", "directory", "--certs-dir", str(certificates)]
    with asking(words, folder, "open sesame") as (process, rest):
        deadline = time.monotonic() + SECONDS
        while "with TLS" not in rest() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "with TLS" in rest()
        process.terminate()
        assert process.wait(SECONDS) == 0
    with asking(words, folder, "shut") as (process, rest):
        assert process.wait(SECONDS) == 2
        assert "Failed to load server private key" in rest() and "Traceback" not in rest()


@contextmanager
def asking(
    words: Sequence[str], folder: Path, password: str
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], str]]]:
    """A process at a terminal at which the password is typed when it is asked for; what it says from then on."""
    keyboard, terminal = pty.openpty()
    output = folder / "output"
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            env=environment(folder),
            stdin=terminal,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + SECONDS
        while b"Please enter the certificate password: " not in output.read_bytes():
            assert time.monotonic() < deadline and process.poll() is None, output.read_text()
            time.sleep(0.05)
        os.write(keyboard, password.encode() + b"\n")
        yield process, output.read_text
    finally:
        process.kill()
        process.wait(10)
        os.close(keyboard)
        os.close(terminal)
