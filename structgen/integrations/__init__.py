"""Adapters to host engines, one in each file. This module imports none of them."""
