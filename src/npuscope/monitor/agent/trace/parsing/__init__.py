"""From the raw data of a trace to its deliverables. Nothing here imports PyTorch, or needs the traced process."""
