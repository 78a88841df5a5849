"""Draft models made from a loaded model: fewer rows of the head, fewer layers, or layers chosen at run
time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: it is in the extra hf")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: it is in the extra hf"
)

import structgen as sg  # noqa: E402
from oracles.enumerate import law  # noqa: E402
from oracles.speculative import SCHEMAS, TEXTS, VOCABULARY, random_llama  # noqa: E402
from structgen.lm.base import LanguageModelError  # noqa: E402
from structgen.lm.transformers import TransformersLM  # noqa: E402
from structgen.speculation import Here, LayerChoice, Speculation, Start, Step, TrimmedHead  # noqa: E402
from structgen.speculation.drafters.head_trim import frequent, with_rows  # noqa: E402
from structgen.speculation.drafters.layer_choice import tokens_per_cost  # noqa: E402
from structgen.speculation.drafters.layer_skip import agreement, without_layers  # noqa: E402
from structgen.speculation.rules import recursive  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def lm() -> TransformersLM:
    return TransformersLM(random_llama(), vocabulary=VOCABULARY)


# --- a trimmed head --------------------------------------------------------------------------------------


def test_a_trimmed_head_has_the_logits_of_its_rows_and_no_others(lm: TransformersLM) -> None:
    rows = [0, 3, 7, 12, 30]
    short = with_rows(lm, rows)
    text = VOCABULARY.encode("abcabc12")
    full, few = (model.logprobs([model.start(text)])[0].astype(np.float64) for model in (lm, short))
    assert np.isneginf(np.delete(few, rows)).all()
    want = full[rows] - np.log(np.exp(full[rows]).sum())
    assert few[rows] == pytest.approx(want, abs=1e-5)
    # The draft model has its own head and shares all other weights. The target's head is unchanged.
    own = {p.data_ptr() for p in lm.model.parameters()}
    assert {p.data_ptr() for p in short.model.parameters()} < own
    assert lm.model.lm_head.weight.shape[0] == len(TEXTS)


def test_the_rows_are_those_of_frequent_tokens(lm: TransformersLM) -> None:
    drafter = TrimmedHead(lm, [5, 5, 5, 9, 9, 20], keep=3)
    assert drafter.rows == [0, 5, 9]
    assert frequent(lm, drafter.counts, 6) == [0, 1, 2, 5, 9, 20]
    assert TrimmedHead(lm, "abab", keep=2).rows == [0, TEXTS.index(b"ab")]
    assert TrimmedHead(lm, keep=10**6).rows == list(range(len(TEXTS)))


def test_the_rows_follow_what_was_emitted(lm: TransformersLM) -> None:
    drafter = TrimmedHead(lm, [40, 41, 42, 43], keep=10, again=12)
    before, plain = drafter.rows, sg.generate(lm, "ab", SCHEMAS[0], max_tokens=40)
    options = Speculation([drafter], adaptive=False, nodes=6)
    accepted = []
    for _ in range(3):
        fast = sg.generate(lm, "ab", SCHEMAS[0], max_tokens=40, speculate=options)
        assert fast.tokens == plain.tokens and fast.speculation is not None
        accepted.append(fast.speculation.accepted)
    assert set(plain.tokens) & set(drafter.rows) > set(plain.tokens) & set(before)
    assert accepted[-1] > accepted[0]


def test_drafts_of_a_trimmed_head_are_lossless(lm: TransformersLM) -> None:
    grammar = sg.Compiler(VOCABULARY).regex("(a|ab|bc|c|x){2,3}")
    prompt = VOCABULARY.encode("ab")
    for keep in (1, 12, 20):
        drafter = TrimmedHead(lm, "abcabxx", keep=keep)
        cursor = drafter.open(Start(prompt, VOCABULARY, grammar, 0.7, None)).cursor()
        matcher = grammar.matcher()
        allowed = [t for t in range(len(TEXTS)) if matcher.validate_tokens([t]) == 1]
        p = np.zeros(len(TEXTS))
        p[allowed] = np.exp(lm.logprobs([lm.start(prompt)])[0, allowed].astype(np.float64) / 0.7)
        p /= p.sum()
        assert cursor is not None
        found = cursor.distribution(Here(matcher, 0))
        if keep == 1:  # only the end token is kept, and the grammar forbids the end here
            assert found is None
            continue
        q = np.zeros(len(TEXTS))
        q[found[0]] = found[1]
        assert set(np.flatnonzero(q)) == set(allowed) & set(drafter.rows)
        assert np.abs(law(lambda p, q, xs, c: recursive(p, q, xs, c)[0], p, q, 2, False) - p).max() < 1e-12
    options: dict[str, Any] = {"temperature": 0.9, "max_tokens": 24, "n": 3, "seed": 3}
    for tree in ({}, {"adaptive": False, "nodes": 8}):
        fast = sg.generate(lm, "ab", SCHEMAS[1], speculate=Speculation([drafter], **tree), **options)
        plain = sg.generate(lm, "ab", SCHEMAS[1], **options)
        assert [r.tokens for r in fast] == [r.tokens for r in plain]
    sampled = Speculation([drafter], rule="single")
    assert sg.generate(lm, "ab", SCHEMAS[1], speculate=sampled, **options)[0].speculation.drafted


def test_a_head_that_is_no_matrix_is_refused(lm: TransformersLM) -> None:
    with pytest.raises(LanguageModelError, match="not a matrix"):
        TrimmedHead(with_rows(lm, [0, 1, 2]))
    for bad in ({"keep": 0}, {"again": -1}):
        with pytest.raises(ValueError):
            TrimmedHead(lm, **bad)


# --- layers chosen at run time -------------------------------------------------------------------------


def idle(*layers: int) -> TransformersLM:
    """Returns a model of six layers, in which the given layers do nothing."""
    lm = TransformersLM(random_llama(6), vocabulary=VOCABULARY)
    for layer in layers:
        for name in ("self_attn.o_proj", "mlp.down_proj"):
            lm.model.base_model.layers[layer].get_submodule(name).weight.data.zero_()
    return lm


def test_the_quotient_is_that_of_geometric_acceptance() -> None:
    for a in (0.0, 0.3, 0.9):
        for c in (0.1, 0.5, 1.0):
            want = max([1.0, *((1 - a ** (n + 1)) / (1 - a) / (1 + n * c) for n in range(1, 9))])
            assert tokens_per_cost(a, c) == pytest.approx(want)


def test_exits_say_what_models_without_the_rest_say() -> None:
    """One forward pass of the target gives the prediction of every early exit."""
    lm = TransformersLM(random_llama(6), vocabulary=VOCABULARY)
    drafter = LayerChoice(lm)
    text = VOCABULARY.encode("abcabc12abc,ab")
    _, exits, _ = drafter._target(text)
    assert list(exits) == [tuple(range(after, 6)) for after in range(1, 6)]
    for skipped, share in exits.items():
        assert share == pytest.approx(agreement(lm, without_layers(lm, skipped), text))


@pytest.mark.parametrize("gone", [(2, 3), (4, 5), (1, 4)])
def test_layers_that_do_nothing_are_found_while_running(gone: tuple[int, ...]) -> None:
    lm = idle(*gone)
    drafter = LayerChoice(lm, [3] if 3 not in gone else [1], again=4, window=32)
    # The seconds of so small a model are noise, so the test measures the number of layers.
    drafter._said = counted(drafter)  # type: ignore[method-assign]
    options = Speculation([drafter], adaptive=False, nodes=4)
    for seed in range(30):
        how: dict[str, Any] = {"max_tokens": 24, "temperature": 0.7 * (seed % 2), "seed": seed}
        plain = sg.generate(lm, "abcab12", SCHEMAS[seed % 3], **how)
        fast = sg.generate(lm, "abcab12", SCHEMAS[seed % 3], speculate=options, **how)
        assert fast.tokens == plain.tokens
        if set(drafter.layers.skipped) >= set(gone):
            break
    assert drafter.looks >= drafter.changes > 0
    assert set(drafter.layers.skipped) >= set(gone) and len(drafter._known) <= 6


def counted(drafter: LayerChoice) -> Any:
    real = LayerChoice._said.__get__(drafter)

    def said(lm: TransformersLM, text: list[int]) -> Any:
        found, _, states = real(lm, text)
        return found, len(lm.model.base_model.layers) / 6, states

    return said


def test_acceptance_is_that_of_the_drafts() -> None:
    """Acceptance is counted from the steps: the share of first drafted tokens that the target chose."""
    lm = idle(1)
    drafter = LayerChoice(lm, [1, 2], again=10**6)
    prompt = VOCABULARY.encode("ab")
    session = drafter.open(Start(prompt, VOCABULARY, None, 0.0, None))
    layers, hits, places = drafter.layers, 4.0, 8.0
    for length in (2, 1, 3):
        cursor, step = session.cursor(), list[int]()
        while len(step) < length:  # the text follows the draft at every second place
            assert cursor is not None
            first = cursor.children(Here(None, 0))[0][0]
            accepted = len(step) % 2 == 0
            hits, places = 0.98 * hits + accepted, 0.98 * places + 1
            step.append(first if accepted else (first + 1) % len(TEXTS))
            # The tree goes on behind the draft, also if the text differs.
            before, cursor = cursor, cursor.step(step[-1])
            other = before.step((step[-1] + 1) % len(TEXTS))
            assert other is not None
            other.children(Here(None, 0))
        session.accept(Step(step))
        assert layers.acceptance == pytest.approx(hits / places)
    assert drafter.looks == 0


def test_layers_may_be_sampled_from_and_models_without_layers_are_refused() -> None:
    lm = idle(2)
    for rule in ("single", "beam"):
        options = Speculation([LayerChoice(lm, again=4)], rule=rule)  # type: ignore[arg-type]
        found = sg.generate(lm, "ab", SCHEMAS[0], temperature=1.0, seed=2, max_tokens=40, speculate=options)
        assert found.speculation.accepted
    with pytest.raises(LanguageModelError, match="none to skip"):
        LayerChoice(TransformersLM(random_llama(2), vocabulary=VOCABULARY))
    with pytest.raises(LanguageModelError, match="no layers"):
        LayerChoice(sg)  # type: ignore[arg-type]
    for bad in ({"again": 0}, {"window": 1}, {"width": 0}):
        with pytest.raises(ValueError):
            LayerChoice(lm, **bad)
