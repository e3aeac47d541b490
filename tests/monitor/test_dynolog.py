"""The stock daemon's flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from npuscope.cli.dynolog import read_flags
from npuscope.errors import UserError
from npuscope.monitor.metrics.settings import MetricsSettings


@pytest.mark.parametrize(
    "words", [["-port", "5"], ["--port=5"], ["--port", "5"], ["-port=5", "--enable_ipc_monitor", "--use-JSON"]]
)
def test_the_spellings_of_a_flag(words: list[str]) -> None:
    assert read_flags(words).settings().port == 5


def test_switches() -> None:
    assert read_flags([]).settings().ipc == ("abstract", "directory", "home")
    assert read_flags(["--enable-ipc-monitor"]).settings().ipc != ()
    assert read_flags(["--noenable_ipc_monitor"]).settings().ipc == ()
    assert read_flags(["--enable_ipc_monitor=false"]).settings().ipc == ()


def test_what_has_no_effect_is_named() -> None:
    words = [
        "--use_JSON",
        "--dcgm_fields=1,2",
        "--port=1",
        "--use_ODS",
        "--use_scuba",
        "--enable_tpu_monitor",
        "--use_otlp",
    ]
    assert read_flags(words).ignored == ["dcgm_fields", "enable_tpu_monitor", "use_ODS", "use_otlp", "use_scuba"]


def test_metrics_by_default() -> None:
    assert read_flags([]).settings().metrics == MetricsSettings(60.0, stock_names=True)


def test_flags_of_metrics() -> None:
    words = [
        "--use_JSON", "--use_prometheus", "--prometheus_address=0.0.0.0", "--prometheus_port=9", "--use_fbrelay",
        "--kernel_monitor_reporting_interval_s=5", "--filter_nic_interfaces", "--noenable_env_var_attribution",
        "--metric_log_dir=/tmp/x",
    ]  # fmt: skip
    flags = read_flags(words)
    assert flags.ignored == []
    assert flags.settings().metrics == MetricsSettings(
        5.0, None, True, Path("/tmp/x"), ("0.0.0.0", 9), ("127.0.0.1", 10000), True,
        ("eno", "ens", "enp", "enx", "eth"), False,
    )  # fmt: skip
    prefixes = [*words, "--allow_interface_prefixes=ib,hccn"]
    assert read_flags(prefixes).settings().metrics.nic_prefixes == ("ib", "hccn")


def test_a_flag_file(tmp_path: Path) -> None:
    path = tmp_path / "dynolog.gflags"
    path.write_text("# comment\n--port=1234\n\n--use_ODS\n")
    flags = read_flags([f"--flagfile={path}"])
    assert flags.settings().port == 1234 and flags.ignored == ["use_ODS"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--reporting_interval_s=3"], "unknown option --reporting_interval_s=3"),
        (["start"], "unexpected argument start"),
        (["--port"], "needs a value"),
        (["--use_JSON=perhaps"], "true or false"),
        (["--flagfile=/no/such/file"], "cannot read the flag file"),
    ],
)
def test_one_line_for_what_is_wrong(words: list[str], text: str) -> None:
    with pytest.raises(UserError, match=text) as raised:
        read_flags(words)
    assert "\n" not in str(raised.value)


def test_certificates_open_the_port_to_other_hosts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = read_flags(["--certs_dir", str(tmp_path)]).settings()
    assert settings.certificates and settings.certificates.path == tmp_path and settings.hosts == ("::",)
    plain = read_flags(["--certs-dir=NO_CERTS"]).settings()
    assert plain.certificates is None and plain.hosts == ("127.0.0.1", "::1")
    with pytest.raises(UserError, match="^--certs-dir must be a valid directory!$"):
        read_flags(["--certs_dir=/no/such/folder"]).settings()
    assert capsys.readouterr().err == "ERROR: The path does not exist: /no/such/folder\n"


@pytest.mark.parametrize("port", ["x", "-1", "65536", "²"])
def test_ports_that_are_none(port: str) -> None:
    with pytest.raises(UserError, match="--port is a number"):
        read_flags([f"--port={port}"]).settings()


def test_a_flag_file_that_includes_itself(tmp_path: Path) -> None:
    path = tmp_path / "loop"
    path.write_text(f"--flagfile={path}\n")
    with pytest.raises(UserError, match="include each other"):
        read_flags([f"--flagfile={path}"])
