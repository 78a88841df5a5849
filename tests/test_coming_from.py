"""The code of other libraries in docs/coming-from.md runs, if the library is installed."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from oracles import closed
from structgen.lm import embedded

PAGE = (Path(__file__).parents[1] / "docs" / "coming-from.md").read_text(encoding="utf-8")
SCHEMA = closed({"name": {"type": "string"}, "age": {"type": "integer"}})


def block(title: str) -> str:
    """Returns the indented block below a heading of the page."""
    section = PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    found = re.search(r"another library's -->\n\n((?:    .*\n|\n)+)", section)
    assert found is not None
    return "\n".join(line[4:] for line in found[1].splitlines())


def library(name: str) -> Any:
    pytest.importorskip(
        "transformers", reason="transformers is not installed: it is in the extra transformers"
    )
    return pytest.importorskip(name, reason=f"{name} is not installed: no extra brings it")


def tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(embedded.path("target"))


def model() -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(embedded.path("target"))


def run(title: str, **names: Any) -> dict[str, Any]:
    exec(compile(block(title), f"coming-from.md, {title}", "exec"), names)
    return names


def test_xgrammar() -> None:
    library("xgrammar")
    torch = pytest.importorskip("torch", reason="torch is not installed: it is in the extra transformers")
    made = tokenizer()
    size = len(made)
    names = run(
        "xgrammar", xgrammar=importlib.import_module("xgrammar"), tokenizer=made, vocab_size=size,
        schema=json.dumps(SCHEMA), logits=torch.zeros(1, size),
    )  # fmt: skip
    allowed = torch.isfinite(names["logits"][0])
    assert allowed[made.encode("{", add_special_tokens=False)[0]]
    assert not allowed[made.encode("x", add_special_tokens=False)[0]]


def test_llguidance() -> None:
    llguidance = library("llguidance")
    numpy = importlib.import_module("llguidance.numpy")
    of_hf = importlib.import_module("llguidance.hf")
    made = tokenizer()
    bitmask = numpy.allocate_token_bitmask(1, len(made))
    token = made.encode("{", add_special_tokens=False)[0]
    names = run(
        "llguidance", llguidance=llguidance, tokenizer=of_hf.from_tokenizer(made), schema=SCHEMA,
        bitmask=bitmask, token=token,
    )  # fmt: skip
    words = np.asarray(bitmask)[0]
    assert words[token // 32] >> (token % 32) & 1
    other = made.encode("x", add_special_tokens=False)[0]
    assert not words[other // 32] >> (other % 32) & 1
    assert not names["matcher"].is_error() and not names["matcher"].is_accepting()


def test_outlines() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")
    library("outlines")
    person = pydantic.create_model("Person", name=(str, ...), age=(int, ...))
    names = run("Outlines", hf_model=model(), hf_tokenizer=tokenizer(), Person=person)
    assert isinstance(names["person"], person)


def test_guidance() -> None:
    guidance = library("guidance")
    names = run("guidance", model=guidance.models.Transformers(model(), tokenizer(), echo=False))
    assert names["lm"]["how"] in ("old", "young") and re.fullmatch("[A-Z][a-z]+", names["lm"]["name"])


def test_instructor() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")
    instructor = library("instructor")
    openai = library("openai")
    person = pydantic.create_model("Person", name=(str, ...), age=(int, ...))
    call = {"name": "Person", "arguments": '{"name":"Ada","age":36}'}
    calls = [{"id": "c", "type": "function", "function": call}]
    message = {"role": "assistant", "tool_calls": calls}
    made = openai.types.chat.ChatCompletion.model_validate(
        {
            "id": "1", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
        }
    )  # fmt: skip
    with mock.patch.object(openai.resources.chat.Completions, "create", lambda self, *a, **k: made):
        names = run(
            "Instructor", instructor=instructor, Person=person, OpenAI=lambda: openai.OpenAI(api_key="-")
        )
    found = names["person"]
    assert isinstance(found, person) and found.model_dump() == {"name": "Ada", "age": 36}


def test_a_block_that_fails_is_found() -> None:
    with mock.patch(f"{__name__}.PAGE", PAGE.replace("GrammarMatcher(", "NoSuchMatcher(")):
        assert "NoSuchMatcher" in block("xgrammar")
        space = SimpleNamespace(GrammarCompiler=mock.MagicMock(), TokenizerInfo=mock.MagicMock())
        with pytest.raises(AttributeError, match="NoSuchMatcher"):
            run("xgrammar", xgrammar=space, tokenizer=None, vocab_size=1, schema="", logits=None)
