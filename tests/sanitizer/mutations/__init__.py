"""Mutants of clean kernels, and witnesses of what a mutant can do that know nothing of the sanitizer."""
