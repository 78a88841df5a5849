"""Adapters to host engines, one engine a file. Nothing is imported here."""
