"""Explains a constraint, a document and a place in a text to people.

Enters: a compiled grammar and what a person typed or looks at. Leaves: JSON. Cost: a mask or two; a refused
JSON document some hundred small compiles (see `structgen.explain`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from .._readable import allowed_here, place, quoted, visible
from ..errors import StructgenError
from ..explain import Explanation, reading_at
from ..grammar import CompiledGrammar
from ..logits import allocate_bitmask
from ..matcher import Matcher
from .errors import ApiError, of_constraint
from .places import Pointers, at, at_bytes
from .service import Service

_BLANKS = b" \t\r\n"
_SECONDS = 2.0  # after so many seconds, no further refused token is explained by compiles of smaller schemas
_SHOWN = 200  # the most bytes of a shown completion


def reported(compile: Callable[[], CompiledGrammar | None], text: str) -> dict[str, Any]:
    """Returns a report: the enforced keywords, the keywords that constrain nothing, and the time."""
    begin = time.perf_counter()
    grammar = compile()
    compiled = time.perf_counter() - begin
    if grammar is None:
        return {
            "report": [],
            "warnings": [],
            "captures": [],
            "least_tokens": 1,
            "least_exact": True,
            "shortest": "",
            "seconds": None,
        }
    begin = time.perf_counter()
    matcher = grammar.matcher()
    try:
        matcher.fill_bitmask(allocate_bitmask(1, grammar.vocabulary.vocab_size))
    except Exception as error:
        raise of_constraint(error, "text") from None
    masked = time.perf_counter() - begin
    pointers = Pointers(text) if grammar.report else None
    return {
        "report": [
            {
                "pointer": entry.pointer,
                "keyword": entry.keyword,
                "reason": entry.reason,
                "place": None if pointers is None else pointers.told(entry.pointer, entry.keyword),
            }
            for entry in grammar.report
        ],
        "warnings": list(grammar.warnings),
        "captures": list(grammar.capture_names),
        **_least(matcher),
        "shortest": _completion(matcher),
        "seconds": {"compile": compiled, "first_mask": masked},
    }


def checked(grammar: CompiledGrammar | None, document: str, text: str, is_schema: bool) -> dict[str, Any]:
    """Says whether a document is accepted. If it is not: where it stops, why, and what could stand there.

    Blanks around a JSON document are left out.

    Args:
        text: the text of the constraint. Each cause of a refusal is reported as a place in this text.
    """
    if grammar is None:
        return {"verdict": "accepted"}
    data = document.encode("utf-8", "surrogatepass")
    skipped = 0
    if is_schema:
        skipped = len(data) - len(data.lstrip(_BLANKS))
        data = data.strip(_BLANKS)
    matcher = grammar.matcher()
    try:
        length = matcher.validate_bytes(data)
        matcher.accept_bytes(data[:length])
        if length == len(data) and matcher.is_accepting():
            return {"verdict": "accepted"}
        found = grammar.explain(data) if is_schema else None
        allowed = allowed_here(matcher)
        rest = _completion(matcher)
    except (StructgenError, ValueError) as error:
        raise of_constraint(error, "document") from None
    where = at_bytes(document, skipped + length)
    around = place(data, length)
    told: dict[str, Any] = {
        "verdict": "rejected" if length < len(data) else "incomplete",
        "place": where.told() if length < len(data) else at(document, len(document)).told(),
        "before": around.before,
        "after": around.after,
        "problem": "" if found is None else found.problem,
        "instance": None if found is None else found.instance,
        "causes": [] if found is None else Pointers(text).causes(found.causes),
        "allowed": allowed,
        "shortest": rest,
    }
    if not told["problem"]:
        told["problem"] = "the text ends too early" if length == len(data) else "this may not stand here"
    return told


def looked(
    service: Service,
    grammar: CompiledGrammar | None,
    tokens: list[int],
    refused: list[int],
    left: int | None,
    is_schema: bool,
) -> dict[str, Any]:
    """Describes the parse state behind some tokens, and says why other tokens are not allowed there.

    Args:
        left: tokens that may still be written; None: no limit.
    """
    vocabulary = service.lm.vocabulary
    if any(not 0 <= token < vocabulary.vocab_size for token in [*tokens, *refused]):
        raise ApiError("there is no such token", param="tokens")
    if grammar is None:
        return {"state": {"next": "anything"}, "refused": []}
    matcher = grammar.matcher()
    if not matcher.accept_tokens(tokens):
        raise ApiError("the constraint does not allow these tokens", param="tokens")
    before = vocabulary.decode(tokens)
    state: dict[str, Any] = {}
    try:
        if matcher.is_terminated():
            return {"state": {"next": "nothing: the text has ended"}, "refused": []}
        if is_schema:
            state["pointer"], state["in_key"] = reading_at(before)
        state["next"] = allowed_here(matcher)
        state["may_end"] = matcher.is_accepting()
        state["forced"] = visible(matcher.forced_bytes()[:_SHOWN])
        state |= _least(matcher)
        state["shortest"] = _completion(matcher)
        until = time.thread_time() + _SECONDS
        reasons = [
            {"id": token, "reason": _reason(service, grammar, matcher, before, token, left, is_schema, until)}
            for token in refused
        ]
    except StructgenError as error:
        raise of_constraint(error, "text") from None
    return {"state": state, "refused": reasons}


def _reason(
    service: Service,
    grammar: CompiledGrammar,
    matcher: Matcher,
    before: bytes,
    token: int,
    left: int | None,
    is_schema: bool,
    until: float,
) -> str:
    """Returns why a token may not come next."""
    vocabulary = service.lm.vocabulary
    ahead = matcher.fork()
    if ahead.accept_token(token):
        if left is None:
            return "the grammar allows it"
        return f"no text that goes on like this ends within the {left} tokens that are left"
    data = vocabulary.tokens[token]
    if not data:
        if token in vocabulary.eos_token_ids or token in service.lm.eos_token_ids:
            found = grammar.explain(before) if is_schema and time.thread_time() < until else None
            return f"the text may not end here: {_because(found)}" if found else "the text may not end here"
        return "a special token, which is no text of this grammar"
    if is_schema and time.thread_time() < until:
        found = grammar.explain(before + data)
        if found is not None and found.kind != "not JSON":
            return _because(found)
    length = ahead.validate_bytes(data)
    ahead.accept_bytes(data[:length])
    after = f"after {quoted(data[:length])} " if length else ""
    return f"{after}the grammar wants {allowed_here(ahead)}"


def _because(found: Explanation) -> str:
    if found.kind != "keyword" or not found.causes:
        return found.problem
    return "; ".join(line.strip() for cause in found.causes for line in cause.lines())


def _least(matcher: Matcher) -> dict[str, Any]:
    """Returns how many tokens are known to complete the text (None: unknown), and whether fewer tokens never
    do."""
    with contextlib.suppress(StructgenError):
        least, enough = matcher.token_bounds()
        return {"least_tokens": enough, "least_exact": least == enough}
    return {"least_tokens": None, "least_exact": False}


def _completion(matcher: Matcher) -> str:
    with contextlib.suppress(StructgenError):
        rest = matcher.shortest_completion()
        return visible(rest[:_SHOWN]) + ("..." if len(rest) > _SHOWN else "")
    return ""
