"""Calls of public Triton libraries, a module each: `TABLE` lists them, `PACKAGES` says what has to be installed."""
