"""The tasks: each module writes (prompt text, schema, answer) for one family of requests."""
