"""Certificates of the daemon and of those who ask it: read, judged, and made into TLS contexts."""

from npuscope.monitor.certificates.client_side import client_context
from npuscope.monitor.certificates.daemon_side import CertificateFolder, DaemonCertificates
from npuscope.monitor.certificates.folder import NO_CERTS, require_folder
from npuscope.monitor.certificates.reasons import why

__all__ = ["NO_CERTS", "CertificateFolder", "DaemonCertificates", "client_context", "require_folder", "why"]
