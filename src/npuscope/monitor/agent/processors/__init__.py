"""Where activities go to, one file each."""
