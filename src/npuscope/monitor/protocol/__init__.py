"""The wire formats: bytes in, values out. Nothing here opens a socket or looks at a clock."""
