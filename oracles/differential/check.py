"""Compares the engine, the judge and jsonschema on one schema and its texts.

Input: a family, a draft, a `Source`. Output: counts, and a `Finding` for every disagreement. Each text gets
three verdicts. The engine must agree with the judge. jsonschema is a second oracle: if it alone differs, the
finding has the name of a known fault of jsonschema, or no name. Time: about 1 ms per schema, a third of that
per text.
"""

from __future__ import annotations

import collections
import json
from dataclasses import dataclass, replace
from typing import Any

import jsonschema

import structgen
from oracles import oracle, strategies
from oracles.differential import instances, schemas, targeted
from oracles.differential.judge import DRAFTS, METASCHEMAS, Judge, in_python
from oracles.differential.shrink import shrunk
from oracles.strategies import Source
from structgen import errors

VALIDATORS = {
    4: jsonschema.Draft4Validator,
    6: jsonschema.Draft6Validator,
    7: jsonschema.Draft7Validator,
    2019: jsonschema.Draft201909Validator,
    2020: jsonschema.Draft202012Validator,
}
FIRST_DRAFT = {"unevaluated": 2019, "counts": 6}
FAMILIES = {"general": schemas.general, **targeted.FAMILIES}


@dataclass(frozen=True, slots=True)
class Finding:
    kind: str
    schema: Any
    text: str  # the text of the instance; otherwise the witness or the error
    engine: bool | None = None
    judge: bool | None = None
    jsonschema: bool | None = None


def compiler() -> structgen.Compiler:
    """Returns a compiler of single bytes, because the tests check no tokenizer."""
    vocabulary = structgen.Vocabulary.from_bytes(
        [bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256]
    )
    return structgen.Compiler(vocabulary)


def patterns_in_python(schema: Any) -> Any:
    """Returns a schema whose patterns mean in Python what they mean in ECMA-262. jsonschema reads patterns
    like Python, in which `.` matches a carriage return and `$` matches before a last newline."""
    if isinstance(schema, list):
        return [patterns_in_python(s) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {}
    for word, held in schema.items():
        if word == "pattern" and isinstance(held, str):
            out[word] = in_python(held)
        elif word == "patternProperties" and isinstance(held, dict):
            out[word] = {in_python(p): patterns_in_python(s) for p, s in held.items()}
        else:
            out[word] = held if word in ("const", "enum") else patterns_in_python(held)
    return out


class Checker:
    """Checks schemas one by one and counts the verdicts."""

    def __init__(
        self, using: structgen.Compiler | None = None, jsonschema_too: bool = True, small: int = 1200
    ) -> None:
        self.compiler = using or compiler()
        self.small = small  # the number of values that are tried if the engine calls the schema empty
        self.jsonschema_too = jsonschema_too
        self.counts: collections.Counter[str] = collections.Counter()
        self.findings: list[Finding] = []

    def run(self, family: str, source: Source, texts: int = 16) -> None:
        """Draws a schema of the family and checks it."""
        drafts = [d for d in DRAFTS if d >= FIRST_DRAFT.get(family, 4)]
        draft = source.pick((*drafts, 2020))
        schema = FAMILIES[family](source, draft)
        if isinstance(schema, dict):
            schema = {"$schema": METASCHEMAS[draft], **schema}
        elif draft < 2020:
            return
        self.counts[f"draft {draft}"] += 1
        self.schema(schema, draft, source, texts)

    def schema(self, schema: Any, draft: int, source: Source, texts: int) -> None:
        count = self.counts
        count["schemas"] += 1
        judge = Judge(schema, draft)
        grammar = self.grammar(schema)
        if grammar is None:
            return
        if grammar is EMPTY:
            count["unsatisfiable"] += 1
            for value in instances.small_values(schema, self.small):
                count["small values"] += 1
                if judge.accepts_value(oracle.loads(json.dumps(value))):
                    self.finding("not empty", schema, json.dumps(value), False, True)
                    return
        second = self.second(schema, draft)
        guide = instances.Guide(source, judge)
        if grammar is not EMPTY:
            self.witness(schema, grammar, judge)
        for turn in range(texts):
            origin = "guided"
            if grammar is not EMPTY and turn % 4 == 3:
                text = self.walk(source, grammar)
                if text is None:
                    continue
                origin = "walked"
            else:
                value = guide.draw()
                for _ in range(turn % 4):
                    value = strategies.mutated(source, value)
                text = strategies.text(source, value)
            if instances.HUGE.search(text.encode()):
                continue
            if not self.text(schema, grammar, judge, second, text):
                return
            count[origin] += 1

    def grammar(self, schema: Any) -> Any:
        try:
            return self.compiler.json_schema(schema, property_order="any")
        except errors.UnsatisfiableSchema:
            return EMPTY
        except errors.SchemaTooComplex as error:
            self.counts["too complex"] += 1
            self.counts[f"too complex: {error.message[:60]}"] += 1
        except errors.GrammarError as error:
            self.finding("not compiled", schema, f"{type(error).__name__}: {error}")
        return None

    def second(self, schema: Any, draft: int) -> oracle.JsonOracle | None:
        return (
            oracle.JsonOracle(patterns_in_python(schema), VALIDATORS[draft]) if self.jsonschema_too else None
        )

    def witness(self, schema: Any, grammar: Any, judge: Judge) -> None:
        """Checks that a non-empty language has a shortest text, and that this text is an instance."""
        try:
            text = grammar.matcher().shortest_completion().decode()
        except (errors.SchemaTooComplex, errors.BudgetExceeded) as error:
            self.counts[f"no witness: {error}"[:70]] += 1
            return
        self.counts["witnesses"] += 1
        if not judge.accepts(text):
            self.finding("wrong witness", schema, text, True, False)

    def walk(self, source: Source, grammar: Any) -> str | None:
        try:
            found = instances.walk(source, grammar.matcher(), source.integer(2, 60))
        except (errors.SchemaTooComplex, errors.BudgetExceeded) as error:
            self.counts[f"no walk: {error}"[:70]] += 1
            return None
        return None if instances.HUGE.search(found) else found.decode()

    def text(self, schema: Any, grammar: Any, judge: Judge, second: Any, text: str) -> bool:
        """Compares the verdicts on one text. Returns False if no further text of the schema is to be checked:
        the verdicts differ, or a member exceeds the limit of work."""
        try:
            value = oracle.loads(text)
        except ValueError:
            expected, value = False, None  # a text with a repeated key has no value
        else:
            expected = judge.accepts_value(value)
        found = False
        if grammar is not EMPTY:
            matcher = grammar.matcher()
            try:
                found = matcher.accept_bytes(text) and matcher.is_accepting()
            except errors.SchemaTooComplex:
                self.counts["too complex on the way"] += 1
                return False
        self.counts["pairs"] += 1
        self.counts["valid" if expected else "invalid"] += 1
        other = expected
        if second is not None:
            try:
                other = second.accepts(text)
            except (TypeError, RecursionError, LookupError, AttributeError) as error:
                self.counts[f"jsonschema fails: {type(error).__name__}"] += 1
        if found != expected:
            self.finding("wrong verdict", schema, text, found, expected, other)
            return False
        if other != expected:
            self.counts["jsonschema differs"] += 1
            fault = known_fault(schema, text, expected)
            self.counts[f"jsonschema differs: {fault}"] += 1
            if fault == UNKNOWN:
                self.finding("jsonschema alone differs", schema, text, found, expected, other)
        return True

    def finding(
        self, kind: str, schema: Any, text: str,
        engine: bool | None = None, judge: bool | None = None, other: bool | None = None,
    ) -> None:  # fmt: skip
        self.counts[kind] += 1
        self.findings.append(Finding(kind, schema, text, engine, judge, other))


def minimal(found: Finding) -> Finding:
    """Returns a finding of the same kind with a smaller schema and text."""
    using = compiler()

    def holds(schema: Any, text: str) -> bool:
        checker = Checker(using, found.kind.startswith("jsonschema"))
        draft = draft_of(schema)
        try:
            judge = Judge(schema, draft)
            grammar = checker.grammar(schema)
            if grammar is None:
                pass
            elif found.kind == "wrong witness":
                if grammar is not EMPTY:
                    checker.witness(schema, grammar, judge)
            elif found.kind == "not empty":
                if grammar is EMPTY and judge.accepts(text):
                    return True
            else:
                checker.text(schema, grammar, judge, checker.second(schema, draft), text)
        except Exception:  # the smaller schema is invalid
            return False
        return any(f.kind == found.kind for f in checker.findings)

    if not holds(found.schema, found.text):
        return found
    schema, text = shrunk(found.schema, found.text, holds)
    return replace(found, schema=schema, text=text)


def draft_of(schema: Any) -> int:
    uri = schema.get("$schema") if isinstance(schema, dict) else None
    return next((d for d, known in METASCHEMAS.items() if known == uri), 2020)


EMPTY: Any = object()
UNKNOWN = "no known fault"


def known_fault(schema: Any, text: str, expected: bool) -> str:
    """Returns the fault of jsonschema 4.26 that explains its verdict, as far as the schema shows."""
    words = json.dumps(schema)
    draft = schema.get("$schema", "") if isinstance(schema, dict) else ""
    if "2019-09" in draft and ("unevaluatedProperties" in words or "unevaluatedItems" in words):
        return "2019-09: annotations of contains, additionalProperties and unevaluated* are misread"
    if "$dynamicAnchor" in words:
        return "2020-12: $ref to a $dynamicAnchor is taken as a $dynamicRef"
    if "$recursiveRef" in words:
        return "2019-09: $recursiveRef stops at the first resource without $recursiveAnchor"
    if "\\n" in text or "\\u000a" in text.lower():
        return "Python's `re`: `$` matches before a final newline"
    return UNKNOWN
