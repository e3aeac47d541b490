"""The `dynolog` command: the daemon under the stock name and with the stock spelling of flags."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from npuscope.cli.certificates import daemon_certificates
from npuscope.cli.lines import read_lines
from npuscope.cli.monitor import run
from npuscope.cli.output import complain
from npuscope.errors import UserError
from npuscope.monitor.certificates.folder import NO_CERTS
from npuscope.monitor.daemon.addresses import KINDS
from npuscope.monitor.daemon.rpc_server import EVERYWHERE, LOOPBACK
from npuscope.monitor.daemon.service import Settings
from npuscope.monitor.metrics.host import NIC_PREFIXES
from npuscope.monitor.metrics.settings import STOCK_INTERVAL_SECONDS, MetricsSettings
from npuscope.monitor.protocol.rpc import PORT

SWITCHES = frozenset({
    "enable_ipc_monitor", "use_JSON", "use_prometheus", "use_fbrelay", "use_ODS", "use_scuba", "use_otlp", "use_otel",
    "use_otel_for_kernel_monitor", "enable_gpu_monitor", "enable_perf_monitor", "enable_tpu_monitor",
    "filter_nic_interfaces", "enable_env_var_attribution", "enable_pod_resources_attribution",
})  # fmt: skip
VALUES = frozenset({
    "port", "prometheus_address", "prometheus_port", "fbrelay_address", "fbrelay_port", "category_id",
    "ods_entity_prefix", "access_token", "certificate_path", "scribe_category", "otlp_endpoint", "otlp_service_name",
    "otlp_headers", "otlp_timeout_ms", "otlp_max_queue_size", "otlp_ssl_ca_cert_path", "otlp_ssl_client_cert_path",
    "otlp_ssl_client_key_path", "otel_endpoint", "otel_resource_env_file", "otel_resource_attrs",
    "otel_metric_mappings_file", "kernel_monitor_reporting_interval_s", "perf_monitor_reporting_interval_s",
    "dcgm_reporting_interval_s", "tpu_reporting_interval_s", "tpu_scrape_timeout_ms", "tpu_device_plugin_url",
    "allow_interface_prefixes", "dcgm_fields", "dcgm_lib_path", "dcgm_major_version", "dcgm_standalone_address",
    "env_attribution_mappings_file", "pod_resources_socket", "certs_dir", "metric_log_dir", "flagfile",
})  # fmt: skip
HONOURED = frozenset({
    "port", "enable_ipc_monitor", "flagfile", "use_JSON", "use_prometheus", "prometheus_address", "prometheus_port",
    "use_fbrelay", "fbrelay_address", "fbrelay_port", "kernel_monitor_reporting_interval_s", "filter_nic_interfaces",
    "allow_interface_prefixes", "enable_env_var_attribution", "metric_log_dir", "certs_dir",
})  # fmt: skip
LONGEST_INTERVAL = 86400
HELP = """Usage: dynolog [--FLAG[=VALUE] ...]

  The daemon of `npuscope monitor daemon`, with the stock daemon's flags: -x or
  --x, _ or -, --x=VALUE or --x VALUE, --nox. Those that work here:

  --port=N                                   for dyno; 0: a free one  [1778]
  --noenable_ipc_monitor                     no sockets for jobs
  --certs_dir=DIRECTORY                      speak TLS only, on all addresses
  --kernel_monitor_reporting_interval_s=N    how often to measure  [60]
  --use_JSON                                 measurements go to the log
  --use_prometheus, --prometheus_address=A, --prometheus_port=N
  --use_fbrelay, --fbrelay_address=A, --fbrelay_port=N
  --metric_log_dir=DIRECTORY                 plug-in's reports, for TensorBoard
  --filter_nic_interfaces, --allow_interface_prefixes=A,B
  --noenable_env_var_attribution             nothing from the batch system
  --flagfile=FILE                            more flags, one a line

  All others are accepted and named in a line as having no effect.
"""
TRUE, FALSE = frozenset({"true", "t", "yes", "y", "1"}), frozenset({"false", "f", "no", "n", "0"})


@dataclass(frozen=True)
class Flags:
    """What the command line says; the last of several counts."""

    values: dict[str, str]

    @property
    def ignored(self) -> list[str]:
        """Flags that change nothing here."""
        return sorted(set(self.values) - HONOURED)

    def settings(self) -> Settings:
        """How the daemon is to run. Raises UserError for a value that makes no sense."""
        kinds = KINDS if self._on("enable_ipc_monitor", True) else ()
        port = self._number("port", PORT)
        certificates = daemon_certificates(self.values.get("certs_dir", NO_CERTS))
        hosts = EVERYWHERE if certificates else LOOPBACK
        return Settings(port, hosts, kinds, certificates=certificates, metrics=self._metrics())

    def _metrics(self) -> MetricsSettings:
        folder = self.values.get("metric_log_dir", "")
        prefixes = self.values.get("allow_interface_prefixes", ",".join(NIC_PREFIXES)).split(",")
        return MetricsSettings(
            float(self._number("kernel_monitor_reporting_interval_s", int(STOCK_INTERVAL_SECONDS), LONGEST_INTERVAL)),
            stock_json=self._on("use_JSON", False),
            tensorboard=Path(folder) if folder else None,
            prometheus=self._place("prometheus", 8080),
            relay=self._place("fbrelay", 10000),
            stock_names=True,
            nic_prefixes=tuple(filter(None, prefixes)) if self._on("filter_nic_interfaces", False) else None,
            from_environment=self._on("enable_env_var_attribution", True),
        )

    def _on(self, name: str, default: bool) -> bool:
        return self.values.get(name, str(default).lower()) in TRUE

    def _number(self, name: str, default: int, most: int = 65535) -> int:
        text = self.values.get(name, str(default))
        if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= most):
            raise UserError(f"--{name} is a number between 0 and {most}, not {text}")
        return int(text)

    def _place(self, what: str, port: int) -> tuple[str, int] | None:
        if not self._on(f"use_{what}", False):
            return None
        return self.values.get(f"{what}_address", "127.0.0.1"), self._number(f"{what}_port", port)


def read_flags(words: Sequence[str], depth: int = 0) -> Flags:
    """Flags in the stock spelling: `-x` or `--x`, `_` or `-`, `--x=v` or `--x v`, `--nox`. Raises UserError."""
    values: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        if not word.startswith("-") or word.startswith("---"):
            raise UserError(f"unexpected argument {word}")
        if name in SWITCHES or (name.startswith("no") and name[2:] in SWITCHES and not equals):
            on = name in SWITCHES
            name = name if on else name[2:]
            values[name] = _truth(name, value) if equals else str(on).lower()
        elif name in VALUES:
            if not equals and not rest:
                raise UserError(f"--{name} needs a value")
            values[name] = value if equals else rest.pop(0)
        else:
            raise UserError(f"unknown option {word}")
        if name == "flagfile":
            values |= _flag_file(values.pop("flagfile"), depth).values
    return Flags(values)


def _truth(name: str, value: str) -> str:
    if value.lower() not in TRUE | FALSE:
        raise UserError(f"--{name} is true or false, not {value}")
    return "true" if value.lower() in TRUE else "false"


def _flag_file(path: str, depth: int) -> Flags:
    if depth > 8:
        raise UserError(f"flag files include each other: {path}")
    lines = read_lines(Path(path), "the flag file")
    return read_flags([line.strip() for line in lines if line.strip().startswith("-")], depth + 1)


def main() -> None:
    """Entry point."""
    if not {"-h", "-help", "--help"}.isdisjoint(sys.argv[1:]):
        print(HELP, end="")
        return
    try:
        flags = read_flags(sys.argv[1:])
        settings = flags.settings()
        if flags.ignored:
            complain(f"dynolog: these flags have no effect here: {', '.join(flags.ignored)}")
        run(settings, None)
    except UserError as error:
        complain(f"dynolog: {error}")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
