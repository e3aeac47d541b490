"""See, check, time and step through work on Ascend NPUs, without a card."""

__version__ = "0.1.0"
