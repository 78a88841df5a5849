"""Compares samplers: distance to the target against draws and forward passes, on GAD tasks and on a table."""
