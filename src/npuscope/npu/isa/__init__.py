"""The device instructions, one file a family. Each writes its trace row, then takes effect."""
