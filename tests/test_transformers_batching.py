"""Continuous batching of transformers with the embedded model; static caches and compiled models with the
plain processor. The texts equal those of structgen's own `generate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import structgen as sg  # noqa: E402
from structgen.integrations import transformers_batching as batching  # noqa: E402
from structgen.integrations.transformers import LogitsProcessor  # noqa: E402
from structgen.lm import embedded  # noqa: E402

torch.set_num_threads(1)
ORDER = json.loads((Path(__file__).parents[1] / "examples" / "order.schema.json").read_text())
TEXTS = (
    "Maria Lopez ordered 3 oak chairs and 2 desk lamps, ship to Lisbon by 5 March 2027",
    "Please send 2 red stools to Jonas Weber in Vienna, no hurry",
)
EXPECTED = [sg.generate(None, text, ORDER).text for text in TEXTS]
FOLDER = embedded.path("target")


@pytest.fixture(scope="module")
def model() -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def compiler(tokenizer: Any, model: Any) -> sg.Compiler:
    return sg.Compiler(sg.Vocabulary.from_huggingface(tokenizer, model=model))


@pytest.fixture(scope="module")
def order(compiler: sg.Compiler) -> sg.CompiledGrammar:
    return compiler.compile("json_schema", ORDER)


@pytest.fixture(scope="module")
def prompts(tokenizer: Any) -> list[list[int]]:
    return [tokenizer(embedded.format_prompt(text, ORDER)).input_ids for text in TEXTS]


def config(blocks: int = 40, **options: Any) -> Any:
    return batching.batching_config(page_size=32, num_blocks=blocks, max_batch_tokens=128, **options)


def texts(tokenizer: Any, outputs: list[Any]) -> list[str]:
    return [tokenizer.decode(o.generated_tokens, skip_special_tokens=True) for o in outputs]


def test_a_batch_of_grammars_and_free_rows(
    model: Any, tokenizer: Any, compiler: sg.Compiler, order: sg.CompiledGrammar, prompts: list[list[int]]
) -> None:
    number = compiler.compile("regex", "[0-9]{3}")
    asked = [order, None, number, order, None, order]
    ids = [prompts[0], prompts[0], prompts[0], prompts[1], prompts[1], prompts[0]]
    found = batching.generate_batch(
        model, ids, asked, max_new_tokens=100, continuous_batching_config=config()
    )
    assert [o.error for o in found] == [None] * 6
    got = texts(tokenizer, found)
    assert (got[0], got[3], got[5]) == (EXPECTED[0], EXPECTED[1], EXPECTED[0])
    assert len(got[2]) == 3 and got[2].isdigit()
    free = batching.generate_batch(
        model, [prompts[0]], [None], max_new_tokens=100, continuous_batching_config=config()
    )
    assert found[1].generated_tokens == free[0].generated_tokens, "free rows are as they are without"


def test_preempted_requests_go_on(
    model: Any, tokenizer: Any, order: sg.CompiledGrammar, prompts: list[list[int]]
) -> None:
    """The memory, 14 blocks of 32 tokens, holds three of ten requests at once. Requests that are interrupted
    go on later with the same text."""
    from transformers.generation.continuous_batching.requests import RequestState

    again = 0
    real = RequestState.create_equivalent_initial_request

    def counted(self: Any) -> Any:
        nonlocal again
        again += 1
        return real(self)

    RequestState.create_equivalent_initial_request = counted
    try:
        found = batching.generate_batch(
            model, [prompts[0]] * 10, order, max_new_tokens=100,
            continuous_batching_config=config(14, allow_block_sharing=False),
        )  # fmt: skip
    finally:
        RequestState.create_equivalent_initial_request = real
    assert again > 0
    assert texts(tokenizer, found) == [EXPECTED[0]] * 10


def test_texts_end_in_time(
    model: Any, tokenizer: Any, order: sg.CompiledGrammar, prompts: list[list[int]]
) -> None:
    import jsonschema

    found = batching.generate_batch(
        model, [prompts[0]] * 4, order, max_new_tokens=30,
        continuous_batching_config=config(12, allow_block_sharing=False),
    )  # fmt: skip
    for text in texts(tokenizer, found):
        jsonschema.validate(json.loads(text), ORDER)


def test_a_request_that_fails_ends_alone(
    model: Any,
    tokenizer: Any,
    compiler: sg.Compiler,
    order: sg.CompiledGrammar,
    prompts: list[list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bad = compiler.compile("regex", "[a-z]{40}")
    real = batching.request_of

    def failing(grammar: Any, **options: Any) -> Any:
        request = real(grammar, **options)
        if grammar is bad:  # the mask refuses a budget that no text meets
            request.matcher = grammar.matcher(max_tokens=2)
        return request

    monkeypatch.setattr(batching, "request_of", failing)
    found = batching.generate_batch(
        model, [prompts[0]] * 3, [order, bad, order], max_new_tokens=100, continuous_batching_config=config()
    )
    assert found[1].error is not None and "UnsatisfiableBudget" in found[1].error
    assert len(found[1].generated_tokens) == 1, "the end token"
    assert [texts(tokenizer, found)[i] for i in (0, 2)] == [EXPECTED[0]] * 2


def test_a_manager_of_ones_own(
    model: Any, tokenizer: Any, order: sg.CompiledGrammar, prompts: list[list[int]]
) -> None:
    with batching.constrained(model) as processor:
        manager = model.init_continuous_batching(continuous_batching_config=config())
    manager.start()
    try:
        for round_ in range(2):
            names = [
                manager.add_request(ids, request_id=f"{round_} {i}", grammar=order, max_new_tokens=100)
                for i, ids in enumerate(prompts)
            ]
            bad = manager.add_request(prompts[0], request_id=f"{round_} bad", grammar="no grammar")
            found: dict[str, Any] = {}
            while len(found) < len(names) + 1:
                result = manager.get_result(timeout=5)
                assert result is not None
                if result.is_finished():
                    found[result.request_id] = result
            assert texts(tokenizer, [found[name] for name in names]) == EXPECTED
            assert "CompiledGrammar" in found[bad].error, "it fails alone"
            assert not processor.errors and len(processor._kept) <= 2
    finally:
        manager.stop(block=True)
    assert "_get_logits_processor" not in vars(model) and "init_continuous_batching" not in vars(model)


def test_refusals(model: Any, order: sg.CompiledGrammar, prompts: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="2 prompts and 1 grammars"):
        batching.generate_batch(model, prompts, [order])
    for name, value in (
        ("use_async_batching", True),
        ("use_cuda_graph", True),
        ("per_request_processors", False),
    ):
        with pytest.raises(ValueError, match=name):
            batching.batching_config(**{name: value})
    plain = transformers.ContinuousBatchingConfig(page_size=32, num_blocks=20)
    with pytest.raises(ValueError, match="batching_config"):
        batching.generate_batch(model, prompts, order, continuous_batching_config=plain)


@pytest.mark.parametrize("beams", [1, 3])
def test_static_caches(
    model: Any, tokenizer: Any, order: sg.CompiledGrammar, prompts: list[list[int]], beams: int
) -> None:
    ids = torch.tensor([prompts[0]])
    made = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=100, do_sample=False, num_beams=beams,
        cache_implementation="static", logits_processor=[LogitsProcessor(order)],
    )  # fmt: skip
    assert tokenizer.decode(made[0, ids.shape[1] :], skip_special_tokens=True) == EXPECTED[0]


def test_a_compiled_model(tokenizer: Any, order: sg.CompiledGrammar, prompts: list[list[int]]) -> None:
    """torch.compile compiles the forward pass; the processor stays outside of the graphs. The backend "eager"
    traces like every backend, and needs no C++ compiler."""
    model = transformers.AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32).eval()
    model.forward = torch.compile(model.forward, backend="eager", dynamic=True)
    ids = torch.tensor([prompts[0]])
    made = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=100, do_sample=False,
        logits_processor=[LogitsProcessor(order)],
    )  # fmt: skip
    assert tokenizer.decode(made[0, ids.shape[1] :], skip_special_tokens=True) == EXPECTED[0]


def test_a_vocabulary_wider_than_the_model(model: Any, prompts: list[list[int]]) -> None:
    vocab = sg.Vocabulary.from_bytes([b"a"] * 2000 + [None] + [b"b"] * 200, 2000)
    wide = sg.Compiler(vocab).regex("[ab]+")
    (found,) = batching.generate_batch(
        model, [prompts[0]], [wide], max_new_tokens=9, continuous_batching_config=config()
    )
    assert "2201 ids and the model 2048" in found.error
