"""structgen's logits processor in the real mlx-lm, with the embedded model.

`make test-hosts HOST=mlx`; on Linux MLX computes on the CPU.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

mx = pytest.importorskip("mlx.core", reason="make test-hosts HOST=mlx")
pytest.importorskip("mlx_lm", reason="make test-hosts HOST=mlx")
sys.path.append(str(Path(__file__).parent))

from contract import EXPECTED, MODEL, ORDER, OTHERS, PROMPT, TEXT, Asked, Budgets  # noqa: E402
from mlx_lm.generate import generate_step, speculative_generate_step  # noqa: E402
from mlx_lm.sample_utils import make_sampler  # noqa: E402
from mlx_lm.utils import load_model  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

import structgen as sg  # noqa: E402
from structgen.integrations.hosts import HostEngine  # noqa: E402
from structgen.integrations.mlx import LogitsProcessor, width_of  # noqa: E402
from structgen.lm import embedded  # noqa: E402

TOKENIZER = Tokenizer.from_file(MODEL + "/tokenizer.json")


@pytest.fixture(scope="session")
def model() -> Any:
    made, _ = load_model(Path(MODEL))
    made.set_dtype(mx.float32)
    return made


@pytest.fixture(scope="session")
def engine(model: Any) -> HostEngine:
    return HostEngine(sg.Vocabulary.from_file(MODEL), width_of(model))


def written(steps: Any, ends: tuple[int, ...]) -> list[int]:
    """Returns the ids of a text, up to the place where mlx-lm's own `stream_generate` stops."""
    ids: list[int] = []
    for token, *_ in steps:
        if int(token) in ends:
            break
        ids.append(int(token))
    return ids


def prompted(text: str) -> Any:
    return mx.array(TOKENIZER.encode(text).ids)


class TestContract(Budgets):
    @pytest.fixture(autouse=True)
    def host(self, model: Any, engine: HostEngine) -> None:
        self.model, self.engine = model, engine

    def host_answer(self, asked: Asked) -> str:
        grammar = self.engine.compile(asked.kind, asked.text)
        mx.random.seed(asked.seed)
        steps = generate_step(
            prompted(asked.prompt),
            self.model,
            max_tokens=asked.max_tokens,
            sampler=make_sampler(temp=asked.temperature),
            logits_processors=[LogitsProcessor(grammar, max_new_tokens=asked.max_tokens)],
        )
        return TOKENIZER.decode(written(steps, self.engine.vocabulary.eos_token_ids))


def test_one_processor_for_many_prompts_and_a_chat(model: Any, engine: HostEngine) -> None:
    ends = engine.vocabulary.eos_token_ids
    processor = LogitsProcessor(engine.compile("json_schema", json.dumps(ORDER)))
    for text in (TEXT, *OTHERS, TEXT):
        prompt = prompted(embedded.format_prompt(text, ORDER))
        steps = generate_step(prompt, model, max_tokens=150, logits_processors=[processor])
        assert TOKENIZER.decode(written(steps, ends)) == sg.generate(None, text, ORDER).text
    chat = mx.concatenate([prompt, mx.array([*TOKENIZER.encode(EXPECTED).ids, ends[0]]), prompted(PROMPT)])
    steps = generate_step(chat, model, max_tokens=150, logits_processors=[processor])
    assert json.loads(TOKENIZER.decode(written(steps, ends)))


def test_drafts_change_nothing(model: Any, engine: HostEngine) -> None:
    draft, _ = load_model(Path(str(embedded.path("draft"))))
    draft.set_dtype(mx.float32)
    processor = LogitsProcessor(engine.compile("json_schema", json.dumps(ORDER)))
    steps = speculative_generate_step(
        prompted(PROMPT), model, draft, num_draft_tokens=3, max_tokens=150, logits_processors=[processor]
    )
    assert TOKENIZER.decode(written(steps, engine.vocabulary.eos_token_ids)) == EXPECTED


def test_a_vocabulary_of_another_width(model: Any) -> None:
    grammar = sg.Compiler(sg.Vocabulary.from_bytes([b"a", None], 1)).regex("a")
    with pytest.raises(sg.VocabularyError, match="width_of"):
        LogitsProcessor(grammar)(mx.array([0]), mx.zeros((1, 7)))
