"""The logits processor in transformers' generate(): each decoding mode compared with a plain masked loop."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

import structgen as sg  # noqa: E402
from oracles import closed, thinker  # noqa: E402
from structgen.integrations.transformers import LogitsProcessor, prefix_allowed_tokens_fn  # noqa: E402

torch.set_num_threads(1)  # the models are tiny, and several threads would only wait for each other

PAD, EOS = 0, 1
SCHEMA = closed({"name": {"type": "string", "maxLength": 6}, "ok": {"type": "boolean"}})
MERGES = [("a", "b"), ("t", "r"), ("tr", "u"), ("tru", "e"), ("{", '"'), ('"', ":"), ('"', ",")]
WIDTH = 288  # more columns than the tokenizer has tokens


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words = ["<pad>", "<eos>", *letters, *(a + b for a, b in MERGES)]
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={w: i for i, w in enumerate(words)}, merges=MERGES)
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<eos>", pad_token="<pad>", padding_side="left"
    )


def _model(seed: int) -> Any:
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=WIDTH,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=512,
        initializer_range=0.25,
        pad_token_id=PAD,
        eos_token_id=EOS,
        bos_token_id=None,
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def model() -> Any:
    return _model(0)


@pytest.fixture(scope="module")
def assistant() -> Any:
    """An assistant close to the model, so that some drafts are accepted. The grammar constrains both."""
    other = _model(0)
    torch.manual_seed(9)
    with torch.no_grad():
        for weight in other.parameters():
            weight += torch.randn_like(weight) * 0.03
    return other


@pytest.fixture(scope="module")
def compiler(tokenizer: Any, model: Any) -> sg.Compiler:
    return sg.Compiler(sg.Vocabulary.from_huggingface(tokenizer, model=model))


@pytest.fixture(scope="module")
def grammar(compiler: sg.Compiler) -> sg.CompiledGrammar:
    return compiler.json_schema(SCHEMA, whitespace="compact")


def ids(tokenizer: Any, *texts: str) -> dict[str, Any]:
    return dict(tokenizer(list(texts), return_tensors="pt", padding=True, return_token_type_ids=False))


def answers(output: Any, columns: int) -> list[list[int]]:
    """Returns the generated ids of each row, cut behind the first end token."""
    rows = []
    for row in output[:, columns:].tolist():
        rows.append(row[: row.index(EOS) + 1] if EOS in row else row)
    return rows


def masked_loop(
    model: Any, prompt: list[int], grammar: sg.CompiledGrammar, steps: int, sample_seed: int | None = None
) -> list[int]:
    """Returns the expected tokens of generate(): full forward passes, and a fresh matcher at each step."""
    if sample_seed is not None:
        torch.manual_seed(sample_seed)
    text: list[int] = []
    mask = sg.allocate_bitmask(1, grammar.vocabulary.vocab_size)
    while len(text) < steps and EOS not in text:
        matcher = grammar.matcher()
        assert matcher.accept_tokens(text)
        matcher.fill_bitmask(mask)
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([prompt + text])).logits[:, -1].float()
        logits = sg.apply_bitmask(logits, mask)
        if sample_seed is None:
            text.append(int(logits.argmax()))
        else:
            text.append(int(torch.multinomial(torch.softmax(logits, -1), 1)))
    return text


def check_text(grammar: sg.CompiledGrammar, row: list[int]) -> None:
    matcher = grammar.matcher()
    assert matcher.accept_tokens(row), bytes(grammar.vocabulary.decode(row))
    if EOS in row:
        value = json.loads(grammar.vocabulary.decode(row))
        if grammar.source is SCHEMA:
            assert set(value) == {"name", "ok"} and len(value["name"]) <= 6


def test_greedy_equals_the_plain_loop_and_the_processor_is_reused(
    model: Any, tokenizer: Any, grammar: Any
) -> None:
    processor = LogitsProcessor(grammar)
    for prompt in ("hello", "hello", "another prompt", "hello, and more", "he"):
        inputs = ids(tokenizer, prompt)
        output = model.generate(**inputs, logits_processor=[processor], max_new_tokens=60, do_sample=False)
        want = masked_loop(model, inputs["input_ids"][0].tolist(), grammar, 60)
        assert answers(output, inputs["input_ids"].shape[1]) == [want]
        check_text(grammar, want)


def test_sampling_with_one_seed_equals_the_plain_loop(model: Any, tokenizer: Any, grammar: Any) -> None:
    processor = LogitsProcessor(grammar)
    inputs = ids(tokenizer, "hello")
    seen = set()
    for seed in range(4):
        torch.manual_seed(seed)
        output = model.generate(
            **inputs, logits_processor=[processor], max_new_tokens=60, do_sample=True, top_k=0
        )
        want = masked_loop(model, inputs["input_ids"][0].tolist(), grammar, 60, sample_seed=seed)
        assert answers(output, inputs["input_ids"].shape[1]) == [want]
        seen.add(tuple(want))
    assert len(seen) > 1


def test_left_padded_rows_with_a_grammar_each(
    model: Any, tokenizer: Any, grammar: Any, compiler: Any
) -> None:
    other = compiler.json_schema({"enum": ["ab", "true", 17, None]}, whitespace="compact")
    inputs = ids(tokenizer, "a rather long prompt", "hi", "some words")
    grammars = [grammar, other, grammar]
    processor = LogitsProcessor(grammars)
    for _ in range(2):
        output = model.generate(**inputs, logits_processor=[processor], max_new_tokens=60, do_sample=False)
        for row, g, prompt in zip(
            answers(output, inputs["input_ids"].shape[1]), grammars, inputs["input_ids"].tolist(), strict=True
        ):
            assert row == masked_loop(model, [t for t in prompt if t != PAD], g, 60)
    with pytest.raises(ValueError, match="3 rows do not divide among 2 grammars"):
        LogitsProcessor([grammar, other])(inputs["input_ids"], torch.zeros(3, WIDTH))


@pytest.mark.parametrize("sample", [False, True])
def test_beams_and_several_sequences_a_prompt(
    model: Any, tokenizer: Any, grammar: Any, compiler: Any, sample: bool
) -> None:
    other = compiler.regex("(ab|true){1,9}x?")
    inputs = ids(tokenizer, "a rather long prompt", "hi")
    processor = LogitsProcessor([grammar, other])
    torch.manual_seed(0)
    for arguments in ({"num_beams": 4, "num_return_sequences": 3}, {"num_return_sequences": 3}):
        if not sample and "num_beams" not in arguments:
            continue
        output = model.generate(
            **inputs, logits_processor=[processor], max_new_tokens=40, do_sample=sample, top_k=0, **arguments
        )
        rows = answers(output, inputs["input_ids"].shape[1])
        assert len(rows) == 6
        for i, row in enumerate(rows):
            g = (grammar, other)[i // 3]
            assert g.matcher().accept_tokens(row)


def test_beams_that_outnumber_the_language(model: Any, tokenizer: Any, compiler: Any) -> None:
    inputs = ids(tokenizer, "hi")
    two = compiler.choice(["ab", "true"])
    output = model.generate(
        **inputs, logits_processor=[LogitsProcessor(two)], num_beams=5, max_new_tokens=8, do_sample=False
    )
    assert two.vocabulary.decode(answers(output, 2)[0]) in (b"ab", b"true")


@pytest.mark.parametrize("prompt", ['repeat {"name":"abab","ok":true} again {"', "nothing to copy"])
def test_prompt_lookup_equals_greedy(model: Any, tokenizer: Any, grammar: Any, prompt: str) -> None:
    inputs = ids(tokenizer, prompt)
    processor = LogitsProcessor(grammar)
    want = masked_loop(model, inputs["input_ids"][0].tolist(), grammar, 50)
    for count in (2, 5, 10):
        output = model.generate(
            **inputs,
            logits_processor=[processor],
            max_new_tokens=50,
            do_sample=False,
            prompt_lookup_num_tokens=count,
        )
        assert answers(output, inputs["input_ids"].shape[1]) == [want]


def test_prompt_lookup_drafts_what_the_grammar_allows(model: Any, tokenizer: Any, compiler: Any) -> None:
    """Prompt lookup probes the processor with scores that it also uses for the draft. A processor that writes
    into these scores would fill them with -inf and cut the draft."""
    from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

    text = compiler.choice(["abcdefghij"])
    rows = ids(tokenizer, "abcdefghij|abc")["input_ids"]
    start = rows.shape[1] - 2  # "ab" is one token, "c" the next
    generator = PromptLookupCandidateGenerator(
        eos_token_id=torch.tensor([EOS]),
        num_output_tokens=4,
        max_matching_ngram_size=2,
        max_length=100,
        logits_processor=transformers.LogitsProcessorList([LogitsProcessor(text, start)]),
        vocab_size=WIDTH,
    )
    drafted, _ = generator.get_candidates(rows)
    assert tokenizer.decode(drafted[0, rows.shape[1] :]) == "defg"


@pytest.mark.parametrize("sample", [False, True])
def test_assisted_decoding(model: Any, assistant: Any, tokenizer: Any, grammar: Any, sample: bool) -> None:
    processor = LogitsProcessor(grammar)
    for prompt in ("hello", "more of it"):
        inputs = ids(tokenizer, prompt)
        torch.manual_seed(1)
        output = model.generate(
            **inputs,
            assistant_model=assistant,
            logits_processor=[processor],
            max_new_tokens=50,
            do_sample=sample,
        )
        row = answers(output, inputs["input_ids"].shape[1])[0]
        check_text(grammar, row)
        if not sample:
            assert row == masked_loop(model, inputs["input_ids"][0].tolist(), grammar, 50)


def test_random_calls_equal_fresh_matchers(grammar: Any, compiler: Any) -> None:
    """Rows grow, swap, shrink, end, leave the language and are asked again. Each call equals a call with
    fresh matchers, and the given scores stay unchanged."""
    size = grammar.vocabulary.vocab_size
    for seed in range(8):
        rng = random.Random(seed)
        columns, count = rng.randrange(0, 4), rng.randrange(1, 4)
        processor = LogitsProcessor(grammar, columns if seed % 2 else None)
        beams = seed >= 4  # rows of one prompt change places
        prompt = [[rng.randrange(size) for _ in range(columns)] for _ in range(count)]
        if beams:
            prompt = prompt[:1] * count
        texts: list[list[int]] = [[] for _ in range(count)]
        for _ in range(60):
            rows = torch.tensor([p + t for p, t in zip(prompt, texts, strict=True)], dtype=torch.long)
            scores = torch.randn(count, WIDTH)
            before = scores.clone()
            found = processor(rows, scores)
            assert torch.equal(scores, before)
            for text, row, given in zip(texts, found, scores, strict=True):
                allowed = torch.isfinite(row)
                assert torch.equal(row[allowed], given[allowed])
                assert set(torch.nonzero(allowed)[:, 0].tolist()) == _expected(grammar, text)
            # a chat: prompts, answers with end tokens, and a question
            if not seed % 2 and rng.random() < 0.1:
                question = [rng.randrange(EOS + 1, size) for _ in range(rng.randrange(2, 6))]
                prompt = [[*p, *t, EOS, *question] for p, t in zip(prompt, texts, strict=True)]
                texts = [[] for _ in texts]
            elif rng.random() < 0.2 and texts[0]:
                cut = rng.randrange(len(texts[0]))
                texts = [t[:cut] for t in texts]
            elif beams:
                texts = [t + [_next(rng, grammar, t)] for t in rng.choices(texts, k=count)]
            else:
                texts = [t + [_next(rng, grammar, t)] for t in texts]


def _expected(grammar: Any, text: list[int]) -> set[int]:
    matcher = grammar.matcher()
    if EOS in text and matcher.validate_tokens(text) > text.index(EOS):
        return {EOS}
    matcher = grammar.matcher()
    if not matcher.accept_tokens(text):
        return {EOS}
    return {t for t in range(grammar.vocabulary.vocab_size) if matcher.fork().accept_token(t)}


def _next(rng: random.Random, grammar: Any, text: list[int]) -> int:
    if rng.random() < 0.05:
        return rng.randrange(grammar.vocabulary.vocab_size)
    return rng.choice(sorted(_expected(grammar, text)))


def test_dead_rows_are_tolerated(grammar: Any) -> None:
    rows = torch.tensor([[5, 6]])
    dead = torch.tensor([[5, 6, EOS + 1, 9, 9]])
    for policy, count in (("eos", 1), ("all", grammar.vocabulary.vocab_size)):
        processor = LogitsProcessor(grammar, 2, on_dead=policy)
        fine = processor(rows, torch.zeros(1, WIDTH))
        assert int(torch.isfinite(processor(dead, torch.zeros(1, WIDTH))).sum()) == count
        assert torch.equal(processor(rows, torch.zeros(1, WIDTH)), fine)
    with pytest.raises(ValueError, match="on_dead"):
        LogitsProcessor(grammar, on_dead="raise")  # type: ignore[arg-type]


def test_a_new_prompt_is_noticed(grammar: Any, tokenizer: Any) -> None:
    processor = LogitsProcessor(grammar)
    zeros = torch.zeros(1, WIDTH)
    first = processor(torch.tensor([[5, 6]]), zeros)
    opening = int(torch.nonzero(torch.isfinite(first[0]))[0])
    processor(torch.tensor([[5, 6, opening]]), zeros)
    for rows in ([[5, 6, 7, 8]], [[5]], [[5, 6, 9]], [[9, 9, 9]], [[5, 6]]):
        found = processor(torch.tensor(rows), zeros)
        assert torch.equal(found, first), rows
    # The processor takes an equal prompt and answer for the same text going on; reset() starts a new text.
    processor(torch.tensor([[5, 6, opening]]), zeros)
    processor.reset()
    assert torch.equal(processor(torch.tensor([[5, 6, opening]]), zeros), first)


def test_a_chat_with_one_processor(model: Any, tokenizer: Any, grammar: Any) -> None:
    """Each prompt is the previous prompt, its answer with the end token, and a new question."""
    processor = LogitsProcessor(grammar)
    prompt = ids(tokenizer, "hello")["input_ids"]
    for question in ("", "and you?", "b", "tr"):
        prompt = torch.cat([prompt, ids(tokenizer, question)["input_ids"].long()], 1)
        output = model.generate(
            prompt, logits_processor=[processor], max_new_tokens=60, do_sample=False, pad_token_id=PAD
        )
        want = masked_loop(model, prompt[0].tolist(), grammar, 60)
        assert answers(output, prompt.shape[1]) == [want]
        assert len(want) > 1 and want[-1] == EOS
        prompt = output


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_scores_of_any_type_and_width(grammar: Any, dtype: Any) -> None:
    size = grammar.vocabulary.vocab_size
    narrow = LogitsProcessor(grammar)(torch.tensor([[3]]), torch.zeros(1, size, dtype=dtype))
    wide = LogitsProcessor(grammar)(torch.tensor([[3]]), torch.zeros(1, size + 100, dtype=dtype))
    assert narrow.dtype == wide.dtype == dtype
    assert torch.equal(wide[:, :size], narrow) and not torch.isfinite(wide[:, size:]).any()
    with pytest.raises(sg.VocabularyError, match="the model 200 logits"):
        LogitsProcessor(grammar)(torch.tensor([[3]]), torch.zeros(1, 200))


def test_prefix_allowed_tokens_fn(model: Any, tokenizer: Any, grammar: Any, compiler: Any) -> None:
    inputs = ids(tokenizer, "a rather long prompt", "hi")
    other = compiler.choice(["ab", "true"])
    output = model.generate(
        **inputs,
        prefix_allowed_tokens_fn=prefix_allowed_tokens_fn([grammar, other]),
        max_new_tokens=60,
        do_sample=False,
    )
    same = model.generate(
        **inputs,
        logits_processor=[LogitsProcessor([grammar, other])],
        max_new_tokens=60,
        do_sample=False,
    )
    assert torch.equal(output, same)
    beams = model.generate(
        **inputs,
        prefix_allowed_tokens_fn=prefix_allowed_tokens_fn(grammar),
        num_beams=3,
        max_new_tokens=30,
        do_sample=False,
    )
    for row in answers(beams, inputs["input_ids"].shape[1]):
        assert grammar.matcher().accept_tokens(row)


def test_a_long_text_costs_one_accept_a_step(compiler: Any) -> None:
    """Each call extends the matcher of the previous call by one token. No call forks or replays a matcher."""
    grammar = compiler.regex("a*")
    processor = LogitsProcessor(grammar, 1)
    a = grammar.vocabulary.encode("a")[0]
    scores = torch.zeros(1, WIDTH)
    for length in range(300):
        processor(torch.tensor([[7] + [a] * length]), scores)
    tracks = processor._batch.rows._pools[0].tracks
    assert len(tracks) == 1 and tracks[0].matcher.num_steps == 299
    assert np.isfinite(processor(torch.tensor([[7] + [a] * 5]), scores)[0, a].item())


def test_masks_and_failed_rows_are_counted() -> None:
    """A row that stays without a mask counts as one failure."""
    vocabulary = sg.Vocabulary.from_bytes([None, b"", *(bytes([b]) for b in range(256))], EOS)
    good = sg.Compiler(vocabulary).regex("[ab]+")
    bad = sg.Compiler(vocabulary).regex("[ab]{9}")
    processor = LogitsProcessor([good, bad], prompt_lengths=0, max_new_tokens=4, on_error="eos")
    for _ in range(2):
        processor(torch.zeros(2, 0, dtype=torch.long), torch.zeros(2, WIDTH))
        assert set(processor.errors) == {1}
    found = processor.telemetry.counters
    assert (found["masks"], found["inexact"], found["failed"]) == (4, 0, 1)


@pytest.mark.parametrize("most", [12, 30, 80])
def test_thoughts_of_every_length_end_in_time(tmp_path: Path, most: int) -> None:
    """A model that thinks at random, also without end: 48 sampled rows, and 4 with prompt lookup."""
    folder = thinker.write(tmp_path)
    judge = thinker.Judge(folder)
    grammar = sg.Compiler(judge.vocabulary).json_schema(thinker.SCHEMA, whitespace="compact")
    grammar = sg.Compiler(judge.vocabulary).with_reasoning(grammar, thinker.THINKS)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    prompt = torch.tensor([judge.vocabulary.encode("thoughts") + [4]])
    torch.manual_seed(3)
    how = {"do_sample": True, "max_new_tokens": most, "pad_token_id": 0}
    rows = model.generate(
        prompt, logits_processor=[LogitsProcessor(grammar, max_new_tokens=most)],
        num_return_sequences=48, **how,
    ).tolist()  # fmt: skip
    for _ in range(4):
        drafted = LogitsProcessor(grammar, max_new_tokens=most)
        rows += model.generate(
            prompt, logits_processor=[drafted], prompt_lookup_num_tokens=5, **how
        ).tolist()  # fmt: skip
    for row in rows:
        text = row[prompt.shape[1] :]
        judge.ids(text[: text.index(EOS) + 1], most)
    judge.complete()
