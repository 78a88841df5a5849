"""Benchmarks and corpus runs. Nothing here is imported by the package."""
