"""The embedded models in numpy: logits of torch, tokens and texts of transformers, one thread, no import of
torch."""

from __future__ import annotations

import copy
import json
import pickle
import random
import subprocess
import sys
import threading
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

import structgen as sg  # noqa: E402
from oracles import harness  # noqa: E402
from structgen._tokenizers.byte_level import ByteLevelEncoder  # noqa: E402
from structgen.errors import VocabularyError  # noqa: E402
from structgen.lm import embedded, safetensors_file, threads  # noqa: E402
from structgen.lm.base import ContextTooLong, LanguageModelError  # noqa: E402
from structgen.lm.llama import Llama  # noqa: E402
from structgen.lm.load import language_model  # noqa: E402
from structgen.lm.numpy_model import NumpyLM  # noqa: E402
from structgen.lm.transformers import TransformersLM  # noqa: E402
from structgen.lm.tree_scoring import Block  # noqa: E402
from structgen.speculation import Speculation, standard_drafters  # noqa: E402
from structgen.speculation.drafters import DraftModel  # noqa: E402
from training import data  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("target", "draft")
V = 2048
CLOSE = 1e-4  # the largest difference of logits


@pytest.fixture(scope="module", params=NAMES)
def pair(request: pytest.FixtureRequest) -> tuple[NumpyLM, TransformersLM]:
    """One model in numpy and in torch. torch computes in float64, so its rounding is negligible."""
    folder = embedded.path(request.param)
    return NumpyLM.from_folder(folder), TransformersLM.from_pretrained(folder, dtype=torch.float64)


@pytest.fixture(scope="module")
def targets() -> tuple[NumpyLM, TransformersLM]:
    folder = embedded.path("target")
    return NumpyLM.from_folder(folder), TransformersLM.from_pretrained(folder)


def of_torch(lm: TransformersLM, ids: list[int]) -> Any:
    """Log-probabilities after every token of a text, computed in one pass without a cache."""
    with torch.inference_mode(), lm.threads():
        logits = lm.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
        return torch.log_softmax(logits.double(), -1).numpy()


def random_ids(rng: random.Random, low: int, high: int) -> list[int]:
    return [rng.randrange(5, V) for _ in range(rng.randint(low, high))]


# --- logits ----------------------------------------------------------------------------------------------


def after_every_token(lm: NumpyLM, ids: list[int]) -> Any:
    """Log-probabilities after every token, from one forward pass over a tree that is one path."""
    scorer = lm.tree_scorer()
    scorer.add()
    (rows,) = scorer.score([Block(ids[:1], ids[1:], range(-1, len(ids) - 2))])
    return np.stack([scorer.vector(row) for row in rows])


def test_logits_of_prompts_are_those_of_torch(pair: Any) -> None:
    """Compares the logits after every token of requests, of one token, and of random ones, with and without a
    cache."""
    mine, theirs = pair
    texts = [mine.encode(embedded.format_prompt(x.text, x.schema)) for x in requests(5)]
    for ids in [*texts, [7], random_ids(random.Random(1), 200, 200)]:
        wanted = of_torch(theirs, ids)
        assert np.abs(after_every_token(mine, ids) - wanted).max() < CLOSE
        assert np.abs(mine.logprobs([mine.start(ids)])[0] - wanted[-1]).max() < CLOSE


def test_rounding_of_the_longest_text_is_that_of_torch_in_float32(targets: Any) -> None:
    """On a text of 1,024 tokens, far longer than any training text, the rounding errors of numpy are as large
    as torch's in float32, about 1e-4."""
    mine, theirs = targets
    ids = mine.encode("".join(embedded.format_prompt(x.text, x.schema) for x in requests(20)))[:1024]
    assert len(ids) == mine.max_context
    exact = copy.deepcopy(theirs.model).double()
    with torch.inference_mode():
        wanted = torch.log_softmax(exact(input_ids=torch.tensor([ids])).logits[0], -1).numpy()
    own = np.abs(of_torch(theirs, ids) - wanted)
    found = np.abs(after_every_token(mine, ids) - wanted)
    assert found.max() < max(2 * own.max(), CLOSE) and found.mean() < 1.5 * own.mean()


def test_logits_of_prompts_are_those_of_torch_in_float32(targets: Any) -> None:
    mine, theirs = targets
    for x in requests(8):
        ids = mine.encode(embedded.format_prompt(x.text, x.schema))
        found, wanted = (lm.logprobs([lm.start(ids)]) for lm in (mine, theirs))
        assert np.abs(found - wanted).max() < CLOSE


def test_logits_under_any_history_of_the_cache_are_those_of_torch(pair: Any) -> None:
    """Branches, ragged batches, evictions and repetitions give the logits of the text read alone."""
    folder, theirs = pair[0], pair[1]
    rng = random.Random(2)
    for kv_bytes in (0, 300_000, 3_000_000, 64 << 20):
        lm = NumpyLM(folder.llama, folder.vocabulary, folder._encode, kv_bytes=kv_bytes, batch_size=5)
        held = [lm.start(random_ids(rng, 1, 60)) for _ in range(3)]
        for _ in range(12):
            batch = []
            for _ in range(rng.randint(1, 7)):
                context = rng.choice(held)
                for token in random_ids(rng, 0, rng.choice([1, 1, 8])):
                    context = context.extend(token)
                batch.append(context)
            held = held[-12:] + batch
            found = lm.logprobs(batch)
            checked = rng.randrange(len(batch))
            wanted = of_torch(theirs, batch[checked].tokens)[-1]
            assert np.abs(found[checked] - wanted).max() < CLOSE
            assert lm.cached_bytes <= kv_bytes
            assert np.array_equal(lm.logprobs(batch), found)  # the vector of a held context does not change


def test_logits_of_trees_are_those_of_their_paths(pair: Any) -> None:
    """The rows of a batch are trees of unequal size. Rows that accept unequal paths, leave, are forked or are
    joined keep the logits of their paths."""
    mine, theirs = pair
    rng = random.Random(3)
    scorer = mine.tree_scorer()
    scorer.add(2)
    texts: list[list[int]] = [[], []]
    for step in range(12):
        blocks, taken = [], []
        for _ in texts:
            tokens = random_ids(rng, 0, 9)
            parents = [rng.randint(-1, i - 1) for i in range(len(tokens))]
            taken.append(random_ids(rng, 1, 40 if step == 0 else 1))
            blocks.append(Block(taken[-1], tokens, parents))
        scores = scorer.score(blocks)
        kept = []
        for r, block in enumerate(blocks):
            texts[r] = texts[r] + list(block.taken)
            paths: list[list[int]] = [[]]
            for i, parent in enumerate(block.parents):
                paths.append([*paths[parent + 1], i])
            node = rng.randrange(len(paths))
            for place in {0, node}:
                ids = texts[r] + [block.tokens[i] for i in paths[place]]
                found = scorer.vector(scores[r][place])
                assert np.abs(found - of_torch(theirs, ids)[-1]).max() < CLOSE
            kept.append(paths[node])
            texts[r] = texts[r] + [block.tokens[i] for i in paths[node]]
        scorer.keep(kept)
        assert scorer.lengths == [len(t) for t in texts]
        if step in (3, 7):
            rows = [rng.randrange(len(texts)) for _ in range(3)]
            scorer.select(rows)
            scorer.add()
            texts = [list(texts[r]) for r in rows] + [[]]


def test_the_head_of_some_ids_is_that_of_all(pair: Any) -> None:
    mine, _ = pair
    scorer = mine.tree_scorer()
    scorer.add()
    (states,) = scorer.score([Block([5, 6, 7], [8], [-1])], hidden=True)
    scorer.keep([[]])
    other = mine.tree_scorer()
    other.add()
    (logits,) = other.score([Block([5, 6, 7], [8], [-1])])
    ids = np.array([0, 9, 77, 2047])
    for place in (0, 1):
        assert np.abs(scorer.head(states[place], ids) - logits[place][ids]).max() < 1e-5
    ids, values = other.top(logits, 5)
    for place in (0, 1):
        vector = other.vector(logits[place])
        assert other.best(logits[place]) == ids[place, 0] == vector.argmax()
        assert np.array_equal(values[place], np.sort(vector)[::-1][:5])


def test_what_is_too_long_or_no_text_is_refused(targets: Any) -> None:
    lm = targets[0]
    with pytest.raises(ContextTooLong):
        lm.start([7] * 1025)
    with pytest.raises(ContextTooLong):
        lm.logprobs([lm.start([7] * 1024).extend(3)])
    with pytest.raises(LanguageModelError, match="empty"):
        lm.start("")
    with pytest.raises(LanguageModelError, match="half of a surrogate pair at character 1"):
        lm.start("a\ud800")
    scorer = lm.tree_scorer()
    scorer.add()
    with pytest.raises(ContextTooLong):
        scorer.score([Block([7] * 1020, [1] * 6, range(-1, 5))])


# --- texts -----------------------------------------------------------------------------------------------


def requests(count: int) -> list[Any]:
    """Requests of the test split, with their schemas."""
    found = [data.example("test", 11, i) for i in range(3 * count)]
    return [x for x in found if x.schema is not None][:count]


def test_texts_are_those_of_torch(targets: Any) -> None:
    """Greedy and drawn texts, plain and speculative, with the draft model, over schemas of every task.

    Other rounding may decide a near tie differently. In over a thousand texts it never did.
    """
    mine, theirs = targets
    draft = language_model(embedded.path("draft"))
    assert isinstance(draft, NumpyLM)
    ways: list[dict[str, Any]] = [{}, {"temperature": 1.0, "seed": 4}, {"temperature": 1.3, "top_p": 0.9}]
    differ = []
    for i, x in enumerate(requests(harness.cases(9))):
        how = {"seed": i, **ways[i % 3], "max_tokens": 120}
        wanted = sg.generate(theirs, x.text, x.schema, **how)
        option = Speculation(standard_drafters() if i % 2 else [DraftModel(draft)])
        for speculate in (None, "auto", option):
            found = sg.generate(mine, x.text, x.schema, speculate=speculate, **how)
            assert found.prompt_tokens == wanted.prompt_tokens
            if found.tokens != wanted.tokens:
                differ.append((x.text, how, wanted.text, found.text))
            elif speculate is None:
                assert np.abs(np.array(found.logprobs) - wanted.logprobs).max() < CLOSE
    assert len(differ) <= 1, differ


@pytest.mark.parametrize("method", ["cars", "smc", "importance"])
def test_samples_are_those_of_torch(targets: Any, method: Any) -> None:
    x = requests(4)[3]
    one, other = (
        sg.sample(lm, x.text, x.schema, method=method, n=4, seed=3, max_tokens=100) for lm in targets
    )
    assert [s.tokens for s in one] == [s.tokens for s in other]
    assert np.abs(one.log_weights - other.log_weights).max() < 1e-3


# --- tokens ----------------------------------------------------------------------------------------------


def encoders(name: str) -> tuple[ByteLevelEncoder, Any]:
    file = embedded.path(name) / "tokenizer.json"
    return ByteLevelEncoder(json.loads(file.read_text("utf-8"))), tokenizers.Tokenizer.from_file(str(file))


def random_text(rng: random.Random, source: str) -> str:
    kind = rng.randrange(4)
    if kind == 0:
        at = rng.randrange(len(source))
        return source[at : at + rng.randrange(300)]
    if kind == 1:
        parts = (
            *("<|text|>", "<|answer|>", "<|", "|>", "Ada", "é", '":"', "12", "\u0301", " ", "Öl"),
            "\U0001f600",
        )
        return "".join(
            rng.choice((*parts, "{}[]", "İ", "\r\n", "’", "ﬁ", "x" * 90)) for _ in range(rng.randrange(14))
        )
    top = 0x250 if kind == 2 else 0x20000
    chars = (chr(rng.randrange(top)) for _ in range(rng.randrange(40)))
    return "".join(c for c in chars if unicodedata.category(c) not in ("Cs", "Cn"))


def test_tokens_are_those_of_the_package() -> None:
    mine, theirs = encoders("target")
    rng = random.Random(4)
    source = (ROOT / "README.md").read_text("utf-8") + json.dumps(
        json.loads((ROOT / "examples" / "order.schema.json").read_text("utf-8"))
    )
    source += "".join(embedded.format_prompt(x.text, x.schema) for x in requests(30))
    for _ in range(4000):
        text = random_text(rng, source)
        assert mine(text) == theirs.encode(text).ids, repr(text)


def test_every_character_has_its_class() -> None:
    """Puts each assigned character between letters, where the character's class decides how the text is
    cut."""
    mine, theirs = encoders("target")
    codes = [*range(0x3000), *range(0x3000, 0x32000, 7)]
    codes = [c for c in codes if unicodedata.category(chr(c)) not in ("Cs", "Cn")]
    for at in range(0, len(codes), 500):
        texts = ["Ab" + chr(c) + "b" + chr(c) + "B{" for c in codes[at : at + 500]]
        for text, wanted in zip(texts, theirs.encode_batch(texts), strict=True):
            assert mine(text) == wanted.ids, repr(text)


@pytest.mark.parametrize("form", ["gpt2", "split", "whole words"])
def test_other_byte_level_tokenizers(form: str) -> None:
    """The test trains tokenizers of each form that the encoder supports."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE(ignore_merges=form == "whole words"))
    if form == "gpt2":
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        pattern = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        made.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(pattern), "isolated"),
                pre_tokenizers.ByteLevel(False, use_regex=False),
            ]
        )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=900, initial_alphabet=alphabet, special_tokens=["<s>", "<s>>"], show_progress=False
    )
    source = (ROOT / "README.md").read_text("utf-8")
    made.train_from_iterator(source.splitlines(keepends=True), trainer)
    mine = ByteLevelEncoder(json.loads(made.to_str()))
    rng = random.Random(5)
    for _ in range(800):
        text = rng.choice(["", "<s>", "<s>>"]) + random_text(rng, source)
        assert mine(text) == made.encode(text).ids, repr(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"normalizer": {"type": "NFC"}}, "normalizer is"),
        ({"pre_tokenizer": None}, "malformed"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "not 'ByteLevel'"),
        ({"model": {"type": "Unigram", "vocab": []}}, "model.type is 'Unigram'"),
        ({"model": {"type": "BPE", "vocab": {}, "merges": []}}, "malformed"),
        ({"added_tokens": [{"id": 3, "content": "x", "lstrip": True}]}, "lstrip is True"),
    ],
)
def test_tokenizers_that_are_not_covered_say_so(change: Any, message: str) -> None:
    record = json.loads((embedded.path() / "tokenizer.json").read_text("utf-8"))
    with pytest.raises(VocabularyError, match=message):
        ByteLevelEncoder({**record, **change})


@pytest.mark.parametrize("pattern", [r"\w+", r"(?i:a)", "é", r"[^\S]", r"\p{Greek}", "(", r"[[a]]"])
def test_patterns_that_are_not_covered_say_so(pattern: str) -> None:
    record = json.loads((embedded.path() / "tokenizer.json").read_text("utf-8"))
    record["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {"Regex": pattern}
    with pytest.raises(VocabularyError):
        ByteLevelEncoder(record)


def test_a_long_word_takes_no_square_of_its_length() -> None:
    mine, theirs = encoders("target")
    counted = []

    def steps(text: str) -> int:
        count = 0

        def trace(frame: Any, event: str, arg: Any) -> Any:
            nonlocal count
            count += event == "line"
            return trace

        sys.settrace(trace)
        try:
            mine(text)
        finally:
            sys.settrace(None)
        return count

    for size in (2_000, 8_000):
        counted.append(steps("{[" * size))
    assert counted[1] < 5 * counted[0]
    assert mine("abc" * 5_000) == theirs.encode("abc" * 5_000).ids


def test_the_vocabulary_spells_and_forces_like_that_of_transformers(targets: Any) -> None:
    mine, theirs = (lm.vocabulary for lm in targets)
    assert list(mine.tokens) == list(theirs.tokens)
    assert mine.eos_token_ids == theirs.eos_token_ids and mine.special_tokens == theirs.special_tokens
    for x in requests(20):
        assert mine.encode(x.answer_text()) == theirs.encode(x.answer_text())
        assert mine.canonical(x.text.encode()) == theirs.canonical(x.text.encode())


def test_a_file_is_encoded_canonically_without_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    texts = [x.answer_text() for x in requests(20)]
    wanted = sg.Vocabulary.from_file(embedded.path())
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    found = sg.Vocabulary.from_file(embedded.path())
    again = pickle.loads(pickle.dumps(found))
    monkeypatch.undo()
    for text in texts:
        assert found.encode(text) == again.encode(text) == wanted.encode(text)
    record = json.loads((embedded.path() / "tokenizer.json").read_text("utf-8"))
    (tmp_path / "tokenizer.json").write_text(json.dumps({**record, "normalizer": {"type": "NFC"}}))
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    # the encoder does not support the form, so the vocabulary uses the longest match
    other = sg.Vocabulary.from_file(tmp_path, eos_token_ids=1)
    assert other.decode(other.encode(texts[0])) == texts[0].encode()


# --- files -----------------------------------------------------------------------------------------------


def test_a_safetensors_file_is_read_like_the_package_reads_it() -> None:
    reference = pytest.importorskip("safetensors.numpy")
    file = embedded.path("draft") / "model.safetensors"
    found, wanted = safetensors_file.read(file), reference.load_file(file)
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[name], wanted[name]) for name in found)


def test_bfloat16_is_read_as_float32(tmp_path: Path) -> None:
    save = pytest.importorskip("safetensors.torch").save_file
    values = torch.tensor([[1.5, -2.0, 3.140625], [0.0, float("inf"), -1e-30]], dtype=torch.bfloat16)
    save({"x": values}, tmp_path / "x.safetensors")
    assert np.array_equal(safetensors_file.read(tmp_path / "x.safetensors")["x"], values.float().numpy())


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    good = (embedded.path("draft") / "model.safetensors").read_bytes()
    size = int.from_bytes(good[:8], "little")
    file = tmp_path / "model.safetensors"
    rng = random.Random(6)
    refused = 0
    for i in range(300):
        data = bytearray(good[: rng.randrange(len(good))] if i % 3 == 0 else good)
        if i % 3:
            data[rng.randrange(8 if i % 3 == 1 else 8 + size)] = rng.randrange(256)
        file.write_bytes(data)
        try:
            found = safetensors_file.read(file)
        except LanguageModelError as error:
            refused += 1
            assert str(file) in str(error)
        else:
            assert all(isinstance(a, np.ndarray) for a in found.values())
    assert refused > 100
    with pytest.raises(LanguageModelError, match="cannot read"):
        safetensors_file.read(tmp_path / "none")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "gpt2"}, "model_type is 'gpt2'"),
        ({"num_key_value_heads": 1}, "num_key_value_heads is 1"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1.0}}, "rope_parameters is"),
        ({"intermediate_size": 128}, "shape"),
        ({"num_hidden_layers": 3}, "model.layers.2.self_attn.q_proj.weight is missing"),
        ({"num_hidden_layers": None}, "damaged"),
        ({"num_attention_heads": 0}, "damaged"),
    ],
)
def test_a_model_that_is_not_covered_is_refused(tmp_path: Path, change: Any, message: str) -> None:
    folder = embedded.path("draft")
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    config = {**json.loads((folder / "config.json").read_text("utf-8")), **change}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(LanguageModelError, match=message):
        Llama(tmp_path)


# --- threads ---------------------------------------------------------------------------------------------


def test_blas_has_one_thread_inside_and_its_own_number_afterwards() -> None:
    calls = threads._openblas()
    if calls is None:
        pytest.skip("numpy has no OpenBLAS here")
    read, write = calls
    before = read()
    write(2)
    try:
        lm = language_model(None)
        assert isinstance(lm, NumpyLM)
        seen = []
        inner = lm.llama.forward

        class Spy:
            def __getattr__(self, name: str) -> Any:
                return getattr(lm.llama, name)

            def forward(self, *arguments: Any) -> Any:
                seen.append(read())
                return inner(*arguments)

        spied = NumpyLM(lm.llama, lm.vocabulary, lm._encode)
        spied.llama = Spy()  # type: ignore[assignment]
        workers = [
            threading.Thread(target=lambda i=i: spied.logprobs([spied.start([i, j]) for j in range(9)]))
            for i in range(4)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        scorer = spied.tree_scorer()
        scorer.add()
        scorer.score([Block([1])])
        assert seen == [1] * 5 and read() == 2
        with pytest.raises(ZeroDivisionError), threads.one_blas_thread():
            raise ZeroDivisionError
        assert read() == 2
    finally:
        write(before)


def test_torch_has_one_thread_inside_and_its_own_number_afterwards(targets: Any) -> None:
    lm = targets[1]
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen = []
    hook = lm.model.register_forward_pre_hook(lambda *_: seen.append(torch.get_num_threads()))
    try:
        lm.logprobs([lm.start([9, 8, 7])])
        scorer = lm.tree_scorer()
        scorer.add()
        scorer.score([Block([1])])
        assert seen == [1, 1] and torch.get_num_threads() == 2
    finally:
        hook.remove()
        torch.set_num_threads(before)


# --- tests that start a process ------------------------------------------------------------------------

# An import hook that pretends these packages are installed, and fails when one is loaded.
BLOCK = """
import importlib.abc, importlib.machinery, sys
class Blocked(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    names = ("torch", "transformers", "tokenizers", "safetensors", "huggingface_hub", "scipy", "tiktoken")
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self)
    def create_module(self, spec):
        raise AssertionError(f"{spec.name} was imported")
    def exec_module(self, module):
        raise AssertionError
sys.meta_path.insert(0, Blocked())
"""
SCHEMA = '{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, ' + (
    '"required": ["name", "age"], "additionalProperties": false}'
)
START = f"import json, structgen as sg\nprompt, schema = 'Ada is 36 years old', json.loads('{SCHEMA}')\n"
SCRIPTS = {
    "generate": "print(sg.generate(None, prompt, schema).text)",
    "speculate": "print(sg.generate('embedded', prompt, schema, speculate='auto').text)",
    "draft": """
from structgen.lm import embedded
from structgen.lm.load import language_model
from structgen.speculation.drafters import DraftModel
draft = DraftModel(language_model(embedded.path('draft')))
print(sg.generate(None, prompt, schema, speculate=[draft]).text)
""",
    "sample": "print(*{s.text for s in sg.sample(None, prompt, schema, n=3, seed=1, temperature=0.2)})",
    "forced": """
from structgen.lm.load import language_model
lm = language_model(None)
grammar = sg.Compiler(lm.vocabulary).json_schema(schema, whitespace='compact')
tokens = grammar.matcher().forced_tokens()
assert tokens and lm.vocabulary.decode(tokens).startswith(b'{'), tokens
print(sg.generate(lm, prompt, grammar=grammar).text)
""",
    "command": """
import os, tempfile
from structgen.cli import main
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, 's.json')
    open(file, 'w').write(json.dumps(schema))
    assert main(['generate', '--prompt', prompt, '--schema', file]) == 0
    sys.stderr = sys.__stdout__ and open(os.devnull, 'w')
    assert main(['sample', '--prompt', prompt, '--schema', file, '-n', '2', '--method', 'cars']) == 0
""",
}


def run_script(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**__import__("os").environ, "PYTHONPATH": str(ROOT), "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_needs_numpy_alone_and_leaves_without_a_word(name: str, tmp_path: Path) -> None:
    done = run_script(BLOCK + START + SCRIPTS[name], tmp_path)
    said = "loading the embedded model\n1 text in" if name == "command" else ""
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('{"name":"Ada","age":36}\n'), done.stdout
    assert done.stderr.startswith(said) and (said or not done.stderr), done.stderr
    assert "nanobind" not in done.stderr


def test_a_script_with_a_logits_processor_leaves_without_a_word(tmp_path: Path) -> None:
    code = """
import torch, transformers
from structgen.integrations.transformers import LogitsProcessor
from structgen.lm import embedded
transformers.utils.logging.disable_progress_bar()
tokenizer = transformers.AutoTokenizer.from_pretrained(embedded.path())
model = transformers.AutoModelForCausalLM.from_pretrained(embedded.path())
vocabulary = sg.Vocabulary.from_huggingface(tokenizer, model=model)
grammar = sg.Compiler(vocabulary).json_schema(schema, whitespace='compact')
processor = LogitsProcessor(grammar)
inputs = tokenizer(embedded.format_prompt(prompt, schema), return_tensors='pt', return_token_type_ids=False)
out = model.generate(**inputs, logits_processor=[processor], max_new_tokens=40, do_sample=False)
print(tokenizer.decode(out[0, inputs['input_ids'].shape[1]:], skip_special_tokens=True))
result = sg.generate((model, tokenizer), prompt, schema)
print(result.text)
"""
    done = run_script(START + code, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '{"name":"Ada","age":36}\n' * 2
