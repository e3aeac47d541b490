"""The commands of docs/monitor-tls.md make certificates with which daemon and `dyno` work, and turn a client away."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "monitor-tls.md").read_text()
SECONDS = 60.0


def commands(title: str) -> str:
    """All shell commands of a section."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL))


def carry_out(text: str, folder: Path) -> None:
    """Run commands as a person would who stops at the first that fails."""
    done = subprocess.run(["bash", "-e"], input=text, cwd=folder, text=True, capture_output=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "src"), "KINETO_IPC_SOCKET_DIR": str(folder)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the first section's commands were carried out."""
    assert shutil.which("openssl"), "the page's commands need the openssl command: apt-get install openssl"
    folder = tmp_path_factory.mktemp("tls")
    carry_out(commands("Make the certificates"), folder)
    return folder


@pytest.fixture
def port(made: Path) -> Iterator[str]:
    """Where the page's daemon listens."""
    assert "$ npuscope monitor daemon --certs-dir daemon\n" in PAGE
    log = made / "log"
    words = ["-m", "npuscope", "monitor", "daemon", "--certs-dir", "daemon", "--port", "0", "--ipc", "directory"]
    with log.open("w") as stream:
        process = subprocess.Popen([sys.executable, *words], cwd=made, env=environment(made), stderr=stream)
    deadline = time.monotonic() + SECONDS
    while not (found := re.search(r"listening on port (\d+) of :: with TLS", log.read_text())):
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    yield found[1]
    process.terminate()
    process.wait(10)
    assert "warning" not in log.read_text()


def dyno(folder: Path, port: str) -> subprocess.CompletedProcess[str]:
    assert "$ dyno --certs-dir client --hostname localhost status\n" in PAGE
    words = ["--certs-dir", "client", "--hostname", "localhost", "--port", port, "status"]
    command = [sys.executable, "-m", "npuscope.cli.dyno", *words]
    return subprocess.run(command, cwd=folder, env=environment(folder), text=True, capture_output=True, timeout=SECONDS)


def test_the_certificates_work_until_the_client_is_turned_away(made: Path, port: str) -> None:
    for file in ("authority/ca.key", "daemon/server.key", "client/client.key"):
        assert (made / file).stat().st_mode & 0o077 == 0
    done = dyno(made, port)
    assert done.returncode == 0 and done.stderr == "" and "response = " in done.stdout
    carry_out(commands("Turn a client away"), made)
    done = dyno(made, port)
    assert done.returncode == 101
    assert "the daemon does not accept this side's certificate or TLS: certificate revoked" in done.stderr


def test_what_openssl_itself_says_of_them(made: Path) -> None:
    for which, file in (("sslserver", "daemon/server.crt"), ("sslclient", "client/client.crt")):
        words = ["openssl", "verify", "-CAfile", "authority/ca.crt", "-x509_strict", "-purpose", which, file]
        done = subprocess.run(words, cwd=made, text=True, capture_output=True, timeout=SECONDS)
        assert done.stdout == f"{file}: OK\n", done.stderr


def test_every_text_of_the_page_is_one_of_ours() -> None:
    sources = "".join(
        path.read_text() for room in ("monitor", "cli") for path in (ROOT / "src" / "npuscope" / room).rglob("*.py")
    )
    for text in (
        "should not have CA constraint",
        "must have key usage extension",
        "must have key usage keyCertSign and cRLSign",
        "CRL is not signed by the CA certificate",
        "does not accept this side's certificate or TLS",
        "speaks TLS only",
        "does not speak TLS",
        "there is no terminal to ask for its password at",
    ):
        assert text in PAGE and text in sources
