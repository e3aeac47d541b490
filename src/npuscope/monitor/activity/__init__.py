"""What a training process and its devices did, as columns: the one form between sources, filter, files and analysis."""
