"""Files of searches, for `sg.search(resume=path)`.

Enters: an engine, a path. Leaves: a JSON file of about 150 bytes for each place of the tree, or an engine
with the saved state. Cost: one pass; loading also takes two forwards, which recognise the model.

The problem. An interrupted search has to go on in another process with the same counts, as if there had been
no interruption. By then the caller may pass another model, and the file may be damaged or come from a
stranger.

The idea. The file has the tree of places, the texts, the frontier and the counts, but no vectors, because a
vector has half a megabyte at 131,072 ids. The file lists the prefixes that had a vector, as a tree of
[parent, token]:

    [[-1, -1], [0, 5], [1, 7], [0, 6]]        the prefixes (), (5), (5, 7), (6)

If a later run needs such a prefix again, the model computes its vector again. The search counts no forward
pass, because it counted the first one. So a search in parts gives the result and the counts of a search in
one run, and each run spends its forward passes on new prefixes.

`probes` are some vectors in brief; `check_model` compares them with what the model gives now.

Invariants.
- The file appears whole or not at all.
- The file holds a digest of its content, so that damage is found. Somebody may forge a file with a fitting
  digest, so each number of the file is checked as well (`_restore`): each kind of value has a check in
  `_KINDS`.
- A search goes on only with equal parts of the target, settings, seed and scores. An error names what
  differs.

Rejected. Thin vectors of 5 kB in the file: pieces are drawn from the whole row, and potentials need it.
(`save_trie` keeps vectors.)
"""

from __future__ import annotations

import dataclasses
import hashlib
import heapq
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import StructgenError
from .best_first import BestFirst, SearchPlace, Written
from .chance import Source
from .logspace import NEVER
from .target import AnyText, Target
from .trie import Node
from .vector import Vector
from .walk import Walk, alike, telling

_FORMAT = 2
_KEPT = ("tokens", "logprob", "score", "prior", "rank", "ended", "depth", "opened", "rest", "visits", "total",
         "best", "closed")  # fmt: skip
_SAID = {"law": "temperature, top_k or top_p", "ends": "set of end tokens", "potentials": "potential"}
_FAR = 300.0  # nats; the log weight of every token is smaller
_PROBED = 64  # the tokens of a vector that are compared to recognise a model
# Errors that reading a damaged file may raise.
_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError)


def save_search(engine: BestFirst, path: str | os.PathLike[str]) -> None:
    """Writes a search. The file appears whole or not at all."""
    body = _state(engine)
    path = Path(path)
    partial = path.with_name(path.name + ".part")
    partial.write_text(
        json.dumps({"format": _FORMAT, "digest": _digest(body), "search": body}), encoding="utf-8"
    )
    os.replace(partial, path)


def load_search(engine: BestFirst, path: str | os.PathLike[str]) -> None:
    """Gives a new engine the state of the saved one.

    Raises:
        StructgenError: the file is damaged, or belongs to another search; the message says what differs.
    """
    name = f"the search in {os.fspath(path)!r}"
    data = Path(path).read_bytes()
    try:
        read = json.loads(data)
        found, body = read["format"], read["search"] if read["format"] == _FORMAT else None
        whole = body is None or _digest(body) == read["digest"]
    except _DAMAGED as error:
        raise StructgenError(f"{name} is damaged, or no search: {_fact(error)}") from None
    if body is None:
        raise StructgenError(f"{name} has format {found!r:.20}, not {_FORMAT}: begin a new one")
    if not whole:
        raise StructgenError(f"{name} is damaged: its digest is that of another content; begin a new one")
    try:
        differs = _differences(engine, body)
        if not differs:
            _restore(engine, body)
    except _DAMAGED as error:
        raise StructgenError(f"{name} is damaged: {_fact(error)}") from None
    if differs:
        raise StructgenError(
            f"{name} has another {' and another '.join(differs)}: go on with what it was begun with, or "
            "begin a new one"
        )
    try:
        check_model(engine.walker.target, _probed(body, engine))
    except _DAMAGED as error:
        raise StructgenError(f"{name} is damaged: {_fact(error)}") from None


def _fact(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:120]


def _digest(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _state(engine: BestFirst) -> dict[str, Any]:
    """Returns the search as JSON. Floats are read back exactly."""
    numbers = {id(place): at for at, place in enumerate(engine.places)}
    places = [
        [-1 if place.parent is None else numbers[id(place.parent)], *(getattr(place, name) for name in _KEPT)]
        for place in engine.places
    ]
    known, index = _known(engine)
    return {
        **_identity(engine),
        "ordered": engine.ordered,
        "spent": [engine.steps, engine.tokens, engine.forwards, engine.seconds],
        "places": places,
        "texts": [dataclasses.astuple(text) for text in engine.texts.values()],
        "left": [text.tokens for text in engine.left],
        "frontier": engine.frontier,
        "known": known,
        "probes": [
            [index[tokens], vector.ids.tolist(), vector.scores().tolist(), vector.tail]
            for tokens, vector in probes(engine)
            if tokens in index
        ],
    }


def _identity(engine: BestFirst) -> dict[str, Any]:
    """Returns the parts that must be equal for a search to go on."""
    scores = engine.scores
    return {
        "target": engine.walker.target.parts(),
        "plan": json.loads(json.dumps(dataclasses.asdict(engine.plan))),
        "seed": engine.seeds.seed,
        "scores": [one is not None for one in (scores.score, scores.heuristic, scores.reward)],
    }


def _differences(engine: BestFirst, body: dict[str, Any]) -> list[str]:
    """Returns the names of the parts that differ between the file and the call."""
    wanted = _identity(engine)
    parts = wanted.pop("target")
    names = {"plan": "setting of the method", "seed": "seed", "scores": "set of scores"}
    return other_parts(parts, body["target"]) + [
        names[name] for name, value in wanted.items() if body[name] != value
    ]


def other_parts(parts: Mapping[str, Any], others: Mapping[str, Any]) -> list[str]:
    """Returns the parts in which two targets differ, in the words of users."""
    return [_SAID.get(part, part) for part, value in parts.items() if others[part] != value]


def _known(engine: BestFirst) -> tuple[list[list[int]], dict[tuple[int, ...], int]]:
    """Returns the prefixes whose forwards were counted, as a tree of [parent's number, token], and their
    numbers."""
    trie = engine.walker.trie
    paths = {tuple(trie.tokens(node)) for node in trie.nodes()} | engine.paid
    tree: list[list[int]] = []
    index: dict[tuple[int, ...], int] = {}
    for tokens in sorted(paths, key=lambda tokens: (len(tokens), tokens)):
        if not tokens or tokens[:-1] in index:
            index[tokens] = len(tree)
            tree.append([index[tokens[:-1]], tokens[-1]] if tokens else [-1, -1])
    return tree, index


def probes(engine: BestFirst) -> list[tuple[tuple[int, ...], Vector]]:
    """Returns the vectors of some prefixes in brief. When a file is read, `check_model` compares these
    vectors with the vectors that the model gives."""
    found = []
    for node in telling(engine.walker.trie, 2):
        if node.known and len(node.row):
            row = node.row
            slots = sorted(row.best(_PROBED))
            scores = row.scores()
            weights = np.exp(scores - row.top)
            weights[slots] = 0.0
            brief = Vector(row.ids[slots], scores[slots], 0.0, tail=float(weights.sum()) + row.tail)
            found.append((tuple(engine.walker.trie.tokens(node)), brief))
    return found


def check_model(target: Target, seen: Sequence[tuple[tuple[int, ...], Vector]]) -> None:
    """Raises a StructgenError if a model gives other vectors than the search has seen."""
    walks = []
    for tokens, _ in seen:
        walk = Walk(Node(None, -1), Source(np.random.default_rng(0)))
        walk.tokens, walk.data = list(tokens), target.text(tokens)
        walks.append(walk)
    for (tokens, old), found in zip(seen, target.expand(walks), strict=True):
        if not alike(found, old):
            text = target.text(tokens).decode("utf-8", "replace")
            raise StructgenError(
                "the search to go on with was made with another model, which gave other probabilities after "
                f"{text[-40:]!r}: pass that model, or begin a new search"
            )


def _probed(body: dict[str, Any], engine: BestFirst) -> list[tuple[tuple[int, ...], Vector]]:
    paths = _paths(body["known"], engine.walker.target.vocabulary.vocab_size)
    found = []
    for at, ids, scores, tail in body["probes"]:
        given = np.array(ids, np.int32), np.array(scores, np.float64)
        weighs = (given[1] > NEVER).all() and (given[1] < _FAR).all() and _real(tail) >= 0
        if not len(ids) or np.any(np.diff(ids) <= 0) or not weighs:
            raise ValueError("a probe is no vector")
        grammar = engine.walker.target.grammar
        if not isinstance(grammar, AnyText) and not grammar.matcher().accept_tokens(list(paths[at])):
            raise ValueError("the grammar refuses a prefix")
        found.append((paths[at], Vector(*given, 0.0, tail=float(tail))))
    return found


def _paths(tree: Any, width: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for at, (parent, token) in enumerate(tree):
        if not at:
            found.append(())
        elif 0 <= _integer(parent) < at and 0 <= _integer(token) < width:
            found.append((*found[parent], token))
        else:
            raise ValueError(f"prefix {at} has no parent or an unknown token")
    return found


def _restore(engine: BestFirst, body: dict[str, Any]) -> None:
    """Gives the engine its state. Raises one of `_DAMAGED` if the numbers do not belong to a search."""
    target = engine.walker.target
    width, end = target.vocabulary.vocab_size, target.end
    for at, (parent, *values) in enumerate(body["places"]):
        place = engine.root
        if at:
            if not 0 <= _integer(parent) < at:
                raise ValueError(f"place {at} has no parent")
            place = SearchPlace(at, engine.places[parent], (), 0.0, 0.0)
            engine.places[parent].children.append(place)
            engine.places.append(place)
        elif parent != -1:
            raise ValueError("the tree has no root")
        for name, value in zip(_KEPT, values, strict=True):
            setattr(place, name, _KINDS[name](value))
        if bool(at) != bool(place.tokens) or not all(0 <= token < width for token in place.tokens):
            raise ValueError(f"place {at} has no tokens of this vocabulary")
        if place.ended != (place.tokens[-1:] == (end,)) or end in place.tokens[:-1]:
            raise ValueError(f"place {at} ends where its text does not")
    for ids, logprob, rank in body["texts"]:
        tokens = _ids(ids)
        target.text(tokens)
        engine.texts[tokens] = Written(tokens, _real(logprob), _real(rank))
    for place in engine.places:
        if place.ended:
            _ = engine.texts[place.path]
        leads_on = place.closed or place.ended or not all(child.closed for child in place.children)
        if engine.plan.select == "descent" and place.opened and not leads_on:
            raise ValueError(f"place {place.number} is open where all its children are closed")
    engine.left = [engine.texts[_ids(tokens)] for tokens in body["left"]]
    engine.frontier = []
    for deep, rank, number, siblings in body["frontier"]:
        if not 0 <= _integer(number) < len(engine.places):
            raise ValueError("the frontier has a place that is not there")
        engine.frontier.append((_real(deep), _real(rank), number, _integer(siblings)))
    heapq.heapify(engine.frontier)
    engine.ordered = _flag(body["ordered"])
    steps, tokens, forwards, seconds = body["spent"]
    engine.steps, engine.tokens, engine.forwards = (_count(x) for x in (steps, tokens, forwards))
    engine.seconds = max(0.0, _real(seconds))
    engine.paid = set(_paths(body["known"], width))


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r:.20} is no whole number")
    return value


def _count(value: Any) -> int:
    if _integer(value) < 0:
        raise ValueError(f"{value} is no count")
    return int(value)


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise TypeError(f"{value!r:.20} is no number")
    return float(value)


def _logarithm(value: Any) -> float:
    if not NEVER <= _real(value) < _FAR:
        raise ValueError(f"{value!r:.20} is no log-probability")
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r:.20} is neither true nor false")
    return value


def _ids(value: Any) -> tuple[int, ...]:
    return tuple(_count(token) for token in value)


_KINDS = {
    "tokens": _ids, "logprob": _logarithm, "score": _logarithm, "prior": _logarithm, "rank": _real,
    "ended": _flag, "depth": _count, "opened": _count, "rest": _logarithm, "visits": _count, "total": _real,
    "best": _real, "closed": _flag,
}  # fmt: skip
