"""Files that other programs read; what is in them is computed elsewhere."""
