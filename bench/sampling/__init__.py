"""Samplers side by side: distance to the target against draws and forwards, on GAD tasks and on a table."""
