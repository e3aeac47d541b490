"""Printers of plain data: findings as text and JSON."""
