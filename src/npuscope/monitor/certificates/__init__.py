"""Certificates of the daemon and of those who ask it: read, judged, and made into TLS contexts.

`client_side` and `daemon_side` make the contexts; they load a large library, so a command imports them when it is to
speak TLS. `folder` and `reasons` are light.
"""
