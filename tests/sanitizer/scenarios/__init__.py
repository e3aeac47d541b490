"""Rows of the scenario catalogue (sanitizer.md 6) as data: a pyasc program text and what the checks must say of it."""
