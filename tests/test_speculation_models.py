"""Speculation with models of transformers: equal texts in float64, in `generate()`, and with the embedded
models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import structgen as sg  # noqa: E402
from oracles import closed  # noqa: E402
from oracles.speculative import DRAFTERS, SCHEMAS, TEXTS, TREES, VOCABULARY, RandomModel, random_llama  # noqa: E402
from structgen.integrations.transformers import LogitsProcessor  # noqa: E402
from structgen.integrations.transformers_speculation import SpeculativeGenerate  # noqa: E402
from structgen.lm.base import LanguageModelError  # noqa: E402
from structgen.lm.transformers import TransformersLM  # noqa: E402
from structgen.speculation import DraftModel, Speculation, layer_skip, standard_drafters  # noqa: E402
from structgen.speculation.base import Quiet  # noqa: E402
from structgen.speculation.drafters.layer_skip import agreement, without_layers  # noqa: E402

torch.set_num_threads(1)
FOLDER = Path(sg.__file__).parent / "lm" / "embedded"
PAD = 0  # the end token pads, too


@pytest.fixture(scope="module")
def lm() -> TransformersLM:
    return TransformersLM(random_llama(), vocabulary=VOCABULARY)


@pytest.mark.parametrize("drafters", DRAFTERS)
def test_texts_in_float64_are_those_of_plain_decoding(lm: TransformersLM, drafters: str) -> None:
    """All drafters and trees, greedy and sampled, one row and three. Plain decoding has a cache of its
    own."""
    for number, tree in enumerate(("adaptive", "chain", "wide")):
        options = Speculation(DRAFTERS[drafters](), **TREES[tree])  # type: ignore[arg-type]
        for how in ({}, {"temperature": 0.9, "seed": number, "n": 3}):
            arguments: dict[str, Any] = {"max_tokens": 24, **how}
            schema = SCHEMAS[number]
            plain = sg.generate(lm, "abcab12", schema, **arguments)
            for logprobs in (True, False):
                options.restricted_head = 16
                fast = sg.generate(lm, "abcab12", schema, speculate=options, logprobs=logprobs, **arguments)
                for a, b in zip(_listed(plain), _listed(fast), strict=True):
                    assert a.tokens == b.tokens
                    assert not logprobs or a.logprobs == pytest.approx(b.logprobs, abs=1e-4)
                assert fast and _listed(fast)[0].speculation.forwards <= max(
                    len(r.tokens) for r in _listed(fast)
                )


def _listed(result: Any) -> list[Any]:
    return result if isinstance(result, list) else [result]


def test_the_restricted_head_is_used_where_masks_are_small(lm: TransformersLM) -> None:
    options = Speculation(standard_drafters(), restricted_head=12)
    result = sg.generate(lm, "ab", SCHEMAS[0], max_tokens=30, speculate=options, logprobs=False)
    stats = result.speculation
    assert result.tokens == sg.generate(lm, "ab", SCHEMAS[0], max_tokens=30).tokens
    assert stats is not None and 0 < stats.head_rows < stats.tokens * len(TEXTS)


def test_what_was_likely_is_that_of_the_scored_places(lm: TransformersLM) -> None:
    """Drafters learn which tokens were likely at each scored place, also at refused drafts. Contexts, tokens
    and probabilities equal those of plain forward passes."""
    steps: list[Any] = []

    class Listener(Quiet):
        name = "listener"

        def open(self, start: Any) -> Any:
            return self

        def cursor(self) -> Any:
            return None

        def accept(self, step: Any) -> None:
            steps.append(step)
            if step.likely is not None:
                seen.append((list(step.tokens), step.likely))

    seen: list[Any] = []
    options = Speculation([*standard_drafters(), Listener()], adaptive=False, nodes=8)
    for model in (lm, RandomModel(3)):
        seen.clear()
        result = sg.generate(model, "abcabcab12", SCHEMAS[0], max_tokens=24, speculate=options)
        text, at, known, deep = model.start("abcabcab12").tokens, 0, 0, 0
        assert [t for tokens, _ in seen for t in tokens] == result.tokens
        for tokens, likely in seen:
            # The places of the text itself come last.
            for i, token in enumerate(tokens):
                place = len(likely.contexts) - len(tokens) + i
                assert likely.contexts[place] == tuple([*text, *result.tokens[: at + i]][-8:])
                row = model.logprobs([model.start([*text, *result.tokens[: at + i]])])[0]
                assert likely.logprobs[place] == pytest.approx(row[likely.ids[place]], abs=1e-5)
                assert likely.logprobs[place, 0] == pytest.approx(row.max(), abs=1e-5)
                assert row[token] <= likely.logprobs[place, 0] + 1e-5
            taken = [*text, *result.tokens[:at]]
            for context, ids, logprobs in zip(likely.contexts, likely.ids, likely.logprobs, strict=True):
                # The depth of the place is unknown, so one of the depths that fit must be right.
                paths = [context[8 - d :] for d in range(8) if tuple(taken[-8:])[d:] == context[: 8 - d]]
                rows = [model.logprobs([model.start([*taken, *path])])[0] for path in paths]
                known += any(logprobs == pytest.approx(row[ids], abs=1e-5) for row in rows)
                deep += not paths
            at += len(tokens)
        assert known + deep == sum(len(likely.contexts) for _, likely in seen)
        assert known > len(result.tokens)  # refused drafts are known, too
    # If only some rows of the head were computed, no probability is known, and none is reported.
    options.restricted_head, steps[:] = 12, []
    sg.generate(lm, "ab", SCHEMAS[0], max_tokens=24, speculate=options, logprobs=False)
    assert steps and all(s.likely is None for s in steps)


def test_layers_left_out_share_their_weights() -> None:
    lm = TransformersLM(random_llama(6), vocabulary=VOCABULARY)
    before = [p.clone() for p in lm.model.parameters()]
    short = without_layers(lm, [2, 3])
    own = {p.data_ptr() for p in lm.model.parameters()}
    assert {p.data_ptr() for p in short.model.parameters()} < own
    assert len(short.model.base_model.layers) == 4 and len(lm.model.base_model.layers) == 6
    text = VOCABULARY.encode("abcabc12")
    assert agreement(lm, lm, text) == 1.0
    # Omitting a layer that does nothing changes no result, with a cache and without.
    for name in ("self_attn.o_proj", "mlp.down_proj"):
        lm.model.base_model.layers[2].get_submodule(name).weight.data.zero_()
    idle = without_layers(lm, [2])
    assert agreement(lm, idle, text) == 1.0
    for model in (lm, idle):
        contexts = [model.start(text[: i + 1]) for i in range(len(text))]
        rows = [model.logprobs([c])[0] for c in contexts]
        if model is lm:
            wanted = rows
    assert all(abs(a - b).max() < 1e-6 for a, b in zip(rows, wanted, strict=True))
    drafter = layer_skip(lm, text, share=0.2)
    result = sg.generate(lm, "ab", SCHEMAS[0], max_tokens=40)
    options = Speculation([drafter], adaptive=False, nodes=6)
    fast = sg.generate(lm, "ab", SCHEMAS[0], max_tokens=40, speculate=options)
    assert fast.tokens == result.tokens and fast.speculation is not None
    assert fast.speculation.forwards < len(fast.tokens)
    assert all(torch.equal(a, b) for a, b in zip(before[:2], list(lm.model.parameters())[:2], strict=True))
    with pytest.raises(LanguageModelError, match="can be skipped"):
        without_layers(lm, [0])
    with pytest.raises(LanguageModelError, match="no list of layers"):
        gpt = transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=len(TEXTS), n_embd=16, n_layer=3, n_head=2)
        )
        layer_skip(TransformersLM(gpt, vocabulary=VOCABULARY), text)


def test_a_recurrent_model_is_refused_or_left_alone() -> None:
    config = transformers.MambaConfig(
        vocab_size=len(TEXTS), hidden_size=16, num_hidden_layers=1, state_size=4, eos_token_id=0
    )
    lm = TransformersLM(transformers.MambaForCausalLM(config), vocabulary=VOCABULARY)
    plain = sg.generate(lm, "ab", SCHEMAS[2], max_tokens=12)
    auto = sg.generate(lm, "ab", SCHEMAS[2], max_tokens=12, speculate="auto")
    assert auto.tokens == plain.tokens and auto.speculation is None
    with pytest.raises(LanguageModelError):
        sg.generate(lm, "ab", SCHEMAS[2], max_tokens=12, speculate=standard_drafters())


# --- inside model.generate -------------------------------------------------------------------------------


def batch(prompts: list[str]) -> dict[str, Any]:
    rows = [VOCABULARY.encode(p) for p in prompts]
    width = max(map(len, rows))
    ids = torch.tensor([[PAD] * (width - len(r)) + r for r in rows])
    mask = torch.tensor([[0] * (width - len(r)) + [1] * len(r) for r in rows])
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("drafters", ["none", "fused", "same model"])
def test_generate_with_it_is_generate_with_the_processor(drafters: str) -> None:
    model = random_llama()
    grammars = [sg.Compiler(VOCABULARY).json_schema(s, whitespace="compact") for s in SCHEMAS]
    inputs = batch(["a", "abcabc", "12,1"])
    wanted = model.generate(
        **inputs, logits_processor=[LogitsProcessor(grammars)], max_new_tokens=30, do_sample=False
    )
    loop = SpeculativeGenerate(grammars, speculate=Speculation(DRAFTERS[drafters](), adaptive=False, nodes=6))
    found = model.generate(**inputs, custom_generate=loop, max_new_tokens=30, do_sample=False)
    assert torch.equal(found, wanted)
    assert loop.statistics is not None and loop.statistics.tokens_per_forward >= 1.0
    again = model.generate(
        **inputs, custom_generate=loop, max_new_tokens=30, do_sample=False, return_dict_in_generate=True
    )
    assert torch.equal(again.sequences, wanted)


def test_generate_samples_stops_and_streams() -> None:
    model = random_llama()
    grammar = sg.Compiler(VOCABULARY).json_schema(SCHEMAS[0], whitespace="compact")
    how: dict[str, Any] = {
        "max_new_tokens": 60,
        "do_sample": True,
        "temperature": 0.7,
        "top_k": 8,
        "top_p": 0.9,
    }
    one, two = (SpeculativeGenerate(grammar, seed=4), SpeculativeGenerate(grammar, seed=4, speculate=[]))
    inputs = batch(["ab"])
    for _ in range(2):
        a = model.generate(**inputs, custom_generate=one, **how)
        b = model.generate(**inputs, custom_generate=two, **how)
        assert torch.equal(a, b) and grammar.matcher().accept_tokens(a[0, 1:].tolist())

    class Stop(transformers.StoppingCriteria):  # type: ignore[misc, unused-ignore]
        def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
            return torch.tensor([input_ids.shape[1] >= 9])

    class Streamer:
        def __init__(self) -> None:
            self.tokens: list[int] = []
            self.ended = False

        def put(self, value: Any) -> None:
            self.tokens += value.flatten().tolist()

        def end(self) -> None:
            self.ended = True

    streamer = Streamer()
    one = SpeculativeGenerate(grammar, seed=4, streamer=streamer)
    found = model.generate(**inputs, custom_generate=one, stopping_criteria=[Stop()], max_new_tokens=60)
    assert found.shape == (1, 9) and streamer.tokens == found[0, 1:].tolist() and streamer.ended


def test_what_the_loop_cannot_honour_is_named() -> None:
    model = random_llama()
    grammar = sg.Compiler(VOCABULARY).json_schema(SCHEMAS[0])
    loop = SpeculativeGenerate(grammar)
    inputs = batch(["ab"])
    for arguments, message in (
        ({"repetition_penalty": 1.5}, "RepetitionPenalty"),
        ({"logits_processor": [LogitsProcessor(grammar)]}, "goes into SpeculativeGenerate"),
        ({"num_beams": 2}, "no beams"),
    ):
        with pytest.raises(ValueError, match=message):
            model.generate(**inputs, custom_generate=loop, max_new_tokens=5, **arguments)
    with pytest.raises(ValueError, match="vocabulary"):
        SpeculativeGenerate()
    free = SpeculativeGenerate(vocabulary=VOCABULARY)
    wanted = model.generate(**inputs, max_new_tokens=20, do_sample=False)
    assert torch.equal(
        model.generate(**inputs, custom_generate=free, max_new_tokens=20, do_sample=False), wanted
    )


# --- the embedded pair -----------------------------------------------------------------------------------


@pytest.mark.skipif(
    not (FOLDER / "target" / "model.safetensors").is_file(), reason="no embedded target model"
)
def test_the_embedded_pair_drafts_and_verifies() -> None:
    lm = TransformersLM.from_pretrained(FOLDER / "target")
    draft = TransformersLM.from_pretrained(FOLDER / "draft")
    schema = closed({"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}})
    options = [Speculation(standard_drafters()), Speculation([DraftModel(draft)], adaptive=False, nodes=6)]
    for how in ({}, {"temperature": 1.0, "seed": 5}):
        for prompt in ("Ada Byron is 36 years old and lives in Oslo", "Bob, 51, from Rome"):
            plain = sg.generate(lm, prompt, schema, **how)
            for option in options:
                fast = sg.generate(lm, prompt, schema, speculate=option, **how)
                assert fast.tokens == plain.tokens and fast.speculation is not None
                assert fast.speculation.forwards < len(fast.tokens)


def test_drafts_of_another_vocabulary_know_the_prompt_as_text() -> None:
    from oracles.speculative import OTHER

    seen: list[Any] = []

    class Spy(RandomModel):
        def start(self, prompt: Any) -> Any:
            seen.append(prompt)
            return super().start(prompt)

    sg.generate(RandomModel(), "abc12", SCHEMAS[0], speculate=[DraftModel(Spy(1, OTHER))], max_tokens=20)
    assert seen == ["abc12"]
