"""The interface under the adapters of serving engines: rows, drafts, rollbacks, ends, and errors of each
request.

The oracle is a plain matcher that replays the accepted tokens. tests/hosts/ runs the real hosts.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen as sg
from structgen.integrations import hosts
from structgen.integrations.hosts import HostEngine, HostRequest, fill_rows, vocabulary_of
from structgen.matcher import can_end_within

torch = pytest.importorskip("torch", reason="hosts hand over tensors; torch is in the test extra")

TOKENS: list[bytes | None] = [bytes([i]) for i in range(256)]
TOKENS += [b"ab", b"abc", b'"a', b'":', b"{}", b"12", b"true", b"no", b"yes", None, None]
EOS, PAD = len(TOKENS) - 2, len(TOKENS) - 1
WORDS = (len(TOKENS) + 31) // 32
ENGINE = HostEngine(sg.Vocabulary.from_bytes(TOKENS, EOS))
CONSTRAINTS: list[tuple[str, Any]] = [
    ("regex", "(ab|yes)*c?"),
    ("json", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
    ("gbnf", 'root ::= "(" root ")" | "ab" | ""'),
    ("choice", '["yes", "no"]'),
]


def bits(row: Any) -> set[int]:
    found = np.asarray(row).view(np.uint8)
    return set(np.flatnonzero(np.unpackbits(found, bitorder="little")).tolist())


def replayed(grammar: sg.CompiledGrammar, tokens: list[int]) -> sg.Matcher:
    matcher = grammar.matcher()
    assert matcher.accept_tokens(tokens)
    return matcher


@pytest.mark.parametrize("seed", range(60))
def test_any_order_of_calls_is_a_replay(seed: int) -> None:
    """After any accepts, drafts, rollbacks over the end and tokens behind the end, the state is that of the
    tokens."""
    chance = random.Random(seed)
    grammar = ENGINE.compile(*chance.choice(CONSTRAINTS))
    request = ENGINE.request(grammar)
    taken: list[int] = []
    ended: int | None = None  # the number of accepted tokens when the text ended
    mask = torch.full((3, WORDS), 0x5A5A, dtype=torch.int32)
    for _ in range(40):
        text = taken if ended is None else taken[:ended]
        oracle = replayed(grammar, text)
        assert request.is_terminated() == (ended is not None)
        if ended is None:
            mask[1] = chance.getrandbits(30)
            request.fill(mask, 1)
            plain = sg.allocate_bitmask(1, len(TOKENS))
            oracle.fill_bitmask(plain)
            assert bits(mask[1].numpy()) == bits(plain)
            allowed = sorted(bits(plain))
        else:
            allowed = [chance.randrange(len(TOKENS)) for _ in range(3)]
        match chance.randrange(5):
            case 0 if taken:
                n = chance.randint(1, min(3, len(taken)))
                request.rollback(n)
                del taken[-n:]
                ended = ended if ended is not None and ended <= len(taken) else None
            case 1:
                draft = [chance.choice(allowed), *chance.choices(range(len(TOKENS)), k=3)]
                good = request.validate(draft)
                assert (
                    ended is not None
                    or good == replayed(grammar, text).validate_tokens(draft)
                    or (EOS in draft[:good])
                )
                over = EOS in draft[:good] or ended is not None  # the request takes tokens behind the end
                assert request.accept(draft) == (over or good == len(draft))
                if over or good == len(draft):
                    if ended is None and EOS in draft:
                        ended = len(taken) + draft.index(EOS) + 1
                    taken += draft
            case 2:
                refused = [t for t in range(len(TOKENS)) if t not in allowed]
                if ended is None and refused:
                    assert not request.accept([chance.choice(refused)])
            case _:
                token = chance.choice(allowed)
                assert request.accept([token])
                taken.append(token)
                if ended is None and token == EOS:
                    ended = len(taken)
    request.reset()
    assert not request.is_terminated() and request.matcher.num_steps == 0


def test_a_batch_of_free_ended_and_constrained_rows() -> None:
    grammar = ENGINE.compile("choice", ["yes"])
    live, done = ENGINE.request(grammar), ENGINE.request(grammar)
    assert done.accept([TOKENS.index(b"yes"), EOS])
    mask = np.zeros((5, WORDS), np.int32)
    fill_rows([live, None, done], mask, rows=[4, 0, 2])
    assert (mask[[0, 2]] == -1).all() and (mask[[1, 3]] == 0).all()
    assert bits(mask[4]) == {ord("y"), TOKENS.index(b"yes")}
    with pytest.raises(ValueError):
        fill_rows([live], mask, rows=[0, 1])


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("batched", [False, True])
def test_a_request_that_fails_ends_alone(kind: str, batched: bool) -> None:
    """A text that cannot end within its tokens fails at its mask, and so does a schema that is too hard."""
    good = ENGINE.request(ENGINE.compile("regex", "[ab]+"))
    grammar = ENGINE.compile("regex", "[a-z]{50}")
    bad = HostRequest(grammar.matcher(max_tokens=3, after_end="ignore"), [EOS])
    mask: Any = np.full((4, WORDS), 7, np.int32)
    if kind == "torch":
        mask = torch.from_numpy(mask)
    for _ in range(2):
        if batched:
            fill_rows([bad, good], mask, rows=[3, 0])
        else:
            bad.fill(mask, 3)
            good.fill(mask, 0)
        assert bits(np.asarray(mask[3])) == {EOS}
        assert bits(np.asarray(mask[0])) == {ord("a"), ord("b"), TOKENS.index(b"ab")}
        assert (np.asarray(mask[1:3]) == 7).all()
    assert isinstance(bad.error, sg.UnsatisfiableBudget)
    assert not bad.accept([EOS]) and bad.validate([97]) == 0 and not bad.is_terminated()
    bad.rollback(0)
    assert bad.fork().error is bad.error
    bad.reset()
    assert bad.error is None
    assert good.accept([97]) and good.error is None


def test_a_refused_token_is_told_and_ends_nothing() -> None:
    request = ENGINE.request(ENGINE.compile("choice", ["yes", "no"]))
    assert not request.accept([ord("y"), ord("q")])
    assert "does not allow token 113 (b'q') here" in str(request.error) and not request.ended
    assert not request.accept([len(TOKENS) + 5]) and str(len(TOKENS) + 5) in str(request.error)
    mask = np.zeros((1, WORDS), np.int32)
    fill_rows([request], mask)
    assert ord("y") in bits(mask[0])
    assert request.accept([ord("y")]) and request.error is None


@pytest.mark.parametrize(("kind", "text"), [*CONSTRAINTS, ("lark", 'start: /[a-c]+/ "!"')])
def test_the_compile_thread_makes_the_first_masks(kind: str, text: Any) -> None:
    """The compile thread prepares the first masks for every kind. The masks equal those of an unprepared
    grammar."""
    engine = HostEngine(ENGINE.vocabulary)
    prepared = engine.compile(kind, text)
    size = engine.compiler.byte_size
    prepared.prepare(16)
    assert engine.compiler.byte_size == size, "the masks of sixteen steps are there"
    fresh = sg.Compiler(ENGINE.vocabulary).compile(kind, text).matcher()
    rows = sg.allocate_bitmask(2, len(TOKENS))
    chance, mine = random.Random(1), prepared.matcher()
    for _ in range(12):
        mine.fill_bitmask(rows, 0)
        fresh.fill_bitmask(rows, 1)
        assert (rows[0] == rows[1]).all()
        token = chance.choice(sorted(bits(rows[0])))
        assert mine.accept_token(token) and fresh.accept_token(token)
        if mine.is_terminated():
            break


@pytest.mark.parametrize(("kind", "text"), CONSTRAINTS)
def test_the_first_limit_makes_masks_near_the_end_of_a_text(kind: str, text: Any) -> None:
    """A grammar prepares masks of a random text near the text's limit. The rows equal those of a fresh
    grammar."""
    grammar = HostEngine(ENGINE.vocabulary).compile(kind, text)
    few = grammar.matcher().tokens_needed() + 8
    ENGINE.request(grammar, max_tokens=few)
    # the second call copies the row within a budget that the first call kept
    grammar.prepare(few, max_tokens=few)
    size = grammar.byte_size
    grammar.prepare(few, max_tokens=few)
    assert grammar.byte_size == size, "the masks are there"
    mine = grammar.matcher(max_tokens=few)
    fresh = sg.Compiler(ENGINE.vocabulary).compile(kind, text).matcher(max_tokens=few)
    rows = sg.allocate_bitmask(2, len(TOKENS))
    chance = random.Random(1)
    while not mine.is_terminated():
        mine.fill_bitmask(rows, 0)
        fresh.fill_bitmask(rows, 1)
        assert (rows[0] == rows[1]).all()
        token = chance.choice(sorted(bits(rows[0])))
        assert mine.accept_token(token) and fresh.accept_token(token)
    with pytest.raises(sg.UnsatisfiableBudget):
        grammar.prepare(max_tokens=0)


def test_prepare_keeps_to_its_time_and_says_nothing_of_later_steps() -> None:
    grammar = ENGINE.compiler.regex("[ab]{40}")
    begun = time.monotonic()
    assert grammar.prepare(10**9, seconds=0.05) is grammar
    assert time.monotonic() - begun < 5
    hard = "(a|b){0,9}[^c]{3,400}x"
    # the vocabulary keeps shared tables, so the next compiler does not build them
    ENGINE.compiler.regex(hard).prepare()
    tight = sg.Compiler(ENGINE.vocabulary, limits=sg.Limits(mask=4500)).regex(hard)
    assert tight.prepare(30) is tight


def test_an_operator_sees_what_happens(caplog: pytest.LogCaptureFixture) -> None:
    """Counters of all events, a log line with them, and a warning for each event that may hurt a request."""
    engine = HostEngine(ENGINE.vocabulary, log="some.host")
    caplog.set_level("INFO", "some.host")
    first = engine.compile("regex", "[ab]+")
    assert engine.compile("regex", "[ab]+") is first
    engine.compile("json", {"type": "string", "format": "unknown"})
    with pytest.raises(sg.GrammarError):
        engine.compile("regex", "(")
    requests = [engine.request(first), engine.request(first).fork()]
    mask = np.zeros((2, WORDS), np.int32)
    fill_rows(requests, mask)
    requests[0].fill(mask, 0)
    bad = engine.request(engine.compile("regex", "[a-z]{50}"))
    bad.matcher = bad.matcher.grammar.matcher(max_tokens=3)
    bad.fill(mask, 1)
    engine.telemetry.filled(1, 0.1, 1)  # reports a slow and inexact mask
    engine.telemetry.filled(1, 0.0, 1)  # one warning of inexact masks is enough
    found = engine.telemetry.counters
    whole = {name: n for name, n in found.items() if "seconds" not in name and name != "cache_bytes"}
    assert whole == {
        "compiles": 4, "remembered": 1, "refused": 1, "not_enforced": 1,
        "masks": 5, "inexact": 2, "failed": 1,
    }  # fmt: skip
    assert 0 < found["compile_seconds_most"] <= found["compile_seconds"]
    assert 0.1 == found["mask_seconds_most"] < found["mask_seconds"] and found["cache_bytes"] > 0
    said = [(r.levelname, r.getMessage()) for r in caplog.records]
    for level, words in (
        ("WARNING", "`format`: unknown"), ("INFO", "refused"), ("WARNING", "UnsatisfiableBudget"),
        ("WARNING", "took 100 ms"), ("WARNING", "limits are too small"),
    ):  # fmt: skip
        assert [a for a, text in said if words in text] == [level], (words, said)
    assert "4 constraints (1 remembered, 1 refused, 1 not enforced whole)" in engine.telemetry.line()


def test_prometheus_sums_the_counters_of_several_processes(tmp_path: Path) -> None:
    """`/metrics` of SGLang and of vLLM sums engines of several processes.

    The sum uses prometheus-client's files, or `gather`, which needs no environment variable. One process sums
    the counters of its engines; the counts of an engine that ended stay.
    """
    engine = """
import numpy as np
from oracles.harness import WORDS, vocabulary
from structgen.integrations.hosts import HostEngine

for _ in range(2):  # both count into one metric
    engine = HostEngine(vocabulary(WORDS), log="some.host")
    request = engine.request(engine.compile("regex", "[ab]+"))
    request.fill(np.zeros((1, (WORDS.size + 31) // 32), np.int32), 0)
"""
    front = """
from prometheus_client import CollectorRegistry, generate_latest, multiprocess

registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""
    own = f"""
import os, pathlib, subprocess, sys
import prometheus_client
from structgen.integrations.telemetry import gather

gather()
gather()  # nothing happens
before = prometheus_client.generate_latest().decode()
assert "structgen" not in before
for _ in range(2):
    subprocess.run([sys.executable, "-c", {engine!r}], check=True)
print(prometheus_client.generate_latest().decode())
"""

    def run(script: str, **environment: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, **environment},
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    theirs = [run(script, PROMETHEUS_MULTIPROC_DIR=str(tmp_path)) for script in (engine, engine, front)]
    (folder := tmp_path / "temporary").mkdir()
    for said in (theirs[-1], run(own, TMPDIR=str(folder))):
        lines = [line for line in said.splitlines() if line.startswith("structgen_")]
        values = dict(line.rsplit(" ", 1) for line in lines)
        assert len(values) == len(lines)
        assert values["structgen_masks_total"] == values["structgen_compiles_total"] == "4.0"
        assert float(values["structgen_mask_seconds_total"]) > 0 == float(values["structgen_inexact_total"])
    assert 0 < float(values["structgen_mask_seconds_most"]) < float(values["structgen_mask_seconds_total"])
    show = "del engine, request\nprint(prometheus_client.generate_latest().decode())"
    alone = run(f"import prometheus_client\n{engine}\n{show}").splitlines()
    assert {"structgen_masks_total 2.0", "structgen_compiles_total 2.0", "structgen_cache_bytes 0.0"} <= {
        *alone
    }
    assert not list(folder.iterdir()), "the files go with the process that gathers"


def test_a_mask_under_limits_is_counted_as_inexact() -> None:
    engine = HostEngine(ENGINE.vocabulary, limits=sg.Limits(mask=300))
    schema = {"not": {"type": "object", "properties": {f"k{i}": {"uniqueItems": True} for i in range(9)}}}
    request = engine.request(engine.compile("json", schema))
    mask = np.zeros((1, WORDS), np.int32)
    inexact = 0
    for token in b'{"k1": [{}, ':
        request.fill(mask, 0)
        inexact += not request.matcher.mask_exact
        if not request.accept([token]):
            break
    assert engine.telemetry.counters["inexact"] == inexact > 0


def test_end_tokens_by_request() -> None:
    grammar = ENGINE.compile("regex", "[a-z]{1,3}")
    request = ENGINE.request(grammar, end_token_ids={ord("q"), EOS, 10**6})
    mask = np.zeros((1, WORDS), np.int32)
    request.fill(mask, 0)
    assert ord("q") not in bits(mask[0])
    assert request.accept([97])
    request.fill(mask, 0)
    assert {ord("q"), EOS} <= bits(mask[0])
    assert request.accept([ord("q")]) and request.is_terminated()
    beyond = ENGINE.request(grammar, end_token_ids=[10**6])
    assert beyond.accept([97, EOS]), "with none of its ends in the logits, the vocabulary's count"


def test_texts_end_within_what_the_host_allows() -> None:
    grammar = ENGINE.compile("regex", "[a-z]+")
    request = ENGINE.request(grammar, max_tokens=3)
    mask = np.zeros((1, WORDS), np.int32)
    assert request.accept([97, 97])
    request.fill(mask, 0)
    assert bits(mask[0]) == {EOS}
    long = ENGINE.compile("regex", "[a-z]{50}")
    cut = ENGINE.request(long, max_tokens=3)
    cut.fill(mask, 0)
    assert ord("a") in bits(mask[0]), "the host cuts off what cannot fit"


def test_the_search_for_a_limit_is_made_once_a_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = ENGINE.compile("regex", "[a-z]{20}")
    asked: list[int] = []

    def counted(grammar: sg.CompiledGrammar, tokens: int) -> bool:
        asked.append(tokens)
        return can_end_within(grammar, tokens)

    monkeypatch.setattr(hosts, "can_end_within", counted)
    for most in (3, 200, 3, 200, 3):
        ENGINE.request(grammar, max_tokens=most)
    assert asked == [3, 200]
    assert grammar._fitting == {3: False, 200: True}
    for most in range(500):
        ENGINE.request(grammar, max_tokens=most)
    assert len(grammar._fitting) <= 64


def test_vocabularies() -> None:
    vocab = sg.Vocabulary.from_bytes(TOKENS, EOS)
    assert vocabulary_of(vocab, len(TOKENS)) is vocab
    with pytest.raises(sg.VocabularyError, match=rf"{len(TOKENS)} ids and the host 300 logits"):
        HostEngine(vocab, 300)
    with pytest.raises(sg.VocabularyError):
        HostEngine(object())


DROPPED: list[tuple[dict[str, Any], str]] = [
    ({"type": "array", "minItems": "3"}, "'minItems' is not a number, so it would constrain nothing (at #)"),
    ({"type": "object", "required": "a"}, "'required' is not an array of names"),
    ({"enum": "abc"}, "'enum' is not an array"),
    (
        {"properties": {"a/b": {"type": "string", "pattern": 5}}},
        "(at #/properties/a~1b)",
    ),
    ({"type": "array", "minItems": "3", "maxItems": "4"}, ", and so would 1 more"),
]


@pytest.mark.parametrize(("schema", "message"), DROPPED)
def test_a_keyword_that_would_constrain_nothing_is_refused(schema: dict[str, Any], message: str) -> None:
    """The schema stands alone, in a structural tag, or as a tool's parameters."""
    content = {"type": "json_schema", "json_schema": schema}
    tag = {"type": "structural_tag", "format": {"type": "tag", "begin": "<", "content": content, "end": ">"}}
    for kind, text in (("json", schema), ("json", json.dumps(schema)), ("structural_tag", tag)):
        with pytest.raises(sg.UnsupportedSchema) as refused:
            ENGINE.compile(kind, text)
        assert message in str(refused.value) and refused.value.keyword
    assert ENGINE.compile("json", {"minItems": 3, "unknown": 1, "format": "unknown"})


def test_errors_of_a_constraint_reach_the_compile_thread() -> None:
    with pytest.raises(sg.UnsatisfiableSchema):
        ENGINE.compile("json", {"type": "integer", "minimum": 2, "maximum": 1})
    compact = HostEngine(sg.Vocabulary.from_bytes(TOKENS, EOS), options={"whitespace": "compact"})
    matcher = compact.compile("json", "{}").matcher()
    assert matcher.validate_bytes('{"a": 1}') == 5
    assert compact.compile("regex", "a+").matcher().validate_bytes("aa") == 2


def test_an_engine_has_its_readers_when_it_starts() -> None:
    """The import of GBNF's reader once took 14 ms of the first request."""
    code = (
        "import sys, structgen as sg\n"
        "from structgen.integrations.hosts import HostEngine\n"
        "texts = [*(bytes([b]) for b in range(256)), b'']\n"
        "HostEngine(sg.Vocabulary.from_bytes(texts, eos_token_ids=[256]))\n"
        "assert 'structgen.frontend.gbnf' in sys.modules and 'lark' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_draft_beyond_the_budget_ends_nothing() -> None:
    """Engines fill the rows of a whole draft before they know which tokens are drawn."""
    grammar = ENGINE.compile("regex", "a*[0-9]{2}")
    batch = [ENGINE.request(grammar, max_tokens=4) for _ in range(2)]
    mask = torch.zeros((2, WORDS), dtype=torch.int32)
    for request in batch:
        taken, by_masks = request.fork(), 0
        taken.fill(mask, 0)
        while ord("a") in bits(mask[0]) and taken.accept([ord("a")]):
            by_masks += 1
            taken.fill(mask, 0)
        assert request.validate(list(b"aaa")) == by_masks < 3
        assert request.validate([*b"12", EOS, PAD]) == 3
        assert request.accept(list(b"aaa"))
    batch[0].fill(mask, 0)
    fill_rows(batch[1:], mask, rows=[1])
    for row, request in enumerate(batch):
        assert bits(mask[row]) == {EOS} and "cannot be completed" in str(request.error)
        request.rollback(2)
        assert request.accept(list(b"12")) and not request.ended and request.error is None
        request.fill(mask, row)
        assert bits(mask[row]) == {EOS} and request.accept([EOS]) and request.is_terminated()


def test_thoughts_and_answer_in_one_grammar() -> None:
    """Thoughts are free and end in time if the host hands over the thoughts' tokens. Drafts cross the
    border."""
    engine = HostEngine(ENGINE.vocabulary, reasoning={"end": "</t>", "gap": ""})
    grammar = engine.compile("regex", "[0-9]{2}", reasoning=engine.thinks(list(b"so <think>\n")))
    assert grammar.reasoning is not None and grammar.reasoning.prefilled
    request = engine.request(grammar, max_tokens=9)
    draft = list(b"a</t>12")
    assert request.validate(draft) == len(draft) and request.accept(draft[:4])
    request.rollback(2)
    assert request.accept(list(b"/t>1"))
    mask = torch.zeros((1, WORDS), dtype=torch.int32)
    request.fill(mask, 0)
    assert bits(mask[0]) == set(b"0123456789")
    assert request.accept([ord("2"), EOS]) and request.is_terminated()

    late = engine.request(grammar, max_tokens=9)
    for step in range(9):
        late.fill(mask, 0)
        allowed = bits(mask[0])
        assert late.accept([ord("x") if ord("x") in allowed else min(allowed)]), step
    assert late.is_terminated()

    apart = engine.compile("regex", "[0-9]{2}")
    assert apart.reasoning is not None and not apart.reasoning.prefilled
    assert engine.request(apart).validate(list(b"12")) == 2  # the model does not think
    brief = engine.compile("regex", "[0-9]{2}", reasoning=engine.thinks(thinking_tokens=2))
    assert engine.request(brief).validate(list(b"<think>ab</t>12")) == 15
    assert engine.request(brief).validate(list(b"<think>abc</t>12")) == 9
    free = engine.thinks(thinking_tokens=-1)
    assert free is not None and free.max_tokens is None
    assert ENGINE.thinks(list(b"<think>"), 3) is None
