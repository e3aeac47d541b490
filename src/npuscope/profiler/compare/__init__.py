"""Two profiles, and what changed between them: by launch, metric, pipe and line."""
