"""Probabilities of an answer's leaves equal the sums over all token strings, and are calibrated against
draws.

Oracle: the local law, summed over whole texts of a small vocabulary with `Matcher.fill_bitmask` and numpy.
"""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import closed
from oracles.sampling_oracle import TableModel
from oracles.strategies import Features, Seeded
from oracles.strategies import schema as random_schema
from structgen.generation.confidence import FieldProbability, field_probabilities

TOKENS = [b"", *(bytes([c]) for c in b'{}":,abxn12.0-'), b"ab", b'":', b'":"', b'{"x"', b'a"', b'",', b"12",
          b'"a', b'":1', b"2}", b"true", b"null", b"1.", b"[", b"]", b"\\", b"u", b"6", b"u0061"]  # fmt: skip
SCHEMAS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"x": {"enum": ["a", "ab", "b", "ba"]}, "n": {"enum": [1, 12, 2, 21]}}, {}),
    ({"x": {"enum": ["a", 1, None]}, "n": {"type": "array", "items": {"const": 1}, "maxItems": 2}}, {}),
    ({"x": {"enum": ["a", "ab"]}, "n": {"enum": [1, 12, -1]}}, {"strings": "any"}),
]  # fmt: skip
SEEDS = 12 if os.environ.get("STRUCTGEN_LONG") else 4


def schema(properties: dict[str, Any]) -> dict[str, Any]:
    return closed(properties)  # fmt: skip


def every_text(lm: Any, grammar: Any, begun: list[int], most: int = 60) -> dict[tuple[int, ...], float]:
    """Returns all token strings behind `begun`, with their probabilities under the local law."""
    found: dict[tuple[int, ...], float] = {}
    mask = sg.allocate_bitmask(1, lm.vocabulary.vocab_size)

    def visit(tokens: tuple[int, ...], p: float) -> None:
        matcher = grammar.matcher()
        assert matcher.accept_tokens(list(tokens)) and len(tokens) < most
        matcher.fill_bitmask(mask)
        bits = np.unpackbits(mask[0].view(np.uint8), bitorder="little")[: lm.vocabulary.vocab_size]
        scores = np.where(bits, lm.vector((1, *tokens)).astype(float), -np.inf)
        law = np.exp(scores - scores.max())
        law /= law.sum()
        for token in np.flatnonzero(law > 0).tolist():
            if token == 0:
                found[(*tokens, token)] = p * law[token]
            else:
                visit((*tokens, token), p * law[token])

    visit(tuple(begun), 1.0)
    return found


def wanted(lm: Any, grammar: Any, result: Any, leaf: FieldProbability) -> dict[str, float]:
    """Returns the probability of each value, given the tokens in front of the leaf and the text up to the
    value."""
    path = [int(p) if p.isdigit() else p for p in leaf.pointer.split("/")[1:]]
    sizes = np.cumsum([0, *(len(TOKENS[t]) for t in result.tokens)])
    at = _begin(result.text, leaf, path)
    first = int(np.searchsorted(sizes, at, side="right")) - 1
    sums: dict[str, float] = defaultdict(float)
    for tokens, p in every_text(lm, grammar, result.tokens[:first]).items():
        text = b"".join(TOKENS[t] for t in tokens).decode()
        if text.startswith(result.text[:at]):
            value: Any = json.loads(text)
            try:
                for part in path:
                    value = value[part]
            except (IndexError, KeyError):  # the array ends here
                sums["]"] += p
            else:
                sums["[" if isinstance(value, list) else json.dumps(value)] += p
    total = sum(sums.values())
    return {value: p / total for value, p in sums.items()}


def _begin(text: str, leaf: FieldProbability, path: list[Any]) -> int:
    at = text.index(f'"{path[0]}":') + len(path[0]) + 3
    for _ in range(int(path[1]) if len(path) > 1 else 0):
        at = text.index(",", at)
    return at + (len(path) > 1)


@pytest.mark.parametrize("which", range(len(SCHEMAS)))
def test_probabilities_of_leaves_are_those_of_enumeration(which: int) -> None:
    properties, spelling = SCHEMAS[which]
    for seed in range(SEEDS):
        lm = TableModel(seed, TOKENS, ends=(0,), sharp=1.0)
        for result in sg.generate(lm, [1], schema(properties), n=2, seed=seed, confidence=3000, **spelling):
            grammar = sg.Compiler(lm.vocabulary).json_schema(
                schema(properties),
                whitespace="compact",
                **{"strings": "plain", "numbers": "plain", **spelling},
            )
            assert [f.pointer for f in result.field_probabilities][:1] == ["/x"]
            for leaf in result.field_probabilities:
                right = wanted(lm, grammar, result, leaf)
                assert leaf.low - 1e-9 <= right[leaf.text] <= leaf.high + 1e-9
                assert leaf.high - leaf.low < 1e-6
                for value, low, high in leaf.alternatives:
                    assert low - 1e-9 <= right[value] <= high + 1e-9


def test_bounds_hold_and_narrow_with_few_reads() -> None:
    properties, spelling = SCHEMAS[0]
    for seed in range(SEEDS):
        lm = TableModel(seed, TOKENS, ends=(0,), sharp=1.0)
        widths = []
        for reads in (1, 3, 10, 2000):
            result = sg.generate(lm, [1], schema(properties), seed=seed, confidence=reads)
            leaves = result.field_probabilities
            widths.append(sum(leaf.high - leaf.low for leaf in leaves))
            if reads == 2000:
                exact = [leaf.probability for leaf in leaves]
        for reads in (1, 3, 10):
            leaves = sg.generate(lm, [1], schema(properties), seed=seed, confidence=reads).field_probabilities
            for leaf, p in zip(leaves, exact, strict=True):
                assert leaf.low - 1e-9 <= p <= leaf.high + 1e-9
        assert widths == sorted(widths, reverse=True) and widths[-1] < 1e-6 < widths[0]


def test_calibrated_against_draws_by_the_brier_score() -> None:
    """If p is the law of the draws, the mean of sum (p(v) - 1[v drawn])^2 equals the mean of 1 - sum
    p(v)^2."""
    properties, _ = SCHEMAS[0]
    lm = TableModel(5, TOKENS, ends=(0,), sharp=1.0)
    results = sg.generate(lm, [1], schema(properties), n=400, temperature=1.0, seed=3, confidence=300)

    def surplus(power: float) -> list[float]:
        found = []
        for result in results:
            for leaf in result.field_probabilities:
                law = np.array([leaf.probability, *((low + high) / 2 for _, low, high in leaf.alternatives)])
                law = law**power / (law**power).sum()
                found.append(float((1 - law[0]) ** 2 + (law[1:] ** 2).sum() - (1 - (law**2).sum())))
        return found

    def deviations(surpluses: list[float]) -> float:
        return abs(float(np.mean(surpluses))) / (float(np.std(surpluses)) / math.sqrt(len(surpluses)))

    assert deviations(surplus(1.0)) < 4.0
    assert deviations(surplus(2.0)) > 6.0  # the check rejects a law that is overconfident


def test_answers_that_are_no_json_are_one_leaf() -> None:
    lm = TableModel(2, TOKENS, ends=(0,), sharp=1.0)
    (leaf,) = sg.generate(lm, [1], choice=["a", "ab", "b"], confidence=100).field_probabilities
    assert leaf.pointer == "" and leaf.low == pytest.approx(leaf.high)
    assert leaf.low + sum(low for _, low, _ in leaf.alternatives) == pytest.approx(1.0)
    assert sg.generate(lm, [1], max_tokens=3, confidence=5).field_probabilities == []
    assert sg.generate(lm, [1], choice=["a"]).field_probabilities == []
    with pytest.raises(ValueError, match="confidence"):
        sg.generate(lm, [1], choice=["a"], confidence=-1)
    with pytest.raises(ValueError, match="confidence must be between .* and 4096"):
        sg.generate(lm, [1], choice=["a"], confidence=10**9)


@pytest.mark.parametrize(
    "text", ["0", "-0", "1", "10", "1.0", "1e2", "100", "-5", "0.5", "12345678901234567890", "9" * 60]
)
def test_a_number_that_may_still_become_another_is_not_given_up(text: str) -> None:
    """One number has many spellings (1, 1.0, 1e0), so every beginning of a spelling may still become the
    number."""
    from structgen.generation.confidence import _Json

    reader = _Json(text)
    zeros = text if "." in text or "e" in text else text + ".000"
    for spelled in (text, zeros, json.dumps(float(text)) if abs(float(text)) < 1e15 else text):
        for end in range(len(spelled)):
            assert reader.may(spelled[:end].encode()), spelled[:end]
        assert reader.decided(spelled.encode() + b",", False) == reader.text
        assert reader.decided(spelled.encode(), True) == reader.text


@pytest.mark.parametrize("text", ['"a\\"b"', '"\\u00e9x"', '"\\ud83d\\ude00"', '""', '"\\\\"', '"a/b"'])
def test_spellings_of_a_string_may_still_become_it(text: str) -> None:
    from structgen.generation.confidence import _Json

    reader, value = _Json(text), json.loads(text)
    escaped = '"' + "".join(f"\\u{ord(c):04x}" for c in value) + '"' if value.isascii() else json.dumps(value)
    for spelled in (text, json.dumps(value, ensure_ascii=False), json.dumps(value), escaped):
        data = spelled.encode()
        for end in range(len(data)):
            assert reader.decided(data[:end], False) is None and reader.may(data[:end]), data[:end]
        assert reader.decided(data, False) == reader.text
        assert not reader.may(b'"zz')


def test_context_that_ends_leaves_bounds_open() -> None:
    lm = TableModel(2, TOKENS, ends=(0,), sharp=1.0)
    grammar = sg.Compiler(lm.vocabulary).regex('"(a|b|ab)*"')
    tokens = [TOKENS.index(b'"'), TOKENS.index(b"a"), TOKENS.index(b'"'), 0]
    (leaf,) = field_probabilities(lm, lm.start([1]), grammar, tokens, '"a"', True, True, 1)
    assert leaf.low < leaf.high


def test_the_command_line_tells_a_line_a_leaf(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    from structgen.cli.main import main

    out = tmp_path / "records.jsonl"
    asked = ["generate", "--prompt", "two red hats", "--choice", "yes", "no", "--confidence", "9"]
    assert main(asked) == 0
    assert "(text)" in capsys.readouterr().err
    assert main([*asked, "--output", str(out)]) == 0
    (leaf,) = json.loads(out.read_text())["field_probabilities"]
    assert leaf["pointer"] == "" and 0 < leaf["low"] <= leaf["high"] <= 1


def test_the_server_gives_each_choice_its_fields() -> None:
    pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
    from starlette.testclient import TestClient

    from structgen.serve.app import create_app

    order = {"type": "object", "properties": {"quantity": {"type": "integer"}}, "required": ["quantity"]}
    with TestClient(create_app()) as http:
        shape = {"type": "json_schema", "json_schema": {"name": "o", "schema": order}}
        messages = [{"role": "user", "content": "two red hats"}]
        body = {"messages": messages, "max_tokens": 60, "response_format": shape}
        asked = {**body, "structgen": {"confidence": 16}}
        found = http.post("/v1/chat/completions", json=asked).json()["choices"][0]
        fields = found["structgen"]["fields"]
        assert fields and all(0 <= one["low"] <= one["high"] <= 1 for one in fields)
        assert json.loads(found["message"]["content"]) and fields[0]["pointer"].startswith("/")

        def streamed(path: str, body: dict[str, Any]) -> list[Any]:
            """Returns the notes that a stream sends under the key `structgen`."""
            lines = http.post(path, json={**body, "stream": True}).text.splitlines()
            told = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
            held = [choice for one in told for choice in one.get("choices", ())]
            held += [one.get("response", one) for one in told]
            return [one["structgen"]["fields"] for one in held if "fields" in one.get("structgen", ())]

        (last,) = streamed("/v1/chat/completions", asked)
        assert [one["pointer"] for one in last] == [one["pointer"] for one in fields]
        two = {**asked, "n": 2, "temperature": 1.0, "seed": 3}
        assert len(streamed("/v1/chat/completions", two)) == 2
        plain = {
            "prompt": "two red hats",
            "json_schema": order,
            "max_tokens": 60,
            "structgen": {"confidence": 16},
        }
        (choice,) = http.post("/v1/completions", json=plain).json()["choices"]
        assert streamed("/v1/completions", plain) == [choice["structgen"]["fields"]]
        answer = {
            "input": "two red hats",
            "text": {"format": {"type": "json_schema", "name": "o", "schema": order}},
            "max_output_tokens": 60,
            "structgen": {"confidence": 16},
        }
        whole = http.post("/v1/responses", json=answer).json()
        assert whole["structgen"]["fields"][0]["pointer"].startswith("/")
        assert streamed("/v1/responses", answer) == [whole["structgen"]["fields"]]
        message = {
            "messages": messages,
            "max_tokens": 60,
            "structgen": {"confidence": 16},
            "output_config": {"format": {"type": "json_schema", "schema": order}},
        }
        told = http.post("/v1/messages", json=message).json()
        assert streamed("/v1/messages", message) == [told["structgen"]["fields"]]
        page = {
            "constraint": {"kind": "schema", "text": json.dumps(order)},
            "prompt": "two red hats",
            "confidence": 16,
            "max_tokens": 60,
        }
        lines = http.post("/playground/api/generate", json=page).text.splitlines()
        made = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        assert [one["type"] for one in made][-2:] == ["end", "fields"]
        assert [one["pointer"] for one in made[-1]["fields"]] == ["/quantity"]
        assert http.post("/playground/api/generate", json={**page, "confidence": 10**9}).status_code == 400


@pytest.mark.parametrize(
    ("one", "other"), [("1" * 60, "1" * 59 + "2"), ("1e400", "1e401"), ("0.1", "0.10000001")]
)
def test_numbers_that_differ_are_two_values(one: str, other: str) -> None:
    from structgen.generation.confidence import _Json

    assert _Json(one).decided(other.encode(), True) != _Json(one).text
    assert _Json("1e999999999").text == _Json("10e999999998").text


def test_random_schemas_and_spellings() -> None:
    """Each leaf has the value at its pointer, and the probabilities of a leaf sum to at most 1."""
    for seed in range(400 if os.environ.get("STRUCTGEN_LONG") else 60):
        try:
            result = sg.generate(
                None,
                "two hats",
                random_schema(Seeded(seed), Features(depth=2)),
                max_tokens=60,
                temperature=1.0,
                seed=seed,
                confidence=12,
                numbers="plain" if seed % 3 else "any",
                strings="plain" if seed % 4 else "any",
                whitespace="compact" if seed % 5 else "flexible",
            )
        except sg.UnsatisfiableSchema:
            continue
        for leaf in result.field_probabilities:
            assert 0 <= leaf.low <= leaf.high <= 1 + 1e-9
            assert leaf.low + sum(low for _, low, _ in leaf.alternatives) <= 1 + 1e-9
            value = result.value
            for part in leaf.pointer.split("/")[1:]:
                name = part.replace("~1", "/").replace("~0", "~")
                value = value[int(name)] if isinstance(value, list) else value[name]
            assert json.loads(leaf.text) == (
                value if isinstance(value, str | bool | None) else pytest.approx(value)
            )
