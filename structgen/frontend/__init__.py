"""Front ends: what users write, turned into what the core compiles. One dialect a file."""
