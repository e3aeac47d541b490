"""What is measured: the host, the registered processes, the daemon itself, and what the vendor's plug-in sends."""
