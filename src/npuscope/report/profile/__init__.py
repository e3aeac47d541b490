"""What the profiler found, for people and programs: the page, the terminal's tables, the JSON document."""
