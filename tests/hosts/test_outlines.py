"""structgen as a backend of the real outlines, with the embedded model in transformers.

`make test-hosts HOST=outlines`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, ClassVar, Literal

import jsonschema
import pytest

outlines = pytest.importorskip("outlines", reason="make test-hosts HOST=outlines")
sys.path += [str(Path(__file__).parents[i]) for i in (0, 2)]

import torch  # noqa: E402
import transformers  # noqa: E402
from contract import EXPECTED, MODEL, ORDER, OTHERS, PROMPT, Asked, Budgets  # noqa: E402
from pydantic import BaseModel, Field  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.integrations import outlines as plugin  # noqa: E402
from structgen.lm import embedded  # noqa: E402

torch.set_num_threads(1)
TYPES = {
    "json_schema": outlines.types.JsonSchema,
    "regex": outlines.types.Regex,
    "lark": outlines.types.CFG,
    "gbnf": outlines.types.CFG,
    "choice": lambda text: Literal[tuple(json.loads(text))],
}


@pytest.fixture(scope="session")
def model() -> Any:
    plugin.register()
    plugin.register()  # a second registration changes nothing
    return outlines.from_transformers(
        transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32),
        transformers.AutoTokenizer.from_pretrained(MODEL),
    )


class TestContract(Budgets):
    kinds = tuple(TYPES)
    refusal = (sg.StructgenError, TypeError, ValueError, jsonschema.SchemaError)
    own_words: ClassVar = {"'minItems' is not a number": "'3' is not of type 'integer'"}

    @pytest.fixture(autouse=True)
    def host(self, model: Any) -> None:
        self.model = model

    def host_answer(self, asked: Asked) -> str:
        plugin.register(max_new_tokens=asked.max_tokens)
        generator = outlines.Generator(self.model, TYPES[asked.kind](asked.text), backend="structgen")
        torch.manual_seed(asked.seed)
        made: str = generator(asked.prompt, max_new_tokens=asked.max_tokens, **asked.torch_sampling)
        return made


def test_types_batches_and_streams(model: Any) -> None:
    plugin.register()

    class Number(BaseModel, extra="forbid"):
        value: int = Field(ge=0, le=999)

    generator = outlines.Generator(model, Number, backend="structgen")
    Number.model_validate_json(generator(PROMPT, max_new_tokens=300, do_sample=False))
    order = outlines.Generator(model, outlines.types.JsonSchema(ORDER), backend="structgen")
    prompts = [PROMPT, *(embedded.format_prompt(text, ORDER) for text in OTHERS)]
    expected = [EXPECTED, *(sg.generate(None, text, ORDER).text for text in OTHERS)]
    for prompt, text in zip(prompts, expected, strict=True):
        assert order(prompt, max_new_tokens=150, do_sample=False) == text
    made = order.batch(prompts, max_new_tokens=150, do_sample=False)
    assert [json.loads(text)["customer"] for text in made] == [json.loads(t)["customer"] for t in expected]


def test_compilers_are_shared_and_others_are_as_they_were(model: Any) -> None:
    one = outlines.backends._get_backend("structgen", model)
    other = outlines.backends._get_backend("structgen", model)
    assert one._host is other._host
    with pytest.raises(ValueError, match="nonsense not supported"):
        outlines.backends._get_backend("nonsense", model)
    core = outlines.backends._get_backend("outlines_core", model)
    assert type(core).__name__ == "OutlinesCoreBackend"
    with pytest.raises(ValueError, match="not for SimpleNamespace"):
        import types

        plugin.Backend(types.SimpleNamespace(model=model.model))


def test_llama_cpp(tmp_path: Path) -> None:
    llama_cpp = pytest.importorskip("llama_cpp", reason="compiles llama.cpp")
    from oracles import gguf_model

    gguf_model.write(tmp_path / "target.gguf")
    llama = llama_cpp.Llama(str(tmp_path / "target.gguf"), n_ctx=1024, verbose=False, n_threads=1)
    model = outlines.from_llamacpp(llama)
    plugin.register(max_new_tokens=300)
    generator = outlines.Generator(model, outlines.types.JsonSchema(ORDER), backend="structgen")
    for _ in range(2):
        made = generator("Ada Byron ordered 2 lamps", max_tokens=300, temperature=0.0)
        assert set(json.loads(made)) == set(ORDER["properties"])
