"""Checks over a trace. One file a check; a check takes batches and yields findings, and does no input or output."""
