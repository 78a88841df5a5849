"""Benchmarks and corpus runs. The package structgen imports nothing from this folder."""
