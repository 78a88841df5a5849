"""sg.generate: the loop, the order of mask and truncation, seeds, ends of texts, and errors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles.speculative import SCHEMA, TOKENS, TableModel
from oracles.tasks import Context
from structgen._draws import Noise, draw
from structgen.constraints import constraint_of
from structgen.generation import Drawing, generate
from structgen.lm.base import ContextTooLong, LanguageModelError

ROOT = Path(__file__).resolve().parents[1]
DRAFT = ROOT / "structgen" / "lm" / "embedded" / "draft"


def test_greedy_is_the_plain_masked_loop() -> None:
    lm = TableModel()
    result = generate(lm, "go", SCHEMA, max_tokens=200, complete=False)
    grammar = sg.Compiler(lm.vocabulary).json_schema(SCHEMA, whitespace="compact")
    matcher, ids, mask = grammar.matcher(), lm.vocabulary.encode("go"), sg.allocate_bitmask(1, len(TOKENS))
    for token, logprob in zip(result.tokens, result.logprobs, strict=True):
        row = lm.logprobs([Context(tuple(ids))])
        matcher.fill_bitmask(mask)
        assert token == int(np.argmax(sg.apply_bitmask(row, mask)[0]))
        assert logprob == pytest.approx(float(row[0, token]))
        assert matcher.accept_token(token)
        ids.append(token)
    assert result.finish_reason in ("stop", "length")
    assert result.prompt_tokens == 2
    assert {"load", "compile", "prompt", "forward", "mask", "sample", "total"} <= result.timings.keys()
    assert result.sampling == Drawing(0.0, None, None, None)


def test_a_stopped_text_is_a_valid_compact_value() -> None:
    for seed in range(20):
        result = generate(TableModel(seed), "go", SCHEMA, max_tokens=400, temperature=1.0, seed=seed)
        if result.finish_reason == "stop":
            assert result.tokens[-1] == 0
            assert result.value == json.loads(result.text)
            assert set(result.value) == {"a", "b"} and result.value["b"] in ("x", "yy")
            assert " " not in result.text
        else:
            assert result.value is None and len(result.tokens) == 400


def test_a_seed_repeats_and_a_result_does_not_depend_on_n() -> None:
    arguments: dict[str, Any] = {"max_tokens": 40, "temperature": 1.3, "complete": False}
    three = generate(TableModel(), "go", SCHEMA, n=3, seed=7, **arguments)
    five = generate(TableModel(), "go", SCHEMA, n=5, seed=7, **arguments)
    assert isinstance(three, list) and isinstance(five, list)
    assert [r.tokens for r in three] == [r.tokens for r in five[:3]]
    assert len({tuple(r.tokens) for r in five}) > 1
    free = generate(TableModel(), "go", SCHEMA, **arguments)
    again = generate(TableModel(), "go", SCHEMA, seed=free.sampling.seed, **arguments)
    assert free.tokens == again.tokens


def test_samples_share_forwards_and_finished_ones_leave() -> None:
    lm = TableModel()
    results = generate(lm, "go", grammar=_choice(lm, ["a", "bcde"]), n=8, temperature=5.0, seed=1)
    assert isinstance(results, list)
    assert {r.value for r in results} == {"a", "bcde"}
    assert lm.calls[0] == 8 and lm.calls[-1] < 8 and len(lm.calls) == 5
    assert all(r.finish_reason == "stop" for r in results)


def _choice(lm: Any, texts: list[str]) -> sg.CompiledGrammar:
    return sg.Compiler(lm.vocabulary).choice(texts)


def test_draws_follow_the_masked_distribution() -> None:
    lm = TableModel(3)
    letters = "abcd"
    ids = [TOKENS.index(c.encode()) for c in letters]
    results = generate(lm, "go", grammar=_choice(lm, list(letters)), n=4000, temperature=0.7, seed=2)
    assert isinstance(results, list)
    found = Counter(r.text for r in results)
    scores = lm.logprobs([lm.start("go")])[0, ids].astype(np.float64) / 0.7
    want = np.exp(scores - scores.max())
    want /= want.sum()
    for letter, p in zip(letters, want, strict=True):
        assert abs(found[letter] / 4000 - p) < 4 * np.sqrt(p * (1 - p) / 4000) + 1e-3


def test_truncation_sees_allowed_tokens_only() -> None:
    # The model's most probable tokens are never letters of the choice.
    lm = TableModel(3)
    letters = "abcd"
    scores = lm.logprobs([lm.start("go")])[0]
    ranked = sorted(letters, key=lambda c: -scores[TOKENS.index(c.encode())])
    for arguments, expected in (({"top_k": 2}, 2), ({"top_p": 1e-6}, 1), ({"top_k": 1, "top_p": 0.9}, 1)):
        results = generate(
            lm, "go", grammar=_choice(lm, list(letters)), n=200, temperature=1.0, seed=3, **arguments
        )
        assert isinstance(results, list)
        assert {r.text for r in results} == set(ranked[:expected])
        assert results[0].sampling.order == ("mask", "temperature", "top_k", "top_p")


def test_draw_top_p_takes_the_fewest_that_reach_it() -> None:
    row = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))
    noise = Noise(0)
    for top_p, kept in ((0.4, 1), (0.6, 2), (0.9, 3), (1.0, 4)):
        how = Drawing(1.0, None, top_p, 0)
        assert {draw(row, how, noise, i) for i in range(600)} == set(range(kept))
    cold = Drawing(1e-12, None, None, 0)
    assert {draw(row, cold, noise, i) for i in range(50)} == {0}
    with pytest.raises(sg.StructgenError, match="no allowed token"):
        draw(np.full(4, -np.inf, np.float32), cold, noise, 0)


def test_length_ends_and_the_context_bounds_it() -> None:
    grammar = sg.Compiler(TableModel().vocabulary).regex("a*b")
    lm = TableModel()
    cut = generate(lm, "go", grammar=sg.Compiler(lm.vocabulary).regex("a{50}"), max_tokens=7, complete=False)
    assert (cut.finish_reason, cut.value, cut.text, len(cut.logprobs)) == ("length", None, "a" * 7, 7)
    short = TableModel(max_context=6)
    cut = generate(short, "go", grammar=sg.Compiler(short.vocabulary).regex("a{50}"), complete=False)
    assert len(cut.tokens) == 4
    with pytest.raises(ContextTooLong, match="answer included"):
        generate(TableModel(max_context=2), "go", grammar=grammar)


def test_a_budget_completes_the_text() -> None:
    for seed in range(10):
        result = generate(TableModel(seed), "go", SCHEMA, max_tokens=30, temperature=1.0, seed=seed)
        assert result.finish_reason == "stop" and len(result.tokens) <= 30


CONSTRAINTS: list[dict[str, Any]] = [
    {"schema": SCHEMA}, {"regex": "[a-d]{20,40}x"}, {"choice": ["a long answer", "a longer answer"]},
]  # fmt: skip


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_too_few_tokens_are_refused_with_the_number_it_takes(constraint: dict[str, Any]) -> None:
    lm = TableModel()
    made = constraint_of(constraint)
    assert made is not None
    takes = made.compile(sg.Compiler(lm.vocabulary)).matcher().tokens_needed()
    said = f"cannot be completed within 3 tokens; it takes {takes}, end of sequence included"
    how = {**constraint, "max_tokens": 3}
    with pytest.raises(sg.UnsatisfiableBudget, match=said):
        generate(lm, "go", **how)
    with pytest.raises(sg.UnsatisfiableBudget, match=said):
        list(sg.stream(lm, "go", **how))
    (failed,) = sg.generate_many(lm, ["go"], **how)
    assert isinstance(failed, sg.Failed) and said in str(failed.error)
    short = "within 4 tokens, which the prompt leaves of the model's context of 6; it takes"
    with pytest.raises(sg.UnsatisfiableBudget, match=short):
        generate(TableModel(max_context=6), "go", **constraint)


@pytest.mark.parametrize("speculate", [None, "auto"])
def test_a_result_says_whether_the_budget_forbade_anything(speculate: Any) -> None:
    """The definition: at some place of the text the grammar allows a token that the budget forbids."""
    seen = set()
    for max_tokens in (22, 23, 24, 26, 30, 60, 400):
        lm = TableModel()
        result = generate(
            lm, "x", SCHEMA, max_tokens=max_tokens, temperature=1.0, seed=3, speculate=speculate
        )
        matcher = (
            sg.Compiler(lm.vocabulary)
            .json_schema(SCHEMA, whitespace="compact", numbers="canonical", strings="plain")
            .matcher()
        )
        wide, mask = (sg.allocate_bitmask(1, lm.vocabulary.vocab_size) for _ in range(2))
        narrowed = False
        for position, token in enumerate(result.tokens):
            matcher.fill_bitmask(wide)
            matcher.fill_bitmask(mask, max_tokens=max_tokens - position)
            narrowed |= bool((wide != mask).any())
            matcher.accept_token(token)
        assert result.budget_bound == narrowed
        seen.add(narrowed)
    assert seen == {True, False}


def test_free_text_stops_at_the_end_token() -> None:
    result = generate(TableModel(), "go", max_tokens=2000, temperature=1.0, seed=0)
    assert result.finish_reason == "stop" and result.tokens.index(0) == len(result.tokens) - 1
    assert result.value == result.text == b"".join(TOKENS[t] for t in result.tokens).decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": 0}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.5}, "top_p"),
        ({"n": 0}, "n must"),
        ({"n": 2, "temperature": 0.0}, "n > 1 needs a temperature"),
        ({"format": "xml"}, "format is"),
        ({"format": "chat"}, "no chat template"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate(TableModel(), "go", SCHEMA, **arguments)


def test_a_grammar_of_another_vocabulary_is_refused() -> None:
    other = sg.Vocabulary.from_bytes([b"", *reversed(TOKENS[1:])], eos_token_ids=[0])
    longer = sg.Vocabulary.from_bytes([*TOKENS, b"zzz"], eos_token_ids=[0])
    ends = sg.Vocabulary.from_bytes(TOKENS, eos_token_ids=[5])
    for vocabulary in (other, longer, ends):
        with pytest.raises(sg.VocabularyError):
            generate(TableModel(), "go", grammar=sg.Compiler(vocabulary).choice(["a"]))
    grammar = sg.Compiler(TableModel().vocabulary).choice(["a"])
    # a limit equal to the fewest tokens is enough
    assert generate(TableModel(), "go", grammar=grammar).text == "a"
    with pytest.raises(ValueError, match="one constraint"):
        generate(TableModel(), "go", SCHEMA, grammar=grammar)
    with pytest.raises(TypeError, match="LanguageModel"):
        generate(3, "go")


# --- a model of transformers ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair() -> tuple[Any, Any]:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    torch.set_num_threads(1)
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<eos>": 0, **{c: i + 1 for i, c in enumerate(letters)}}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<eos>")
    tokenizer.chat_template = "{% for m in messages %}[{{ m['content'] }}]{% endfor %}"
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=272,  # the head has rows beyond the vocabulary
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=96,
        eos_token_id=0,
        initializer_range=0.3,
    )
    return transformers.LlamaForCausalLM(config).eval(), tokenizer


def test_a_pair_and_a_loaded_folder_agree(pair: tuple[Any, Any], tmp_path: Path) -> None:
    schema = {"enum": ["first", "second", "third", 4]}
    a = generate(pair, "go", schema, temperature=1.0, seed=4)
    pair[0].save_pretrained(tmp_path)
    pair[1].save_pretrained(tmp_path)
    b = generate(tmp_path, "go", schema, temperature=1.0, seed=4)
    assert a.tokens == b.tokens and a.value == b.value and a.value in schema["enum"]
    assert generate(pair, pair[1].encode("go"), schema, temperature=1.0, seed=4).tokens == a.tokens
    with pytest.raises(ContextTooLong, match="the prompt has 100 tokens; the model reads 96"):
        generate(pair, "x" * 100, schema)


def test_chat_messages_use_the_template(pair: tuple[Any, Any]) -> None:
    messages = [{"role": "user", "content": "go"}]
    a = generate(pair, messages, {"enum": [1, 2]})
    assert a.prompt_tokens == 4
    assert generate(pair, "go", {"enum": [1, 2]}, format="chat").logprobs == pytest.approx(a.logprobs)
    assert generate(pair, "go", {"enum": [1, 2]}).prompt_tokens == 2


def test_the_tokenizer_of_another_model_is_one_clear_error(pair: tuple[Any, Any]) -> None:
    transformers = pytest.importorskip("transformers")
    small = transformers.LlamaConfig(
        vocab_size=100, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1
    )
    large = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1
    )
    for config in (small, large):
        model = transformers.LlamaForCausalLM(config)
        with pytest.raises(sg.VocabularyError, match="tokenizer belongs to another model") as caught:
            generate((model, pair[1]), "go", {"type": "integer"})
        assert "\n" not in str(caught.value)


def test_a_model_that_does_not_exist(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(LanguageModelError, match="cannot load the model"):
        generate(tmp_path / "none", "go")


@pytest.mark.skipif(not (DRAFT / "model.safetensors").is_file(), reason="no embedded draft model")
def test_an_embedded_model_reads_its_own_format() -> None:
    pytest.importorskip("transformers")
    result = generate(DRAFT, "Ada is 36 years old", SCHEMA, max_tokens=120, temperature=1.0, seed=0)
    from structgen.lm import embedded

    plain = embedded.format_prompt("Ada is 36 years old", SCHEMA)
    same = generate(DRAFT, plain, SCHEMA, max_tokens=120, temperature=1.0, seed=0, format="plain")
    assert same.tokens == result.tokens and same.prompt_tokens == result.prompt_tokens
    if result.finish_reason == "stop":
        assert set(result.value) == {"a", "b"}


def test_it_is_found_in_the_package_and_imports_nothing_heavy() -> None:
    code = (
        "import sys, structgen as sg; from structgen.generation import generate, Result;"
        "assert sg.generate is generate and sg.Result is Result;"
        "print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("speculate", [None, "auto"])
def test_a_model_that_gives_no_law_is_refused(value: float, speculate: Any) -> None:
    """The call refuses such a model even if the grammar forbids the token, whose mask would hide the
    value."""

    class Broken(TableModel):
        def logprobs(self, contexts: Sequence[Context]) -> np.ndarray:
            rows = super().logprobs(contexts)
            rows[-1, TOKENS.index(b"~")] = value
            return rows

    for temperature in (0.0, 1.0):
        with pytest.raises(LanguageModelError, match="NaN or infinite"):
            generate(Broken(), "go", SCHEMA, temperature=temperature, seed=1, speculate=speculate)


def test_a_limit_that_is_not_known_to_suffice_is_refused():
    """The object is open to other keys, so the engine cannot prove that 7 tokens are too few. It refuses them
    all the same, because only 8 tokens are known to suffice."""
    schema = {"properties": {"customer": {"type": "string"}, "city": {"type": "string"}}}
    schema |= {"type": "object", "required": ["customer", "city"]}
    prompt = "Ana ordered 2 lamps, ship to Porto"
    with pytest.raises(sg.UnsatisfiableBudget, match="8 are known to suffice"):
        sg.generate(None, prompt, schema, max_tokens=7)
    most = 8
    for limit in range(1, most):
        with pytest.raises(sg.UnsatisfiableBudget):
            sg.generate(None, prompt, schema, max_tokens=limit)
    found = sg.generate(None, prompt, schema, max_tokens=most)
    assert found.finish_reason == "stop" and set(found.value) >= {"customer", "city"}
