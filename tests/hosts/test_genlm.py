"""structgen as a potential of the real genlm-control. The oracle is genlm-control's own test of potentials.

`make test-hosts HOST=genlm`.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

control = pytest.importorskip("genlm.control", reason="make test-hosts HOST=genlm")
sys.path.append(str(Path(__file__).parent))

import jsonschema  # noqa: E402
import torch  # noqa: E402
from contract import EXPECTED, MODEL, ORDER, PROMPT  # noqa: E402
from genlm.control import AWRS, PromptedLLM, direct_token_sampler  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.integrations.genlm import GrammarPotential, engine_of  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def llm() -> Any:
    return PromptedLLM.from_name(MODEL, backend="hf", eos_byte_strings=[b"<|end|>"])


@pytest.fixture(scope="session")
def engine(llm: Any) -> Any:
    return engine_of(llm)


def contexts(potential: GrammarPotential, chance: random.Random, count: int) -> list[list[Any]]:
    """Prefixes of texts, drawn by random walks through the masks."""
    tokens = {token.token_id: token for token in potential.vocab}
    found: list[list[Any]] = [[]]
    while len(found) < count:
        matcher, context = potential.grammar.matcher(), []
        for _ in range(chance.randint(1, 12)):
            row = sg.allocate_bitmask(1, potential.grammar.vocabulary.vocab_size)
            matcher.fill_bitmask(row)
            allowed = np.flatnonzero(np.unpackbits(row[0].view(np.uint8), bitorder="little")).tolist()
            allowed = [token for token in allowed if token in tokens]
            if not allowed:
                break
            token = chance.choice(allowed)
            assert matcher.accept_token(token)
            context.append(tokens[token])
        found.append(context)
    return found


@pytest.mark.parametrize("kind, text", [("regex", "(ab|yes)*c?"), ("choice", ["yes", "no"])])
@pytest.mark.parametrize("kept", [512, 1])
def test_the_laws_of_potentials(llm: Any, engine: Any, kind: str, text: Any, kept: int) -> None:
    potential = GrammarPotential(llm, engine.compile(kind, text), contexts=kept)
    found = contexts(potential, random.Random(4), 4)
    asyncio.run(potential.assert_contract(found, top=30))


def test_weights_are_those_of_a_matcher(llm: Any, engine: Any) -> None:
    grammar = engine.compile("json_schema", json.dumps(ORDER))
    potential = GrammarPotential(llm, grammar, contexts=20)
    for context in contexts(potential, random.Random(1), 60):
        matcher = grammar.matcher()
        assert matcher.accept_tokens([token.token_id for token in context])
        row = sg.allocate_bitmask(1, grammar.vocabulary.vocab_size)
        matcher.fill_bitmask(row)
        places, weight, end = asyncio.run(potential.sparse_logw_next(context))
        ids = {potential.vocab[i].token_id for i in places}
        allowed = set(np.flatnonzero(np.unpackbits(row[0].view(np.uint8), bitorder="little")).tolist())
        assert ids == allowed - set(grammar.vocabulary.eos_token_ids) and weight == 0.0
        assert (end == 0.0) == matcher.is_accepting()
        assert (asyncio.run(potential.complete(context)) == 0.0) == matcher.is_accepting()
    wrong = [t for t in potential.vocab if bytes(t) == b"items"]
    assert asyncio.run(potential.prefix(wrong)) == -np.inf
    with pytest.raises(ValueError, match="weight zero"):
        asyncio.run(potential.sparse_logw_next(wrong))


@pytest.mark.parametrize("sampler", ["direct", "awrs"])
def test_sampling(llm: Any, engine: Any, sampler: str) -> None:
    potential = GrammarPotential(llm, engine.compile("json_schema", json.dumps(ORDER)))
    llm.prompt_ids = llm.model.tokenizer(PROMPT).input_ids
    made = direct_token_sampler(llm * potential) if sampler == "direct" else AWRS(llm, potential)

    async def run() -> Any:
        return await made.smc(n_particles=4, ess_threshold=0.5, max_tokens=90)

    found = asyncio.run(run())
    posterior = found.decoded_posterior
    assert EXPECTED in posterior and posterior[EXPECTED] > 0.2
    for text in posterior:
        jsonschema.validate(json.loads(text), ORDER)


def test_evidence_is_the_sum_over_all_texts(llm: Any, engine: Any) -> None:
    """The log Z that SMC estimates is near the sum over every text, for a model that ends its answer
    itself."""
    begun, _, _ = EXPECTED.rpartition("false")
    llm.prompt_ids = llm.model.tokenizer(PROMPT + begun).input_ids
    grammar = engine.compile("choice", ["true}", "false}", "null}", "12}", '"no"}'])
    potential = GrammarPotential(llm, grammar)

    async def run() -> float:
        sampler = direct_token_sampler(llm * potential)
        return float((await sampler.smc(n_particles=400, ess_threshold=0.0, max_tokens=12)).log_ml)

    estimate, exact = asyncio.run(run()), exact_evidence(llm, grammar)
    assert abs(estimate - exact) < 0.05, (estimate, exact)
    assert exact < 0.0


def exact_evidence(llm: Any, grammar: Any) -> float:
    """Returns the logarithm of the summed probability of all texts, over every tokenization of each text."""

    async def total(context: list[Any], matcher: sg.Matcher) -> float:
        weights = (await llm.logw_next(context)).weights
        weights = np.asarray(weights, np.float64)
        value = np.exp(weights[-1]) if matcher.is_accepting() else 0.0
        row = sg.allocate_bitmask(1, grammar.vocabulary.vocab_size)
        matcher.fill_bitmask(row)
        for place, token in enumerate(llm.vocab):
            if row[0].view(np.uint32)[token.token_id >> 5] >> (token.token_id & 31) & 1:
                after = matcher.fork()
                assert after.accept_token(token.token_id)
                value += np.exp(weights[place]) * await total([*context, token], after)
        return float(value)

    return float(np.log(asyncio.run(total([], grammar.matcher()))))
