"""The monitor: a daemon that training processes talk to, and what people ask of it."""
