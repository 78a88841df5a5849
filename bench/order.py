"""Judges the order of keys without the engine: whether an instance is out of order *within one* `properties`
map.

Enters: a schema and an instance that satisfies it (values as `json.loads` gives them, keys in order).
Leaves: the inversions: (pointer of the object, pointer of the map, the key that came too late, the key
it came after). Only maps that bind the instance count: those of allOf, $ref, a taken if-branch, and of
anyOf/oneOf only where every branch that holds is out of order itself. Cost: `jsonschema` once a branch.

The judge shares no code with the engine. So it tells whether the instance causes a refusal under
property_order="schema" (keys of one map are out of order) or the engine does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import jsonschema
from jsonschema.validators import validator_for
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with


@dataclass(frozen=True, slots=True)
class Inversion:
    instance: str  # JSON pointer of the object
    map: str  # JSON pointer of the schema whose `properties` lists both keys in the other order
    late: str
    after: str


def inversions(schema: object, instance: object) -> list[Inversion]:
    kind = validator_for(schema, default=jsonschema.Draft202012Validator)
    uri = kind.META_SCHEMA.get("$schema", kind.META_SCHEMA.get("id"))
    specification = specification_with(uri.rstrip("#") if "draft" not in uri else uri)
    resource = specification.create_resource(schema)
    registry = REGISTRY.with_resource(resource.id() or "", resource)
    resolver = registry.resolver_with_root(resource)
    return list(_Walk(kind, registry).at(schema, resolver, "#", instance, "", 0))


class _Walk:
    def __init__(self, kind, registry) -> None:
        self.kind = kind
        self.registry = registry

    def holds(self, schema, resolver, instance) -> bool:
        checker = self.kind.FORMAT_CHECKER
        validator = self.kind(schema, registry=self.registry, _resolver=resolver, format_checker=checker)
        return validator.is_valid(instance)

    def at(self, schema, resolver, where, instance, path, depth) -> Iterator[Inversion]:
        if not isinstance(schema, dict) or depth > 200:
            return
        deeper = depth + 1
        if isinstance(ref := schema.get("$ref"), str):
            try:
                found = resolver.lookup(ref)
            except Unresolvable:
                found = None
            if found is not None:
                yield from self.at(found.contents, found.resolver, ref, instance, path, deeper)
        for i, part in enumerate(schema.get("allOf") or ()):
            yield from self.at(part, resolver, f"{where}/allOf/{i}", instance, path, deeper)
        for word in ("anyOf", "oneOf"):
            branches = [
                list(self.at(part, resolver, f"{where}/{word}/{i}", instance, path, deeper))
                for i, part in enumerate(schema.get(word) or ())
                if self.holds(part, resolver, instance)
            ]
            if branches and all(branches):
                yield from branches[0]
        if "if" in schema:
            taken = "then" if self.holds(schema["if"], resolver, instance) else "else"
            for word in ("if", taken) if taken == "then" else (taken,):
                yield from self.at(schema.get(word), resolver, f"{where}/{word}", instance, path, deeper)
        if isinstance(instance, dict):
            yield from self.members(schema, resolver, where, instance, path, deeper)
        elif isinstance(instance, list):
            yield from self.items(schema, resolver, where, instance, path, deeper)

    def members(self, schema, resolver, where, instance, path, depth) -> Iterator[Inversion]:
        listed = schema.get("properties")
        listed = listed if isinstance(listed, dict) else {}
        place = {key: i for i, key in enumerate(listed)}
        highest = ""
        for key in instance:
            if key in place:
                if highest and place[key] < place[highest]:
                    yield Inversion(path or "/", where, key, highest)
                elif not highest or place[key] > place[highest]:
                    highest = key
        patterns = schema.get("patternProperties")
        patterns = patterns if isinstance(patterns, dict) else {}
        for key, value in instance.items():
            here = f"{path}/{key}"
            met = False
            if key in listed:
                met = True
                yield from self.at(listed[key], resolver, f"{where}/properties/{key}", value, here, depth)
            for pattern, part in patterns.items():
                if re.search(pattern, key):
                    met = True
                    yield from self.at(part, resolver, f"{where}/patternProperties", value, here, depth)
            if not met:
                part = schema.get("additionalProperties")
                yield from self.at(part, resolver, f"{where}/additionalProperties", value, here, depth)
        for word in ("dependentSchemas", "dependencies"):
            for key, part in (schema.get(word) or {}).items():
                if key in instance:
                    yield from self.at(part, resolver, f"{where}/{word}/{key}", instance, path, depth)

    def items(self, schema, resolver, where, instance, path, depth) -> Iterator[Inversion]:
        prefix = schema.get("prefixItems")
        rest = schema.get("items")
        if isinstance(rest, list):
            prefix, rest = rest, schema.get("additionalItems")
        prefix = prefix or []
        for i, value in enumerate(instance):
            part = prefix[i] if i < len(prefix) else rest
            yield from self.at(part, resolver, f"{where}/items", value, f"{path}/{i}", depth)
