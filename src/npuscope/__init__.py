"""See, check, time and step through work on Ascend NPUs, without a card.

PYTEST_DONT_REWRITE: the plugin makes no assertions, and is imported before pytest under `npuscope check -m pytest`.
"""

__version__ = "0.1.0"
