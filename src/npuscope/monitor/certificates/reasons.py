"""Why a TLS connection came to nothing, in words."""

from __future__ import annotations

import ssl

ALERT = "_ALERT_"
NO_CERTIFICATE = "PEER_DID_NOT_RETURN_A_CERTIFICATE"
NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"})


def why(error: ssl.SSLError, other: str) -> str:
    """What went wrong between us and `other`, such as "the daemon"."""
    reason = error.reason or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of {other} is not accepted: {error.verify_message.rstrip('.')}"
    if ALERT in reason:
        return f"{other} does not accept this side's certificate or TLS: {_plain(reason.partition(ALERT)[2])}"
    if reason == NO_CERTIFICATE:
        return f"{other} has shown no certificate"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return f"{other} has closed the connection without a word"
    if reason in NOT_TLS:
        return f"{other} does not speak TLS"
    return f"no TLS with {other}: {_plain(reason) or error}"


def _plain(reason: str) -> str:
    return reason.replace("_", " ").lower()
