"""Tokenizer formats, one a file; each reduces to `Parts`: bytes by id, special names, end ids."""

from .files import read
from .objects import from_object
from .parts import Encode, Parts

__all__ = ["Encode", "Parts", "from_object", "read"]
