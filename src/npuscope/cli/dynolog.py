"""The `dynolog` command: the daemon under the stock name and with the stock spelling of flags."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from npuscope.cli.certificates import daemon_certificates
from npuscope.cli.monitor import run
from npuscope.cli.output import complain
from npuscope.errors import UserError
from npuscope.monitor.certificates.folder import NO_CERTS
from npuscope.monitor.daemon.addresses import KINDS
from npuscope.monitor.daemon.rpc_server import EVERYWHERE, LOOPBACK
from npuscope.monitor.daemon.service import Settings
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
HONOURED = frozenset({"port", "enable_ipc_monitor", "flagfile", "certs_dir"})
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
        port = self.values.get("port", str(PORT))
        if not (port.isascii() and port.isdigit() and int(port[:6]) <= 65535):
            raise UserError(f"--port is a number between 0 and 65535, not {port}")
        kinds = KINDS if self.values.get("enable_ipc_monitor", "true") in TRUE else ()
        certificates = daemon_certificates(self.values.get("certs_dir", NO_CERTS))
        return Settings(int(port), EVERYWHERE if certificates else LOOPBACK, kinds, certificates=certificates)


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
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the flag file {path}: {getattr(error, 'strerror', None) or error}") from None
    return read_flags([line.strip() for line in lines if line.strip().startswith("-")], depth + 1)


def main() -> None:
    """Entry point."""
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
