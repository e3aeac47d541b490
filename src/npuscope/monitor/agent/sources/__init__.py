"""Where activities come from, one file each."""
