"""Writers: a profile as files that other programs read. They format; what is to be drawn is computed elsewhere."""
