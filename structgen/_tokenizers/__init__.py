"""Readers of tokenizer formats, one module per format. Each gives `Parts`: bytes by id, special names, end
ids."""

from .files import read
from .objects import from_object
from .parts import Encode, Parts

__all__ = ["Encode", "Parts", "from_object", "read"]
