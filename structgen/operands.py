"""The operands of the schema workbench: schemas, Python types, patterns, conditions, grammars.

Enters: one such value. Leaves: an `Operand`, which has one of three forms for comparisons. Cost: reading the
value; a grammar is compiled when it is asked for.

The problem. `contains`, `compare`, `count`, `examples` and `diff` take every kind of constraint. The way to
compare two operands depends on their kinds. Two JSON Schemas are compared by their values, whatever the
spelling of a value. A pattern is compared by its texts.

The idea. An operand has a `document` (a JSON Schema, with the documents that it refers to), a `condition` (a
regular language), or a grammar alone. `together` makes one schema of several, each a document of its own:

    {"allOf": [{"$ref": "urn:structgen:0"}, {"not": {"$ref": "urn:structgen:1"}}]}

So each document keeps its `$schema`, its `$id` and its references. If both have the same `$id`, like two
versions of one schema, the identifiers of the second and the references to them are renamed (`_renamed`).
They are also renamed if documents have relative names, like files in one folder.

Invariants. A document is never changed in place. A compared grammar has one spelling for each value
(`SPELLING`), so a shortest text is a shortest value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urljoin, urlsplit

from ._stack import roomy
from .checking import bytes_compiler
from .compiler import _DIALECTS, _documents, _draft_number
from .conditions import Condition, Regex
from .constraints import _pattern_text
from .errors import GrammarError
from .grammar import CompiledGrammar
from .json_options import WRITTEN
from .templates import Template

if TYPE_CHECKING:
    from .compiler import Compiler
    from .json_options import Formats

ROOT = "urn:structgen:"
# Each value has one text for each order of its keys. So a shortest text is a shortest value.
SPELLING: dict[str, Any] = {
    "whitespace": "compact",
    "numbers": "canonical",
    "strings": "plain",
    "property_order": "any",
}
_DATA = ("enum", "const", "default", "examples")  # keywords whose values are no schemas


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of a comparison.

    Attributes:
        document: a JSON Schema as parsed JSON; None if the side is no schema. False is a schema.
        registry: the documents that the schema refers to, by URI.
        condition: the side as a regular language; None if it is not known to be regular.
        formats: "enforce" or "annotate", for a JSON Schema.
        name: the name of the side in errors; "" stands for its argument, such as "wide".
    """

    document: Any = None
    registry: dict[str, Any] = field(default_factory=dict, repr=False)
    condition: Condition | None = None
    formats: Formats = "enforce"
    _grammar: CompiledGrammar | None = None
    name: str = ""

    @property
    def is_json(self) -> bool:
        return self.document is not None

    def grammar(self, compiler: Compiler | None = None, **style: Any) -> CompiledGrammar:
        """Returns the grammar of the side's texts.

        Args:
            style: how the JSON of a schema is written; by default as `sg.generate` writes it.

        Raises:
            GrammarError: as `Compiler` raises it; also if a keyword of a schema has a value of a wrong type.
        """
        if self._grammar is not None:
            return self._grammar
        compiler = compiler or bytes_compiler()
        if self.condition is not None:
            return compiler.regex("(?s:.*)") & self.condition
        given = {**WRITTEN, **style, "formats": self.formats, "registry": self.registry or None}
        return well_formed(compiler.json_schema(self.document, **given))


def well_formed(grammar: CompiledGrammar) -> CompiledGrammar:
    """Returns the grammar if every keyword of its schema has a value of the right type.

    `sg.generate` warns of a keyword whose value has a wrong type, and leaves the keyword out. The verdict
    of a comparison would then be about another schema.

    Raises:
        GrammarError: a keyword has a value of a wrong type; the error has its pointer.
    """
    for entry in grammar.dropped:
        error = GrammarError(f"a malformed keyword: {entry.reason.removeprefix('ignored: ')}")
        error.pointer, error.keyword = entry.pointer, entry.keyword
        raise error
    return grammar


@roomy
def operand(
    value: Any, *, draft: str | int | None = None, registry: Any = None, formats: Formats = "enforce"
) -> Operand:
    """Reads one side.

    Args:
        value: a JSON Schema (a dict, a boolean, JSON text), OpenAI's object or a Python type; an `re.Pattern`
            or a `Condition`; a `CompiledGrammar` or a `Template`.
        draft, registry, formats: options of a JSON Schema, as in `JsonOptions`.

    Raises:
        GrammarError: the text is not JSON, or the type has no schema. TypeError: another kind of value.
    """
    if isinstance(value, Operand):
        return value
    if isinstance(value, CompiledGrammar):
        return _of_grammar(value)
    if isinstance(value, Template):
        return Operand(_grammar=value.compile(bytes_compiler()))
    if isinstance(value, re.Pattern):
        return Operand(condition=Regex(_pattern_text(value)))
    if isinstance(value, Condition):
        return Operand(condition=value)
    document = _document(value)
    if draft is not None and isinstance(document, dict):
        number = _draft_number(draft)
        names = {4: "draft-04", 6: "draft-06", 7: "draft-07", 2019: "draft2019-09", 2020: "draft2020-12"}
        document = {**document, "$schema": _DIALECTS[names[number]]}
    return Operand(document, _registry(registry), formats=formats)


def _document(value: Any) -> Any:
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except RecursionError:
            raise GrammarError("the schema is nested too deeply") from None
        except ValueError as error:
            raise GrammarError(
                f"invalid JSON: {error}. A text is read as a JSON Schema: give a pattern as re.compile(...), "
                "a grammar as Compiler.gbnf(...) or Compiler.lark(...)"
            ) from None
        if not isinstance(value, dict | bool):
            raise GrammarError(f"a schema is an object or a boolean, not {json.dumps(value)[:60]}")
    if isinstance(value, bool):
        return value
    if isinstance(value, dict) and value.get("type") not in ("json_schema", "json_object", "function"):
        return value
    from .frontend.python_types import schema_of, unwrap_openai

    return (unwrap_openai(value) if isinstance(value, dict) else schema_of(value))[0]


def _registry(registry: Any) -> dict[str, Any]:
    if registry is None:
        return {}
    known = {uri: text for uri, text in _documents(registry) if uri not in _DIALECTS.values()}
    return {uri: json.loads(text) for uri, text in known.items() if uri in set(registry)}


def _of_grammar(grammar: CompiledGrammar) -> Operand:
    if grammar._condition is not None or grammar._infill is not None or grammar._reasoned is not None:
        return Operand(_grammar=grammar)
    if grammar._options is not None:
        text, asked = grammar._options
        read = operand(text, draft=asked.draft, registry=asked.registry, formats=asked.formats)
        return Operand(read.document, read.registry, None, asked.formats, grammar)
    if grammar._recipe is not None and grammar._recipe[1] == "regex":
        return Operand(condition=Regex(grammar.source), _grammar=grammar)
    if grammar._recipe is not None and grammar._recipe[1] == "choice":
        texts = "|".join(re.escape(text) for text in grammar._recipe[2][0])
        return Operand(condition=Regex(texts), _grammar=grammar)
    return Operand(_grammar=grammar)


# ---- several schemas as one ----


def together(*parts: tuple[Operand, bool]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Makes one schema of several. A value satisfies it if it satisfies each part with the flag True and
    no part with the flag False.

    Returns:
        The schema, and the documents that it refers to.

    Raises:
        GrammarError: two parts have different documents under one URI.
    """
    branches: list[Any] = []
    documents: dict[str, Any] = {}
    known: dict[str, Any] = {}  # the schema that each URI means so far
    for part, wanted in parts:
        own = {f"{ROOT}{len(branches)}": part.document, **part.registry}
        means = _meanings(own)
        clash = any(uri in known and known[uri] != schema for uri, schema in means.items())
        # A relative reference cannot be resolved against `ROOT`.
        if clash or any(not urlsplit(uri).scheme for uri in part.registry):
            own = _renamed(own, len(branches))
            means = _meanings(own)
        documents |= own
        known |= means
        reference = {"$ref": f"{ROOT}{len(branches)}"}
        branches.append(reference if wanted else {"not": reference})
    return {"allOf": branches}, documents


def _meanings(documents: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema that each URI of some documents means."""
    return {uri: schema for name, document in documents.items() for uri, schema in _named(document, name)}


def _named(node: Any, base: str) -> Iterator[tuple[str, Any]]:
    """Returns the schemas of a document that have a URI, each with its URI."""
    yield base, node
    todo = [(node, base)]
    while todo:
        node, base = todo.pop()
        if isinstance(node, dict):
            own = _identifier(node)
            if own is not None:
                base = urldefrag(urljoin(base, own))[0]
                yield base, node
            todo += [(held, base) for key, held in node.items() if key not in _DATA]
        elif isinstance(node, list):
            todo += [(held, base) for held in node]


def _identifier(node: Mapping[str, Any]) -> str | None:
    for name in ("$id", "id"):
        own = node.get(name)
        if isinstance(own, str) and not own.startswith("#") and "$ref" not in node:
            return own
    return None


def _renamed(documents: dict[str, Any], number: int) -> dict[str, Any]:
    """Returns a copy of the documents under new URIs. Their references name the new URIs."""
    known = {uri for name, document in documents.items() for uri, _ in _named(document, name)}

    def at(uri: str) -> str:
        bare, fragment = urldefrag(uri)
        new = f"{ROOT}{number}:{bare}" if bare in known else bare
        return f"{new}#{fragment}" if fragment or uri.endswith("#") else new

    def moved(node: Any, base: str) -> Any:
        if isinstance(node, list):
            return [moved(held, base) for held in node]
        if not isinstance(node, dict):
            return node
        own = _identifier(node)
        out: dict[str, Any] = {}
        base = base if own is None else urljoin(base, own)
        for key, held in node.items():
            if key in ("$id", "id") and own is not None and isinstance(held, str) and held == own:
                out[key] = at(base)
            elif key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(held, str):
                local = held.startswith("#") or key == "$recursiveRef"
                out[key] = held if local else at(urljoin(base, held))
            else:
                out[key] = held if key in _DATA else moved(held, base)
        return out

    root = f"{ROOT}{number}"
    return {name if name == root else at(name): moved(document, name) for name, document in documents.items()}
