"""structgen's loop over the real ONNX Runtime GenAI. The model is the embedded one, converted by the host's
builder.

`make test-hosts HOST=onnxruntime_genai`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

genai = pytest.importorskip("onnxruntime_genai", reason="make test-hosts HOST=onnxruntime_genai")
sys.path.append(str(Path(__file__).parent))

from contract import EXPECTED, MODEL, ORDER, OTHERS, PROMPT, TEXT, Asked, Budgets  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.integrations import onnxruntime_genai as loop  # noqa: E402
from structgen.integrations.hosts import HostEngine  # noqa: E402
from structgen.lm import embedded  # noqa: E402

TOKENIZER = Tokenizer.from_file(MODEL + "/tokenizer.json")


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("onnx")
    builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", MODEL, "-o", str(out)]
    done = subprocess.run(
        [*builder, "-p", "fp32", "-e", "cpu", "-c", str(out / "cache")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return genai.Model(str(out))


@pytest.fixture(scope="session")
def engine() -> HostEngine:
    return HostEngine(sg.Vocabulary.from_file(MODEL))


class TestContract(Budgets):
    @pytest.fixture(autouse=True)
    def host(self, model: Any, engine: HostEngine) -> None:
        self.model, self.engine = model, engine

    def host_answer(self, asked: Asked) -> str:
        grammar = self.engine.compile(asked.kind, asked.text)
        request = self.engine.request(grammar, max_tokens=asked.max_tokens)
        sampling: dict[str, Any] = {"do_sample": False}
        if asked.temperature:
            sampling = {
                "do_sample": True,
                "temperature": asked.temperature,
                "random_seed": asked.seed,
                "top_k": 0,
            }
        prompt = TOKENIZER.encode(asked.prompt).ids
        ids = loop.generate(self.model, prompt, request, max_tokens=asked.max_tokens, **sampling)
        return TOKENIZER.decode(list(ids))


def test_jumps_change_nothing(model: Any, engine: HostEngine) -> None:
    """One forward pass reads all forced tokens: the texts stay equal and the number of passes is smaller."""
    grammar = engine.compile("json_schema", json.dumps(ORDER))
    forwards = {}
    for text in (TEXT, *OTHERS):
        prompt = TOKENIZER.encode(embedded.format_prompt(text, ORDER)).ids
        expected = sg.generate(None, text, ORDER).text
        for jump in (False, True):
            counted = Counting(model)
            ids = list(loop.generate(counted, prompt, engine.request(grammar), max_tokens=150, jump=jump))
            assert TOKENIZER.decode(ids) == expected
            forwards[text, jump] = counted.forwards
        assert forwards[text, True] < forwards[text, False]
    print(forwards)
    assert EXPECTED


class Counting:
    """Makes generators that count forward passes. The loop asks for logits once per pass."""

    forwards = 0

    def __init__(self, model: Any) -> None:
        self.model = model


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    real_generator, real_params = genai.Generator, genai.GeneratorParams

    class Generator:
        def __init__(self, model: Any, params: Any) -> None:
            self.owner = model
            self.real = real_generator(getattr(model, "model", model), params)

        def __getattr__(self, name: str) -> Any:
            if name == "get_logits" and isinstance(self.owner, Counting):
                self.owner.forwards += 1
            return getattr(self.real, name)

    monkeypatch.setattr(genai, "Generator", Generator)
    monkeypatch.setattr(genai, "GeneratorParams", lambda model: real_params(getattr(model, "model", model)))


def test_a_text_that_cannot_go_on(model: Any, engine: HostEngine) -> None:
    grammar = engine.compile("regex", "[a-z]{50}")
    request = engine.request(grammar)
    request.matcher = grammar.matcher(max_tokens=3)
    with pytest.raises(sg.UnsatisfiableBudget):
        list(loop.generate(model, TOKENIZER.encode(PROMPT).ids, request, max_tokens=60))
