"""structgen in the real llama-cpp-python, with the embedded model as a GGUF file.

`make test-hosts HOST=llama_cpp` compiles llama.cpp and installs a wheel of structgen.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

llama_cpp = pytest.importorskip("llama_cpp", reason="compiles llama.cpp: make test-hosts HOST=llama_cpp")
sys.path += [str(Path(__file__).parents[i]) for i in (0, 2)]

from contract import EXPECTED, HARD, MODEL, ORDER, OTHERS, PROMPT, ROOT, TEXT, Asked, Budgets  # noqa: E402

import structgen as sg  # noqa: E402
from oracles import gguf_model, thinker  # noqa: E402
from structgen.integrations.hosts import HostEngine  # noqa: E402
from structgen.integrations.llama_cpp import (  # noqa: E402
    Drafter,
    LogitsProcessor,
    engine_of,
    vocabulary_of,
)
from structgen.lm import embedded  # noqa: E402

SCHEMA = json.dumps(ORDER)


@pytest.fixture(scope="session")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model") / "target.gguf"
    gguf_model.write(path)
    return str(path)


def load(gguf: str, **options: Any) -> Any:
    return llama_cpp.Llama(gguf, n_ctx=1024, verbose=False, n_threads=1, **options)


@pytest.fixture(scope="session")
def llama(gguf: str) -> Any:
    return load(gguf)


@pytest.fixture(scope="session")
def engine(llama: Any) -> HostEngine:
    return engine_of(llama)


def ids_of(prompt: str) -> list[int]:
    """Returns the ids come from the model's own tokenizer, because GGUF's "default" pre-tokenizer splits
    texts differently."""
    from tokenizers import Tokenizer

    ids: list[int] = Tokenizer.from_file(MODEL + "/tokenizer.json").encode(prompt).ids
    return ids


def complete(llama: Any, processor: LogitsProcessor | None, prompt: str = PROMPT, **options: Any) -> str:
    given = {"max_tokens": 150, "temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, **options}
    if processor is not None:
        given["logits_processor"] = llama_cpp.LogitsProcessorList([processor])
    made = llama.create_completion(ids_of(prompt), **given)
    if processor is not None:
        processor.check()
    text: str = made["choices"][0]["text"]
    return text


class TestContract(Budgets):
    @pytest.fixture(autouse=True)
    def host(self, llama: Any, engine: HostEngine) -> None:
        self.llama, self.engine = llama, engine

    def host_answer(self, asked: Asked) -> str:
        grammar = self.engine.compile(asked.kind, asked.text)
        processor = LogitsProcessor(self.llama, self.engine.request(grammar, max_tokens=asked.max_tokens))
        how = {"max_tokens": asked.max_tokens, "temperature": asked.temperature, "seed": asked.seed}
        return complete(self.llama, processor, asked.prompt, **how)


def test_the_vocabulary(llama: Any) -> None:
    found, known = vocabulary_of(llama), sg.Vocabulary.from_file(MODEL)
    assert list(found.tokens) == list(known.tokens)
    assert found.eos_token_ids == known.eos_token_ids
    assert found.encode('{"customer":"Ada"}') == known.encode('{"customer":"Ada"}')


def test_streams_and_chats(llama: Any, engine: HostEngine) -> None:
    request = engine.request(engine.compile("json_schema", SCHEMA))
    parts = llama.create_completion(
        ids_of(PROMPT), max_tokens=150, temperature=0.0, stream=True,
        logits_processor=[LogitsProcessor(llama, request)],
    )  # fmt: skip
    assert "".join(part["choices"][0]["text"] for part in parts) == EXPECTED
    processor = LogitsProcessor(llama, engine.request(engine.compile("choice", ["yes", "no"])))
    made = llama.create_chat_completion(
        [{"role": "user", "content": "well?"}], max_tokens=20, temperature=0.0, logits_processor=[processor]
    )
    assert made["choices"][0]["message"]["content"] in ("yes", "no")


def test_one_processor_serves_many_texts(llama: Any, engine: HostEngine) -> None:
    processor = LogitsProcessor(llama, engine.request(engine.compile("json_schema", SCHEMA)))
    for text in (TEXT, *OTHERS, TEXT, TEXT):
        expected = sg.generate(None, text, ORDER).text
        assert complete(llama, processor, embedded.format_prompt(text, ORDER)) == expected
    free = complete(llama, None, max_tokens=5)
    assert complete(llama, None, max_tokens=5) == free
    assert complete(llama, processor) == EXPECTED


class Breaking:
    """A processor that raises an exception at the n-th mask."""

    def __init__(self, error: BaseException, n: int) -> None:
        self.error, self.n = error, n

    def __call__(self, *_: Any) -> None:
        self.n -= 1
        if self.n < 0:
            raise self.error


@pytest.mark.parametrize(
    "error", [sg.BudgetExceeded("x"), MemoryError(), KeyboardInterrupt(), ValueError("y")]
)
@pytest.mark.parametrize("n", [0, 7])
def test_what_is_raised_ends_the_text(
    llama: Any, engine: HostEngine, monkeypatch: pytest.MonkeyPatch, error: BaseException, n: int
) -> None:
    """The host ignores exceptions of a processor. Even then the host must sample every token under a mask."""
    request = engine.request(engine.compile("json_schema", SCHEMA))
    processor = LogitsProcessor(llama, request)
    real, breaking = type(request).fill, Breaking(error, n)

    def fill(self: Any, mask: Any, row: int) -> None:
        breaking()
        real(self, mask, row)

    monkeypatch.setattr(type(request), "fill", fill)
    made = llama.create_completion(
        ids_of(PROMPT), max_tokens=60, temperature=0.0, logits_processor=[processor]
    )
    assert made["choices"][0]["finish_reason"] == "stop"
    assert EXPECTED.startswith(made["choices"][0]["text"])
    assert made["usage"]["completion_tokens"] <= n + 1
    with pytest.raises(type(error)):
        processor.check()
    monkeypatch.undo()
    assert complete(llama, processor) == EXPECTED, "a new prompt begins anew"


def test_another_processor_that_forces_a_token(llama: Any, engine: HostEngine) -> None:
    processor = LogitsProcessor(llama, engine.request(engine.compile("regex", "[0-9]+")))

    def forces(ids: Any, scores: Any) -> Any:
        out = np.full_like(scores, -np.inf)
        out[engine.vocabulary.encode("x")[0]] = 0
        return out

    made = llama.create_completion(
        ids_of(PROMPT), max_tokens=9, temperature=0.0, logits_processor=[processor, forces]
    )
    assert made["choices"][0]["text"]
    with pytest.raises(sg.StructgenError, match="not allow"):
        processor.check()


class Counting:
    """Counts the forward passes of a model."""

    def __init__(self, llama: Any) -> None:
        self.llama, self.forwards, self.real = llama, 0, llama.eval

    def __enter__(self) -> Counting:
        def counted(tokens: Any) -> None:
            self.forwards += 1
            self.real(tokens)

        self.llama.eval = counted
        return self

    def __exit__(self, *_: Any) -> None:
        self.llama.eval = self.real


class Nonsense:
    """A drafter whose drafts are mostly wrong: some hold end tokens, others hold ids outside the
    vocabulary."""

    def __init__(self) -> None:
        self.chance = np.random.default_rng(5)

    def __call__(self, ids: Any) -> Any:
        return self.chance.integers(0, 2048, 5).astype(np.intc)


@pytest.mark.parametrize("inner", [None, "lookup", "nonsense"])
def test_drafts(gguf: str, inner: str | None) -> None:
    guess: Any = {
        None: lambda: None,
        "lookup": lambda: llama_cpp.llama_speculative.LlamaPromptLookupDecoding(3, 6),
        "nonsense": Nonsense,
    }[inner]()
    llama = load(gguf, draft_model=Drafter(8, guess))
    engine = engine_of(llama)
    grammar = engine.compile("json_schema", SCHEMA)
    forwards = {}
    for text in (TEXT, *OTHERS, TEXT):
        prompt = embedded.format_prompt(text, ORDER)
        expected = sg.generate(None, text, ORDER).text
        processor = LogitsProcessor(llama, engine.request(grammar, max_tokens=150))
        with Counting(llama) as counting:
            assert complete(llama, processor, prompt) == expected
        forwards[text] = counting.forwards
    tokens = len(engine.vocabulary.encode(EXPECTED))
    assert forwards[TEXT] < (tokens - 2 if inner != "lookup" else 0.75 * tokens), forwards
    print(f"{inner}: {forwards[TEXT]} forwards for {tokens} tokens")
    for most in (1, 2, 30):  # stops in the middle of a draft, then writes another text
        complete(llama, LogitsProcessor(llama, engine.request(grammar)), max_tokens=most)
        processor = LogitsProcessor(llama, engine.request(grammar))
        assert complete(llama, processor) == EXPECTED
    del processor
    free = load(gguf)
    assert complete(llama, None, max_tokens=12) == complete(free, None, max_tokens=12)


def test_drafts_at_the_end_of_the_context(gguf: str) -> None:
    llama = load(gguf, draft_model=Drafter(8))
    llama._n_ctx = n_ctx = len(ids_of(PROMPT)) + 20
    llama.n_ctx = lambda: n_ctx
    engine = engine_of(llama)
    processor = LogitsProcessor(llama, engine.request(engine.compile("json_schema", SCHEMA)))
    assert EXPECTED.startswith(complete(llama, processor))


@pytest.mark.parametrize("drafts", [False, True])
def test_thoughts_and_answers(tmp_path: Path, drafts: bool) -> None:
    """Thoughts of every length end within the request's limit and within their own, and the answer is
    complete."""
    folder = thinker.write(tmp_path)
    gguf_model.write(folder / "model.gguf", folder=folder)
    llama = load(str(folder / "model.gguf"), **({"draft_model": Drafter(8)} if drafts else {}))
    engine = engine_of(llama, reasoning="qwen3")
    judge = thinker.Judge(folder)
    begun = thinker.PROMPT + thinker.THINKS.start
    schema = json.dumps(thinker.SCHEMA)
    for prompt, (most, budget), seed in itertools.product(
        (thinker.PROMPT, begun), ((14, None), (30, None), (90, None), (90, 5)), range(20)
    ):
        ids = llama.tokenize(prompt.encode(), add_bos=False, special=True)
        grammar = engine.compile("json_schema", schema, reasoning=engine.thinks(ids, budget))
        processor = LogitsProcessor(llama, engine.request(grammar, max_tokens=most))
        llama.set_seed(seed)
        tokens: list[int] = []
        for token in llama.generate(
            ids, temp=1.0, top_k=0, top_p=1.0, min_p=0.0, repeat_penalty=1.0,
            logits_processor=llama_cpp.LogitsProcessorList([processor]),
        ):  # fmt: skip
            tokens.append(token)
            if token in judge.vocabulary.eos_token_ids or len(tokens) == most:
                break
        processor.check()
        judge.ids(tokens, most, prefilled=prompt is begun)
        if budget is not None:
            thoughts, end, _ = judge.text(tokens).partition(thinker.THINKS.end)
            thoughts = thoughts.removeprefix(thinker.THINKS.start)
            assert not end or len(judge.vocabulary.encode(thoughts)) <= 3 * budget, "words are 1 to 3 tokens"
    judge.complete()


def test_refusals_of_models(gguf: str, llama: Any, engine: HostEngine) -> None:
    drafted = load(gguf, draft_model=llama_cpp.llama_speculative.LlamaPromptLookupDecoding())
    with pytest.raises(ValueError, match="Drafter"):
        LogitsProcessor(drafted, engine.request(engine.compile("regex", "a")))
    other = HostEngine(sg.Vocabulary.from_bytes([b"a", None], 1))
    with pytest.raises(sg.VocabularyError, match="2 ids and the model 2048"):
        LogitsProcessor(llama, other.request(other.compile("regex", "a")))
    with pytest.raises(ValueError, match="at least one"):
        Drafter(0)


# ---- examples/llama_cpp: the sampler chain of llama.cpp, in C ----


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the program, compiled with the headers and libraries of the installed llama-cpp-python."""
    site = Path(llama_cpp.__file__).parents[1]
    prefix = os.environ.get("STRUCTGEN_C_PREFIX", "")
    built = [Path(p) for p in (ROOT / "build").glob("*/libstructgen.so")]
    if prefix and Path(prefix).exists():
        include, library = Path(prefix) / "include", Path(prefix) / "lib"
    elif built:
        newest = max(built, key=lambda p: p.stat().st_mtime)
        include, library = ROOT / "csrc" / "include", newest.parent
    else:
        pytest.skip("libstructgen is not built: make test-hosts HOST=llama_cpp does it")
    if shutil.which("cc") is None or not (site / "include" / "llama.h").exists():
        pytest.skip("no C compiler, or a llama-cpp-python without headers")
    out = tmp_path_factory.mktemp("example") / "structgen_llama"
    folder = ROOT / "examples" / "llama_cpp"
    done = subprocess.run(
        ["cc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{include}",
         f"-I{site / 'include'}", "main.c", "structgen_sampler.c", "-o", str(out), f"-L{library}",
         "-lstructgen", f"-L{site / 'lib'}",
         "-lllama", "-lggml", "-lggml-base", "-lm", f"-Wl,-rpath,{library}", f"-Wl,-rpath,{site / 'lib'}"],
        cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return str(out)


def run(program: str, gguf: str, schema: Path, most: int, temperature: float, prompt: str) -> Any:
    return subprocess.run(
        [program, gguf, str(schema), str(most), str(temperature), *map(str, ids_of(prompt))],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_the_example_in_c(program: str, gguf: str, tmp_path: Path) -> None:
    order = ROOT / "examples" / "order.schema.json"
    assert run(program, gguf, order, 120, 0, PROMPT).stdout == EXPECTED
    for most in (20, 40):
        jsonschema.validate(json.loads(run(program, gguf, order, most, 0, PROMPT).stdout), ORDER)
    for name, schema in HARD.items():
        path = tmp_path / "schema.json"
        path.write_text(json.dumps(schema))
        done = run(program, gguf, path, 60, 1.5, embedded.format_prompt("numbers: 15, 20 and 7", schema))
        assert done.returncode == 0, (name, done.stderr)
        jsonschema.Draft202012Validator(schema).validate(json.loads(done.stdout))
    path.write_text('{"type": "integer", "minimum": 2, "maximum": 1}')
    refused = run(program, gguf, path, 60, 0, PROMPT)
    assert refused.returncode == 1 and "no value satisfies" in refused.stderr
