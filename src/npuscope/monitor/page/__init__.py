"""The live page: what the daemon knows, in a browser, for reading only."""
