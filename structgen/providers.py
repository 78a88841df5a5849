"""The rules of providers and engines about the keywords of a JSON Schema, for `structgen lint --for`.

Enters: a schema and a provider's name. Leaves: findings, each with the rule's address. Cost: a walk over the
schema, and at most two containments for each finding until `_SECONDS` have passed.

The problem. A provider accepts a part of JSON Schema. It refuses a request, drops a keyword, or reads it in
another way, and its documentation says so in prose. The author of a schema wants to know whether this
matters.

The idea. A row of `PROVIDERS` holds the rules of one provider's public documentation: rules of keywords, with
the values and neighbours that they depend on, and limits of the whole schema. An SDK that changes a schema
before it is sent has its own rules, with the version that was read. Each finding has one of these notes:

    {"type": "integer", "minimum": 1, "maximum": 3}, anthropic refuses `minimum`
    a rewrite that is proved equal      write {"enum": [1, 2, 3]}
    what the change lets through        without it 0 is valid, too
    why neither is known                a limit of the engine

A rewrite (`_REWRITES`) is offered where the provider takes it, and both containments are proved.

Invariants. Each rule comes from a public text, and the message has its address. "Proved equal" means that
`contains` proved it both ways. A keyword without a rule is not mentioned in the provider's text, so its
support is not promised.

Rejected. Rules found by trying a provider: they change without notice and nobody can look them up. A rewrite
for every finding: an optional key cannot become a required one, so the difference is shown instead.
"""

from __future__ import annotations

import collections
import itertools
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeGuard

from ._checks import one_of
from ._pointers import Path, led, pointer_of, value_at
from ._stack import roomy
from .comparing import contains
from .errors import GrammarError
from .keywords import ABOUT, ASSERTING, schemas_in
from .linting import Finding, reached
from .operands import operand
from .testdata import _removed

Effect = Literal["refuses", "drops", "rewrites", "misreads"]
Node = dict[str, Any]

_SECONDS = 5.0  # the most seconds for containments. Later findings have no note.
_RANGE = 100  # the most integers that a rewrite lists


class Document:
    """A schema, and data about it that the rules share."""

    def __init__(self, schema: Any) -> None:
        self.schema: Any = schema

    @cached_property
    def nodes(self) -> list[tuple[Path, Node]]:
        return list(schemas_in(self.schema))

    @cached_property
    def at(self) -> dict[Path, Node]:
        return dict(self.nodes)

    @cached_property
    def recursive(self) -> set[Path]:
        """The targets of recursive references."""
        edges: dict[Path, set[Path]] = {}
        for path, node in self.nodes:
            target = led(self.schema, node.get("$ref"))
            if target is not None:
                edges[path] = {target[0]}
        leads: dict[Path, set[Path]] = {target: set() for targets in edges.values() for target in targets}
        for path, targets in edges.items():  # A target leads on from the schemas inside it.
            for cut in range(len(path) + 1):
                if path[:cut] in leads:
                    leads[path[:cut]] |= targets
        return {target for target in leads if target in reached(leads, target)}


@dataclass(frozen=True, slots=True)
class Subschema:
    """A schema in a document, to which rules are applied."""

    document: Document
    path: Path
    node: Node

    @property
    def types(self) -> set[str]:
        kinds = self.node.get("type")
        return {kinds} if isinstance(kinds, str) else set(kinds) if isinstance(kinds, list) else set()

    @property
    def is_object(self) -> bool:
        return "object" in self.types or "properties" in self.node


Where = Callable[[Subschema, str], bool]


def _present(place: Subschema, keyword: str) -> bool:
    return keyword in place.node


@dataclass(frozen=True, slots=True)
class Rule:
    """A provider's rule about a keyword.

    Attributes:
        keyword: the keyword's name; "*" stands for every keyword that asserts something.
        where: whether the rule applies at a place. A rule may be about a missing keyword.
        says: the rule in words.
        source: the address of the rule's text, if it differs from the provider's address.
        becomes: the schema that the provider reads instead; None means the schema without the keyword.
    """

    keyword: str
    effect: Effect
    where: Where = _present
    says: str = ""
    source: str = ""
    becomes: Callable[[Subschema], Node] | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """An upper limit on a number that is counted over the whole schema."""

    of: str
    most: int
    measure: Callable[[Document], int]


@dataclass(frozen=True, slots=True)
class Sdk:
    """A provider's Python package: the rules by which one version of it changes the schema of a type."""

    package: str
    version: str
    source: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider: the address of its documentation, and the provider's rules."""

    address: str
    rules: tuple[Rule, ...] = ()
    limits: tuple[Limit, ...] = ()
    sdk: Sdk | None = field(default=None)


def _all(
    effect: Effect, *keywords: str, where: Where = _present, says: str = "", source: str = ""
) -> tuple[Rule, ...]:
    def rule(keyword: str) -> Rule:
        return Rule(
            keyword, effect, lambda place, name: _present(place, name) and where(place, name), says, source
        )

    return tuple(rule(keyword) for keyword in keywords)


# ---- conditions of rules ----


def _typed(*kinds: str) -> Where:
    return lambda place, _: bool(place.types & set(kinds))


def _beside(*keywords: str) -> Where:
    return lambda place, _: any(keyword in place.node for keyword in keywords)


def _format_but(*known: str) -> Where:
    return lambda place, _: place.node["format"] not in known


def _without(*supported: str) -> Where:
    """Applies to a keyword that asserts something and is not in `supported`."""
    return lambda place, keyword: keyword in ASSERTING and keyword not in supported and keyword[0] != "$"


def _matches(part: str) -> Where:
    """Applies to a pattern that contains `part`, a regular expression. An escaped character counts as
    text."""
    found = re.compile(rf"(?s)(?:[^\\]|\\.)*?(?:{part})")
    return lambda place, keyword: (
        isinstance(place.node[keyword], str) and bool(found.match(place.node[keyword]))
    )


def _at_root(place: Subschema, _: str) -> bool:
    return place.path == ()


def _root_is_no_object(place: Subschema, _: str) -> bool:
    return place.path == () and place.types != {"object"}


def _optional(place: Subschema, _: str) -> bool:
    return bool(_optional_names(place.node))


def _optional_names(node: Node) -> list[str]:
    names, needed = node.get("properties"), node.get("required")
    needed = needed if isinstance(needed, list) else []
    return [name for name in names if name not in needed] if isinstance(names, dict) else []


def _open(place: Subschema, keyword: str) -> bool:
    return place.is_object and place.node.get(keyword) is not False


def _unsaid(place: Subschema, keyword: str) -> bool:
    return place.is_object and keyword not in place.node


def _ref_has_siblings(place: Subschema, _: str) -> bool:
    return "$ref" in place.node and any(name[0:1] != "$" for name in place.node)


def _is_recursive(place: Subschema, _: str) -> bool:
    target = led(place.document.schema, place.node.get("$ref"))
    return target is not None and target[0] in place.document.recursive


def _is_remote(place: Subschema, _: str) -> bool:
    return isinstance(place.node.get("$ref"), str) and not place.node["$ref"].startswith("#")


def _values(*kinds: type) -> Where:
    """Applies to an `enum` or `const` with a value outside these types."""

    def where(place: Subschema, keyword: str) -> bool:
        held = place.node[keyword]
        values = [held] if keyword == "const" else held if isinstance(held, list) else []
        return any(type(value) not in kinds for value in values)

    return where


def _holds_ref(place: Subschema, keyword: str) -> bool:
    held = place.node[keyword]
    return isinstance(held, list) and any(isinstance(inner, dict) and "$ref" in inner for inner in held)


def _needed_recursion(place: Subschema, _: str) -> bool:
    """Returns whether a recursive reference stands below a required key of its object."""
    above = place.document.at.get(place.path[:-2], {}) if place.path[-2:-1] == ("properties",) else {}
    needed = above.get("required")
    return _is_recursive(place, _) and isinstance(needed, list) and place.path[-1] in needed


# ---- schemas that providers read instead ----


def _closed(place: Subschema) -> Node:
    return {**place.node, "additionalProperties": False}


def _all_required(place: Subschema) -> Node:
    return {**place.node, "required": list(place.node.get("properties") or ())}


def _as_any_of(place: Subschema) -> Node:
    return {"anyOf" if keyword == "oneOf" else keyword: held for keyword, held in place.node.items()}


def _only_branch(place: Subschema) -> Node:
    return {**_dropped(place.node, "allOf"), **place.node["allOf"][0]}


def _inlined(place: Subschema) -> Node:
    """Returns the target of a reference. A keyword beside the reference replaces the same keyword of the
    target."""
    found = led(place.document.schema, place.node["$ref"])
    held = place.document.schema if found is None else found[1]
    return _dropped({**held, **place.node}, "$ref") if isinstance(held, dict) else place.node


# ---- numbers that limits count ----


def _names(document: Document) -> int:
    return sum(
        len(node["properties"]) for _, node in document.nodes if isinstance(node.get("properties"), dict)
    )


def _levels(document: Document) -> int:
    """Returns the nesting depth of schemas of objects. The target of a reference does not count below the
    reference."""
    deepest = 0
    holders = {path for path, node in document.nodes if "properties" in node}
    for path in holders:
        deepest = max(deepest, sum(path[:cut] in holders for cut in range(len(path) + 1)))
    return deepest


def _enums(document: Document) -> list[list[Any]]:
    return [node["enum"] for _, node in document.nodes if isinstance(node.get("enum"), list)]


def _characters(document: Document) -> int:
    texts: list[str] = [str(value) for enum in _enums(document) for value in enum]
    for _, node in document.nodes:
        texts += [str(node["const"])] if "const" in node else []
        for keyword in ("properties", "$defs", "definitions"):
            texts += map(str, node[keyword]) if isinstance(node.get(keyword), dict) else ()
    return sum(map(len, texts))


def _large_enum(document: Document) -> int:
    large = (enum for enum in _enums(document) if len(enum) > 250)
    return max((sum(len(value) for value in enum if isinstance(value, str)) for enum in large), default=0)


def _optional_keys(document: Document) -> int:
    return sum(len(_optional_names(node)) for _, node in document.nodes)


def _unions(document: Document) -> int:
    return sum("anyOf" in node or isinstance(node.get("type"), list) for _, node in document.nodes)


# ---- the providers ----

_CONDITIONS = ("if", "then", "else", "dependentSchemas")
_CONTAINS = ("contains", "minContains", "maxContains")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
_LOOKS = r"\(\?<?[=!]"
_AI = "https://github.com/pydantic/pydantic-ai/blob/main/pydantic_ai_slim/pydantic_ai/profiles/openai.py"
_LOOKAROUND = "https://github.com/vercel/ai/pull/21037"  # the API's error message
_URI = "https://github.com/RooCodeInc/Roo-Code/pull/10198"  # the API's error message, and the list

# What `transform_schema` keeps of each type beside "$ref", "$defs", unions, "enum" and "const".
_TRANSFORMED = {
    "object": ("properties", "required", "additionalProperties"),
    "string": ("format",),
    "array": ("items", "minItems"),
}
_COMBINED = ("anyOf", "oneOf", "allOf")
_PRIMITIVES = (str, int, float, bool, type(None))


def _literal(node: Node) -> bool:
    enum = node.get("enum")
    listed = isinstance(enum, list) and enum != [] and all(isinstance(value, _PRIMITIVES) for value in enum)
    return listed or ("const" in node and isinstance(node["const"], _PRIMITIVES))


def _transform_drops(place: Subschema, keyword: str) -> bool:
    node = place.node
    if "$ref" in node:
        return keyword not in ("$ref", "$defs")
    if keyword in _COMBINED:  # The package keeps only the first of these keywords that the schema has.
        return keyword != next(name for name in _COMBINED if name in node)
    if keyword in ("enum", "const"):
        return not _literal({keyword: node[keyword]})
    literal, kind = _literal(node), node.get("type")
    if keyword == "type":
        return literal or any(name in node for name in _COMBINED)
    kept = () if literal or not isinstance(kind, str) else _TRANSFORMED.get(kind, ())
    if keyword == "format" and keyword in kept:
        return node["format"] not in (*_FORMATS, "uri")
    if keyword == "minItems" and keyword in kept:
        return node["minItems"] not in (0, 1)
    return keyword not in kept and keyword != "$defs"


def _transform_refuses(place: Subschema, _: str) -> bool:
    node = place.node
    if "$ref" in node or _literal(node):
        return False
    kinds = node.get("type")
    return not isinstance(kinds, str) and (kinds is not None or not any(name in node for name in _COMBINED))


_SCHEMA_FIELDS = (  # the fields of google.genai's types.Schema
    "additionalProperties", "anyOf", "enum", "format", "items", "maxItems", "maxLength", "maxProperties",
    "maximum", "minItems", "minLength", "minProperties", "minimum", "pattern", "properties", "required",
    "type",
)  # fmt: skip


def _is_field(place: Subschema) -> bool:
    """Returns whether the package validates this schema. It does not validate `additionalProperties`."""
    steps = itertools.pairwise((None, *place.path))
    return not any(step == "additionalProperties" and above != "properties" for above, step in steps)


PROVIDERS: dict[str, Provider] = {
    "openai": Provider(
        "https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas",
        (
            Rule("type", "refuses", _root_is_no_object, "the root must be an object"),
            *_all("refuses", "anyOf", where=_at_root, says="the root must not be anyOf"),
            Rule("additionalProperties", "refuses", _open, "it must be false in objects", becomes=_closed),
            Rule("required", "refuses", _optional, "all fields must be required", becomes=_all_required),
            *_all("refuses", "allOf", "not", "dependentRequired", *_CONDITIONS),
            *_all("refuses", "oneOf", "minLength", "maxLength", "patternProperties", "unevaluatedProperties",
                  "propertyNames", "minProperties", "maxProperties", "unevaluatedItems", *_CONTAINS,
                  "uniqueItems", source=_AI),
            *_all("refuses", "format", where=_format_but(*_FORMATS), says=f"one of {', '.join(_FORMATS)}",
                  source=_URI),
            *_all("refuses", "pattern", where=_matches(_LOOKS), says="no lookaround", source=_LOOKAROUND),
            Rule("$ref", "refuses", _ref_has_siblings, "nothing may stand beside it", _AI),
        ),
        (
            Limit("properties", 5000, _names),
            Limit("levels of objects", 10, _levels),
            Limit("values of enum", 1000, lambda document: sum(map(len, _enums(document)))),
            Limit("characters of names, enum and const", 120_000, _characters),
            Limit("characters in an enum of more than 250 values", 15_000, _large_enum),
        ),
        Sdk(
            "openai",
            "3.57.0",
            "https://github.com/openai/openai-python/blob/main/src/openai/lib/_pydantic.py",
            (
                Rule("additionalProperties", "rewrites",
                     lambda place, name: place.node.get("type") == "object" and name not in place.node,
                     "false where it is missing", becomes=_closed),
                Rule("required", "rewrites",
                     lambda place, name: isinstance(place.node.get("properties"), dict)
                     and place.node.get(name) != list(place.node["properties"]),
                     "the names of the properties", becomes=_all_required),
                Rule("allOf", "rewrites",
                     lambda place, name: isinstance(place.node.get(name), list)
                     and len(place.node[name]) == 1,
                     "the only branch stands in its place", becomes=_only_branch),
                Rule("$ref", "rewrites", lambda place, name: name in place.node and len(place.node) > 1,
                     "what it refers to stands in its place", becomes=_inlined),
            ),
        ),
    ),
    # "If you use an unsupported feature, you receive a 400 error."
    "anthropic": Provider(
        "https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations",
        (
            Rule("*", "refuses",
                 _without("type", "enum", "const", "anyOf", "allOf", "properties", "required",
                          "additionalProperties", "items", "minItems", "format", "pattern"),
                 "it is in no list of what is supported"),
            *_all("refuses", "enum", "const", where=_values(*_PRIMITIVES),
                  says="no arrays and objects in it"),
            *_all("refuses", "minItems", where=lambda place, name: place.node[name] not in (0, 1),
                  says="0 or 1"),
            Rule("additionalProperties", "refuses", _open, "it must be false in objects", becomes=_closed),
            *_all("refuses", "allOf", where=_holds_ref, says="no $ref in it"),
            *_all("refuses", "format", where=_format_but(*_FORMATS, "uri"),
                  says=f"one of {', '.join((*_FORMATS, 'uri'))}"),
            *_all("refuses", "pattern", where=_matches(_LOOKS + r"|\\[bB1-9]"),
                  says="no lookaround, backreference or word boundary"),
            Rule("$ref", "refuses", _is_recursive, "no recursion"),
            Rule("$ref", "refuses", _is_remote, "no other document"),
        ),
        (Limit("optional properties", 24, _optional_keys), Limit("unions", 16, _unions)),
        Sdk(
            "anthropic",
            "2.14.0",
            "https://github.com/anthropics/anthropic-sdk-python/blob/main/src/anthropic/lib/_parse"
            "/_transform.py",
            (
                Rule("type", "refuses", _transform_refuses, "one type, a union, or primitive values"),
                Rule("additionalProperties", "rewrites",
                     lambda place, name: place.node.get("type") == "object" and not _literal(place.node)
                     and "$ref" not in place.node and place.node.get(name) is not False,
                     "always false", becomes=_closed),
                Rule("oneOf", "rewrites",
                     lambda place, name: name in place.node and not _transform_drops(place, name),
                     "as anyOf", becomes=_as_any_of),
                Rule("*", "drops", _transform_drops, "into the description"),
            ),
        ),
    ),
    # "While the full JSON Schema may be sent, not all features are supported."
    "gemini": Provider(
        "https://googleapis.github.io/kotlin-genai/google-genai-kotlin/com.google.genai.kotlin.types"
        "/-generate-content-config/response-json-schema.html",
        (
            Rule("*", "drops",
                 _without("type", "format", "enum", "items", "prefixItems", "minItems", "maxItems", "minimum",
                          "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required"),
                 "it is in no list of what is supported"),
            *_all("drops", "enum", where=_values(str, int, float), says="for strings and numbers"),
            Rule("oneOf", "rewrites", says="as anyOf", becomes=_as_any_of),
            Rule("$ref", "refuses", _ref_has_siblings, "nothing may stand beside it"),
            Rule("$ref", "refuses", _needed_recursion, "recursion only in keys that are not required"),
        ),
        sdk=Sdk(
            "google-genai",
            "3.6.1",
            "https://github.com/googleapis/python-genai/blob/main/google/genai/_transformers.py",
            (
                *_all("refuses", "const", says="response_schema takes strings only",
                      where=lambda place, name: not isinstance(place.node[name], str)
                      or place.node.get("type") != "string" or "anyOf" in place.node or "$ref" in place.node),
                *_all("refuses", "enum", says="response_schema takes strings only",
                      where=lambda place, name: _values(str)(place, name) and _is_field(place)),
                *_all("refuses", "type", where=lambda place, name: isinstance(place.node[name], list),
                      says="response_schema takes one type"),
                Rule("*", "refuses", lambda place, name: _is_field(place)
                     and _without(*_SCHEMA_FIELDS, "const")(place, name), "no field of response_schema"),
            ),
        ),
    ),
    # The page promises that answers follow the schema and lists no exception.
    "mistral": Provider(
        "https://docs.mistral.ai/capabilities/structured-output/custom_structured_output/",
        sdk=Sdk(
            "mistralai",
            "3.7.0",
            "https://github.com/mistralai/client-python/blob/main/src/mistralai/extra/utils"
            "/_pydantic_helper.py",
            (
                Rule("additionalProperties", "rewrites",
                     lambda place, name: place.node.get("type") == "object"
                     and place.node.get(name) is not False,
                     "always false", becomes=_closed),
            ),
        ),
    ),
    # llguidance enforces a keyword or raises an error. These keywords are not in its list of supported
    # features.
    "llguidance": Provider(
        "https://github.com/guidance-ai/llguidance/blob/main/docs/json_schema.md",
        _all(
            "refuses", *_CONDITIONS, *_CONTAINS, "not", "uniqueItems", "propertyNames", "dependentRequired",
            "unevaluatedItems", "unevaluatedProperties",
        ),
    ),
    # "Unsupported features are skipped silently", and prefixItems "is broken".
    "llama.cpp": Provider(
        "https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md",
        (
            *_all("drops", *_CONDITIONS, "contains", "minContains", "not", "uniqueItems",
                  "patternProperties"),
            *_all("drops", *_BOUNDS, where=lambda place, _: "integer" not in place.types,
                  says="for integers only"),
            *_all("drops", "format", where=lambda place, name: place.node[name] in ("uri", "email")),
            *_all("misreads", "prefixItems", says="broken"),
            *_all("misreads", "properties", where=_beside("anyOf", "oneOf"),
                  says="not beside anyOf or oneOf"),
            *_all("refuses", "pattern", where=_matches(r"(?<!.)(?!\^)|(?<!\$)\Z"),
                  says="it must start with ^ and end with $"),
            Rule("additionalProperties", "misreads", _unsaid, "false where it is missing", becomes=_closed),
        ),
    ),
    # Source: vLLM's function has_xgrammar_unsupported_json_features.
    "vllm-xgrammar": Provider(
        "https://github.com/vllm-project/vllm/blob/main/vllm/v1/structured_output/backend_xgrammar.py",
        (
            *_all("refuses", *_CONTAINS, "uniqueItems", where=_typed("array")),
            *_all("refuses", "multipleOf", where=_typed("number", "integer")),
            *_all("refuses", "format", says="a format that it has",
                  where=lambda place, name: "string" in place.types and place.node[name] not in (
                      *_FORMATS, "uri", "uri-reference", "uri-template", "json-pointer",
                      "relative-json-pointer")),
            *_all("refuses", "minLength", "maxLength", says="not beside pattern or format",
                  where=lambda place, _: "string" in place.types
                  and ("pattern" in place.node or "format" in place.node)),
            *_all("refuses", "propertyNames", says="not beside other keywords of keys",
                  where=lambda place, _: "object" in place.types and (
                      "properties" in place.node or "patternProperties" in place.node
                      or isinstance(place.node.get("additionalProperties"), dict)
                      or place.node.get("unevaluatedProperties", True) is not True)),
            *_all("refuses", "patternProperties", says="one, and not beside properties",
                  where=lambda place, name: "object" in place.types and isinstance(place.node[name], dict)
                  and ("properties" in place.node or len(place.node[name]) > 1)),
        ),
    ),
}  # fmt: skip


# ---- rewrites. Each is proved equal to the schema before it is offered ----


def _dropped(node: Node, *keywords: str) -> Node:
    return {keyword: held for keyword, held in node.items() if keyword not in keywords}


def _whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _listed(node: Node) -> Node | None:
    """Writes the integers between two bounds as an `enum`."""
    low, high = node.get("minimum"), node.get("maximum")
    if not _whole(low) and _whole(node.get("exclusiveMinimum")):
        low = node["exclusiveMinimum"] + 1
    if not _whole(high) and _whole(node.get("exclusiveMaximum")):
        high = node["exclusiveMaximum"] - 1
    step = node.get("multipleOf", 1)
    if node.get("type") != "integer" or not (_whole(low) and _whole(high) and _whole(step) and step > 0):
        return None
    first = -(-low // step) * step
    if not first <= high < first + _RANGE * step:
        return None
    return _dropped(node, *_BOUNDS, "multipleOf", "type") | {"enum": list(range(first, high + 1, step))}


def _stepped(old: str, new: str, by: int) -> Callable[[Node], Node | None]:
    def of(node: Node) -> Node | None:
        if node.get("type") != "integer" or not _whole(node.get(old)) or new in node:
            return None
        return _dropped(node, old) | {new: node[old] + by}

    return of


def _as_pattern(node: Node) -> Node | None:
    low, high = node.get("minLength", 0), node.get("maxLength", "")
    if node.get("type") != "string" or "pattern" in node:
        return None
    return _dropped(node, "minLength", "maxLength") | {"pattern": rf"^[\s\S]{{{low},{high}}}$"}


def _merged(node: Node) -> Node | None:
    """Merges the branches of `allOf` into one schema; None if a keyword would stand twice."""
    out = _dropped(node, "allOf")
    for branch in node["allOf"] if isinstance(node["allOf"], list) else ():
        if not isinstance(branch, dict) or out.keys() & branch.keys() or "$ref" in branch:
            return None
        out |= branch
    return out


def _split(node: Node) -> Node | None:
    """Writes a list of types as `anyOf`. Each branch has one type and the keywords about this type."""
    kinds = node.get("type")
    if not isinstance(kinds, list) or "anyOf" in node:
        return None
    about = {keyword: ABOUT[keyword] for keyword in node if keyword in ABOUT}

    def branch(kind: str) -> Node:
        own = "number" if kind == "integer" else kind
        return {"type": kind, **{keyword: node[keyword] for keyword, held in about.items() if held == own}}

    return _dropped(node, "type", *about) | {"anyOf": [branch(kind) for kind in kinds]}


_REWRITES: dict[str, tuple[Callable[[Node], Node | None], ...]] = {
    "const": (lambda node: None if "enum" in node else _dropped(node, "const") | {"enum": [node["const"]]},),
    "oneOf": (lambda node: None if "anyOf" in node else _dropped(node, "oneOf") | {"anyOf": node["oneOf"]},),
    "allOf": (_merged,),
    "exclusiveMinimum": (_stepped("exclusiveMinimum", "minimum", 1), _listed),
    "exclusiveMaximum": (_stepped("exclusiveMaximum", "maximum", -1), _listed),
    "minimum": (_listed,),
    "maximum": (_listed,),
    "multipleOf": (_listed,),
    "minLength": (_as_pattern,),
    "maxLength": (_as_pattern,),
    "type": (_split,),
    "$ref": (
        lambda node: (
            None if "anyOf" in node else _dropped(node, "$ref") | {"anyOf": [{"$ref": node["$ref"]}]}
        ),
    ),
}  # fmt: skip


def _broken(rules: tuple[Rule, ...], place: Subschema) -> Iterator[tuple[str, Rule]]:
    """Returns the rules that apply to a place, each with its keyword."""
    for rule in rules:
        names = [name for name in ASSERTING if name in place.node] if rule.keyword == "*" else [rule.keyword]
        yield from ((name, rule) for name in names if rule.where(place, name))


def _counted(rules: tuple[Rule, ...], place: Subschema) -> collections.Counter[str]:
    """Returns the number of rules that apply to a schema and to the schemas in it, by keyword."""
    inner = (Subschema(place.document, path, node) for path, node in schemas_in(place.node, place.path))
    return collections.Counter(name for held in inner for name, _ in _broken(rules, held))


@roomy
def lint_for(schema: Any, provider: str, **options: Any) -> list[Finding]:
    """Finds the keywords of a schema that a provider refuses, drops or reads in another way.

    Args:
        schema: a JSON Schema or a Python type. provider: a name in `PROVIDERS`.
        options: `draft`, `registry` and `formats`.

    Returns:
        An error for each refused keyword, and a warning for each keyword that is dropped or read in another
        way. The finding is a hint if it is proved that dropping the keyword changes nothing.

    Raises:
        ValueError: an unknown provider. GrammarError: a malformed schema.
    """
    one_of("provider", provider, tuple(PROVIDERS))
    row, search = PROVIDERS[provider], _Search(operand(schema, **options).document, provider, options)
    try:
        nodes = search.document.nodes
    except RecursionError:
        raise GrammarError("the schema is nested too deeply") from None
    found = [finding for path, node in nodes for finding in search.findings(path, node)]
    for limit in row.limits:
        count = limit.measure(search.document)
        if count > limit.most:
            words = f"{provider} refuses it: {count} {limit.of}, at most {limit.most} ({row.address})"
            found.append(Finding("", "", "error", words))
    return found


class _Search:
    def __init__(self, schema: Any, provider: str, options: dict[str, Any]) -> None:
        self.document: Document = Document(schema)
        self.provider: str = provider
        self.row: Provider = PROVIDERS[provider]
        self.options: dict[str, Any] = options
        self.end: float = time.monotonic() + _SECONDS

    def findings(self, path: Path, node: Node) -> Iterator[Finding]:
        place, told = Subschema(self.document, path, node), set()
        sdk = self.row.sdk
        changed = list(_broken(sdk.rules, place)) if sdk is not None else []
        for keyword, rule in _broken(self.row.rules, place):
            told.add(keyword)
            words = f"{self.provider} {rule.effect} it{rule.says and ': ' + rule.says}"
            words += f" ({rule.source or self.row.address})"
            also = next((other for name, other in changed if name == keyword), None)
            if sdk is not None and also is not None:
                words += f"; its package {sdk.package} {sdk.version} {also.effect} it ({sdk.source})"
            yield self.finding(place, keyword, rule, words)
        for keyword, rule in changed:
            if keyword not in told and sdk is not None:
                told.add(keyword)
                words = (
                    f"the package {sdk.package} {sdk.version} {rule.effect} it: {rule.says} ({sdk.source})"
                )
                yield self.finding(place, keyword, rule, words)

    def finding(self, place: Subschema, keyword: str, rule: Rule, words: str) -> Finding:
        change, equal = self.change(place, keyword, rule)
        level: Literal["error", "warning", "hint"] = "error" if rule.effect == "refuses" else "warning"
        if equal and level == "warning":
            level = "hint"
        return Finding(pointer_of(place.path), keyword, level, words + (change and f"; {change}"))

    def change(self, place: Subschema, keyword: str, rule: Rule) -> tuple[str, bool]:
        """Returns a rewrite, and whether it is proved equal to the schema."""
        if time.monotonic() > self.end:
            return f"what that changes was not asked: {_SECONDS:.0f} s were used", False
        if rule.becomes is not None:
            wider, narrower = self.apart(place, rule.becomes(place))
            return self.words(wider, narrower, "so read, it is proved equal", "so read,")
        if keyword not in place.node or rule.effect == "misreads":
            return "", False
        rules = self.row.rules
        before = _counted(rules, place)
        for make in _REWRITES.get(keyword, ()):
            node = make(place.node)
            if node is None:
                continue
            after = _counted(rules, Subschema(Document(self.put(place.path, node)), place.path, node))
            fits = after < before if rule in rules else after <= before
            if fits and self.apart(place, node) == ("", ""):
                return f"write {json.dumps(node, ensure_ascii=False)[:400]}: it is proved equal", True
        wider, narrower = self.apart(place, _dropped(place.node, keyword))
        return self.words(
            wider, narrower, "leave it out: the schema without it is proved equal", "without it"
        )

    def put(self, path: Path, node: Node) -> Any:
        """Returns the document with another schema at a path."""
        if not path:
            return node
        copy = _removed(self.document.schema, path)
        holder = value_at(copy, path[:-1])
        if isinstance(holder, list) and isinstance(path[-1], int):
            holder.insert(path[-1], node)
        else:
            holder[path[-1]] = node
        return copy

    def apart(self, place: Subschema, node: Node) -> tuple[str | None, str | None]:
        """Returns a shortest value that only the other schema takes, and a shortest value that only this
        schema takes. "" means: there is provably no such value. None means: unknown."""
        other = self.put(place.path, node)
        try:
            sides = ((self.document.schema, other), (other, self.document.schema))
            found = [contains(wide, narrow, **self.options) for wide, narrow in sides]
        except GrammarError:
            return None, None
        return (
            "" if found[0].holds else found[0].witness,
            "" if found[1].holds else found[1].witness,
        )

    @staticmethod
    def words(wider: str | None, narrower: str | None, equal: str, change: str) -> tuple[str, bool]:
        if wider == narrower == "":
            return equal, True
        if wider:
            return f"{change} {wider} is valid, too", False
        if narrower:
            return f"{change} {narrower} is no longer valid", False
        return "what that changes is not known", False
