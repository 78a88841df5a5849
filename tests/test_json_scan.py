"""The scanner of JSON at every prefix of a text, compared with `json.loads`; pointers compared with
referencing."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from referencing import Registry
from referencing.jsonschema import DRAFT202012

from oracles import strategies
from oracles.strategies import Seeded, Source
from structgen._json_scan import Scan
from structgen._pointers import led, pointer_of, value_at
from structgen.generation.editing import span_of

NAMES = ("a", "b", "a/b", "~", "é", "", "0", 'q"x')
SCALARS = (None, True, False, 1, -2.5, 1e9, "", "x", 'a"b', "\\", "é\n", "{[,:")


def value(source: Source, depth: int) -> Any:
    kind = source.integer(0, 9)
    if depth and kind <= 2:
        return [value(source, depth - 1) for _ in range(source.integer(0, 3))]
    if depth and kind <= 6:
        return {source.pick(NAMES): value(source, depth - 1) for _ in range(source.integer(0, 3))}
    return source.pick(SCALARS)


def places(value: Any, path: tuple[str | int, ...] = ()) -> dict[tuple[str | int, ...], Any]:
    """Returns every value by its path, in the order of the text."""
    found = {path: value}
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in below:
        found |= places(held, (*path, key))
    return found


def scanned(text: str) -> dict[tuple[str | int, ...], tuple[int, int]]:
    """Returns the start and the end of each value."""
    found: dict[tuple[str | int, ...], tuple[int, int]] = {}
    scan = Scan(text)
    for part in scan:
        path = tuple(step for step in scan.path if step is not None)
        if part.kind == "close":
            found[path] = (found[path][0], part.end)
        elif part.kind != "key":
            found[path] = (part.begin, part.end)
    return found


def test_every_value_has_its_path_and_its_place() -> None:
    for seed in range(300):
        source = Seeded(seed)
        whole = value(source, 4)
        text = strategies.text(source, whole, shuffle=False)
        whole = json.loads(text)  # of a repeated key the last value counts
        found, known = scanned(text), places(whole)
        assert found.keys() >= known.keys()
        for path, held in known.items():
            begin, end = found[path]
            assert json.loads(text[begin:end]) == held
            assert span_of(text, pointer_of(path)) == (begin, end)


def test_references_lead_where_referencing_goes() -> None:
    for seed in range(100):
        whole = {"held": value(Seeded(seed), 4)}
        resource = DRAFT202012.create_resource(whole)
        resolver = Registry().resolver_with_root(resource)
        for path, held in places(whole).items():
            reference = "#" + quote(pointer_of(path))
            found = led(whole, reference)
            assert found == (path, held) and value_at(whole, path) == held
            assert resolver.lookup(reference).contents == held
            assert led(whole, f"{reference}/no such step") is None
    assert led({}, "other.json") is led({"/a": 1}, "/a") is led([1], "#/-1") is led({}, None) is None


def test_the_beginning_of_a_text_has_the_parts_of_the_whole() -> None:
    for seed in range(100):
        source = Seeded(seed)
        text = strategies.text(source, value(source, 4), shuffle=False)
        parts = list(Scan(text))
        for end in range(len(text)):
            begun = list(Scan(text[:end]))
            sure = [part for part in begun if part.whole]
            assert sure == parts[: len(sure)] and len(begun) - len(sure) <= 1
