"""Benchmarks and corpus runs. The package imports nothing from here."""
