"""structgen as a grammar backend of the real SGLang, on SGLang's CPU engine.

`make test-hosts HOST=sglang` installs SGLang without its CUDA packages. tests/hosts/sglang_stubs replaces
four packages that SGLang imports.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
if importlib.util.find_spec("sglang") is None:
    pytest.skip("make test-hosts HOST=sglang", allow_module_level=True)
sys.path += [str(FOLDER), str(FOLDER / "sglang_stubs"), str(FOLDER.parents[1])]
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(FOLDER / "sglang_stubs"), os.environ.get("PYTHONPATH")])
)
os.environ |= {"SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1", "SGLANG_PLUGINS": "structgen"}

import sitecustomize  # noqa: E402

if not hasattr(sitecustomize, "NAMES"):  # another sitecustomize of the interpreter came first
    spec = importlib.util.spec_from_file_location("stubs", FOLDER / "sglang_stubs" / "sitecustomize.py")
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from contract import (  # noqa: E402
    EXPECTED,
    HARD,
    MODEL,
    ORDER,
    OTHERS,
    PROMPT,
    TEXT,
    Asked,
    Budgets,
    check_what_an_operator_sees,
    serving,
)
from tool_texts import TOOLS, drawn  # noqa: E402

import structgen as sg  # noqa: E402
from oracles import thinker  # noqa: E402
from structgen.integrations import sglang as plugin  # noqa: E402
from structgen.lm import embedded  # noqa: E402

FIELDS = {
    "json_schema": "json_schema",
    "json_object": "json_schema",
    "regex": "regex",
    "gbnf": "ebnf",
    "lark": "ebnf",
    "structural_tag": "structural_tag",
}


def engine_with(**options: Any) -> Any:
    import sglang

    return sglang.Engine(
        **{
            "model_path": MODEL, "device": "cpu", "dtype": "float32", "grammar_backend": "structgen",
            "attention_backend": "torch_native", "sampling_backend": "pytorch", "disable_radix_cache": True,
            "disable_cuda_graph": True, "skip_server_warmup": True, "mem_fraction_static": 0.1,
            "max_total_tokens": 4096, "tp_size": 1, "log_level": "error", "disable_overlap_schedule": True,
            **options,
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    plugin.register()
    plugin.register()  # a second registration changes nothing
    made = engine_with()
    yield made
    made.shutdown()


def ask(engine: Any, prompt: str = PROMPT, max_tokens: int = 150, **asked: Any) -> Any:
    sampling = {"temperature": 0.0, "max_new_tokens": max_tokens, **asked}
    return engine.generate(prompt=prompt, sampling_params=sampling)


class TestContract(Budgets):
    refusal = (ValueError, RuntimeError)
    kinds = tuple(FIELDS)

    @pytest.fixture(autouse=True)
    def host(self, engine: Any) -> None:
        self.engine = engine

    def host_answer(self, asked: Asked) -> str:
        fields = {FIELDS[asked.kind]: "$$ANY$$" if asked.kind == "json_object" else asked.text}
        made = ask(self.engine, asked.prompt, asked.max_tokens, temperature=asked.temperature, **fields)
        return str(made["text"])


def test_a_mixed_batch(engine: Any) -> None:
    schema = json.dumps(ORDER)
    prompts = [PROMPT, *(embedded.format_prompt(text, ORDER) for text in OTHERS)] * 3
    asked = [{"json_schema": schema}] * 3 + [{"regex": "[a-z]{3,9}"}] * 3 + [{}] * 3
    sampling = [{"temperature": 0.0, "max_new_tokens": 120, **one} for one in asked]
    found = [made["text"] for made in engine.generate(prompt=prompts, sampling_params=sampling)]
    assert found[:3] == [sg.generate(None, text, ORDER).text for text in (TEXT, *OTHERS)]
    assert all(text.isalpha() and 3 <= len(text) <= 9 for text in found[3:6])
    for prompt, one, text in zip(prompts, sampling, found, strict=True):
        assert engine.generate(prompt=prompt, sampling_params=one)["text"] == text, "as alone"


def test_a_text_that_cannot_fit_is_cut_off_by_the_host(engine: Any) -> None:
    made = ask(engine, max_tokens=3, regex="[a-z]{50}")
    assert made["meta_info"]["finish_reason"]["type"] == "length" and made["text"].isalpha()


# ---- the objects of the backend, in the process of the test ----


@pytest.fixture(scope="module")
def backend() -> Any:
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    return plugin._made(tokenizer, 2048, {1}, {})


def test_rows_of_a_batch_are_those_of_single_requests(backend: Any) -> None:
    from sglang.srt.constrained.base_grammar_backend import GrammarRow

    first = [backend.dispatch_json(json.dumps(schema)) for schema in HARD.values()]
    grammars = [g.copy() for g in first for _ in range(2)]
    mask = backend.allocate_vocab_mask(2048, 40, "cpu")
    entries = [GrammarRow(39 - 2 * i, g) for i, g in enumerate(grammars)]
    grammars[0].fill_vocab_mask_batched(entries, mask)
    alone = backend.allocate_vocab_mask(2048, 1, "cpu")
    for row, grammar in entries:
        grammar.fill_vocab_mask(alone, 0)
        assert torch.equal(alone[0], mask[row])
    untouched = [row for row in range(40) if row not in {e.row for e in entries}]
    assert (mask[untouched] == -1).all()
    logits = torch.zeros(40, 2048)
    backend.apply_vocab_mask(logits, mask)
    bits = torch.from_numpy(np.unpackbits(mask.numpy().view(np.uint8), axis=1, bitorder="little"))
    assert torch.equal(torch.isneginf(logits), bits == 0)


def test_drafts_as_sglangs_tree_walks_them(backend: Any) -> None:
    """SGLang's calls on a tree of drafts: accept, fill and rollback(1), depth first, also past a token that
    ends the text."""
    grammar = backend.dispatch_regex("[ab]{1,2}").copy()
    vocab = backend.engine.vocabulary
    a, end = vocab.encode("a")[0], vocab.eos_token_ids[0]
    mask = backend.allocate_vocab_mask(2048, 1, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    before = mask.clone()
    for token in (a, end):
        grammar.accept_token(token)
    assert grammar.is_terminated() and grammar.current_token == end
    grammar.rollback(1)
    assert not grammar.is_terminated()
    grammar.rollback(1)
    grammar.fill_vocab_mask(mask, 0)
    assert torch.equal(mask, before)
    with pytest.raises(ValueError, match="does not allow"):
        grammar.accept_token(end)


def test_the_cache_has_a_bound_and_copies_are_fresh(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_KEPT", 3)
    for i in range(9):
        backend.set_cache(("regex", str(i)), backend.dispatch_regex(f"a{{{i + 1}}}"))
    assert [key[1] for key in backend.cache] == ["6", "7", "8"]
    used, _ = backend.get_cached_or_future_value(("regex", "8"), False)
    used.accept_token(backend.engine.vocabulary.encode("a")[0])
    fresh, hit = backend.get_cached_or_future_value(("regex", "8"), False)
    assert hit and fresh.request.matcher.num_steps == 0
    bad = backend.dispatch_json('{"type": "integer", "minimum": 2, "maximum": 1}')
    assert "no value satisfies" in bad.error_message


def test_strict_thinking_filters_tokens(backend: Any) -> None:
    from sglang.srt.constrained.torch_ops import token_filter_torch_ops

    chance = random.Random(3)
    for _ in range(50):
        mask = torch.randint(-(2**31), 2**31, (3, 64), dtype=torch.int32)
        expected, ids = mask.clone(), chance.sample(range(2048), chance.randint(0, 9))
        allowed, reset = chance.random() < 0.5, chance.random() < 0.5
        backend.set_token_filter(mask, ids, 1, is_allowed=allowed, reset_vocab_mask=reset)
        token_filter_torch_ops.set_token_filter_torch(
            expected, ids, 1, is_allowed=allowed, reset_vocab_mask=reset
        )
        assert torch.equal(mask, expected)


def test_reasoning_is_wrapped(backend: Any, engine: Any) -> None:
    """SGLang wraps the grammar and its copies in an object of SGLang, which waits for the end of the
    reasoning."""
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend

    class Serving:
        reasoning_parser = "deepseek-r1"
        enable_strict_thinking = False

    made = plugin._reasoning(backend, backend_tokenizer(), Serving)
    assert isinstance(made, ReasonerGrammarBackend)
    grammar = made._init_value_dispatch(("regex", "yes|no"), True)
    mask = backend.allocate_vocab_mask(2048, 1, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    assert (mask == -1).all(), "reasoning is free"
    for token in made.think_end_ids:
        assert not grammar.is_terminated()
        grammar.accept_token(token)
    grammar.fill_vocab_mask(mask, 0)
    alone = backend.dispatch_regex("yes|no").copy()
    expected = backend.allocate_vocab_mask(2048, 1, "cpu")
    alone.fill_vocab_mask(expected, 0)
    assert torch.equal(mask, expected)


def backend_tokenizer() -> Any:
    import transformers

    return transformers.AutoTokenizer.from_pretrained(MODEL)


def test_threads_compile_at_once(backend: Any) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(backend.dispatch_json, [json.dumps(s) for s in HARD.values()] * 4))
    assert all(isinstance(g, plugin.SglangGrammar) for g in made)


def test_overlapped_scheduling() -> None:
    """An engine with overlapped scheduling prepares the next step before the tokens of the last step
    arrive."""
    schema = json.dumps(ORDER)
    plugin.register()
    made = engine_with(disable_overlap_schedule=False)
    try:
        found = made.generate(
            prompt=[PROMPT] * 4,
            sampling_params=[{"temperature": 0.0, "max_new_tokens": 120, "json_schema": schema}] * 4,
        )
        assert [one["text"] for one in found] == [EXPECTED] * 4
    finally:
        made.shutdown()


@pytest.mark.parametrize("inside", [True, False])
def test_thoughts_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: bool) -> None:
    """With the option `reasoning`, thoughts of every length end in time, also within a request's budget.

    Without the option SGLang wraps the grammar: the grammar begins behind the thoughts, and SGLang's strict
    thinking ends the thoughts.
    """
    plugin.register()
    folder = thinker.write(tmp_path)
    monkeypatch.setenv("SGLANG_STRUCTGEN", json.dumps({"reasoning": "qwen3"} if inside else {}))
    strict = {"reasoning_parser": "qwen3", "enable_strict_thinking": True}
    made = engine_with(model_path=str(folder), **({"reasoning_parser": "qwen3"} if inside else strict))
    judge = thinker.Judge(folder)
    begun = thinker.PROMPT + thinker.THINKS.start
    asked = [
        (prompt, most, budget)
        for prompt in ((thinker.PROMPT, begun) if inside else (begun,))
        for most, budget in ((14, None), (30, None), (90, None), (90, 5))
        for _ in range(20)
    ]
    try:
        found = made.generate(
            prompt=[prompt for prompt, *_ in asked],
            sampling_params=[
                {"temperature": 1.0, "max_new_tokens": most, "json_schema": json.dumps(thinker.SCHEMA),
                 "skip_special_tokens": False,
                 "custom_params": {"thinking_budget": budget} if budget else None}
                for _, most, budget in asked
            ],
            require_reasoning=True,
        )  # fmt: skip
    finally:
        made.shutdown()
    ended = 0
    for (prompt, most, budget), one in zip(asked, found, strict=True):
        tokens = one["output_ids"]
        if not inside and budget is None and one["meta_info"]["finish_reason"]["type"] == "length":
            continue  # without the option the host cuts off thoughts that never end
        ended += 1
        judge.ids(tokens, most, prefilled=prompt is begun)
        if budget and thinker.THINKS.end in (text := judge.text(tokens)):
            thoughts = text.partition(thinker.THINKS.end)[0].removeprefix(thinker.THINKS.start)
            assert len(judge.vocabulary.encode(thoughts)) <= 3 * budget, (
                "words of the model are 1 to 3 tokens"
            )
    assert ended == len(asked) if inside else ended >= 20
    if inside:
        judge.complete()


def test_an_operator_of_the_server_sees_the_counters(tmp_path: Path) -> None:
    import httpx

    arguments = [
        "-m", "sglang.launch_server", "--model-path", MODEL, "--device", "cpu", "--dtype", "float32",
        "--grammar-backend", "structgen", "--attention-backend", "torch_native",
        "--sampling-backend", "pytorch", "--disable-radix-cache", "--disable-cuda-graph",
        "--skip-server-warmup", "--mem-fraction-static", "0.1", "--max-total-tokens", "4096",
        "--tp-size", "1", "--disable-overlap-schedule", "--enable-metrics",
    ]  # fmt: skip
    with serving(tmp_path, *arguments) as (base, log):

        def ask(schema: Any) -> int:
            sampling = {"temperature": 0, "max_new_tokens": 120, "json_schema": json.dumps(schema)}
            body = {"text": PROMPT, "sampling_params": sampling}
            return httpx.post(base + "/generate", json=body, timeout=120).status_code

        check_what_an_operator_sees(
            ask, lambda: httpx.get(base + "/metrics", timeout=30, follow_redirects=True).text, log.read_text
        )


# ---- SGLang's own parsers of tool calls ----

READERS = {
    "hermes": "hermes", "qwen": "qwen25", "llama3": "llama3", "mistral-v3": "mistral",
    "mistral-v11": "mistral", "deepseek-v3": "deepseekv3", "deepseek-v3.1": "deepseekv31",
    "deepseek-v3.2": "deepseekv32",
    "kimi-k2": "kimi_k2", "kimi-k3": "kimi_k3", "qwen3-coder": "qwen3_coder", "minimax": "minimax-m2",
    "minimax-m3": "minimax-m3", "glm": "glm45", "step3": "step3", "harmony": "gpt-oss",
    "deepseek-v4": "deepseekv4", "deepseek-v4.1": "deepseekv41", "gigachat-3": "gigachat3",
    "gigachat-3.5": "gigachat35", "mimo": "mimo", "dots": "dots", "minicpm5": "minicpm5",
    "glm-4.7": "glm47", "ling3": "ling3",
    "spark2.5": "spark25", "iquest-q1": "iquest_q1", "poolside": "poolside_v1", "hy-v3": "hunyuan",
    "hy-v4": "hunyuan", "k2-horizon": "k2_horizon", "apertus": "apertus2509", "lfm2": "lfm2",
    "pythonic": "pythonic", "gemma-4": "gemma4", "inkling": "inkling", "trinity": "trinity",
    "nanbeige": "nanbeige", "step3.5": "step3p5", "command-r": "cohere_command4", "exaone": "hermes",
}  # fmt: skip


@pytest.mark.parametrize("style", list(READERS))
def test_tool_calls_as_sglang_reads_them(style: str) -> None:
    """Texts are drawn from structgen's grammar of a style. structgen's reader and SGLang's find equal
    calls."""
    from sglang.srt.entrypoints.openai.protocol import Function, Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    theirs = [Tool(type="function", function=Function(**tool["function"])) for tool in TOOLS]
    for text, calls in drawn(style):
        given = text if style != "harmony" else f"<|start|>assistant{text}<|call|>"
        found = FunctionCallParser(theirs, READERS[style]).parse_non_stream(given)[1]
        assert [(c.name, json.loads(c.parameters)) for c in found] == calls, text
