"""Texts drawn from our grammars of tool calls, read by the real vLLM's tool parsers: the same calls.

`make test-hosts HOST=vllm_tool_calls`. Left out: mistral before v11, whose reader asks Mistral's tokenizer
for its version; harmony and command-r, which vLLM reads elsewhere; json, functionary and nemotron, for which
it has no reader.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is 3 GB: make test-hosts HOST=vllm_tool_calls")
sys.path.append(str(Path(__file__).parent))
os.environ |= {"VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}

import transformers  # noqa: E402
from tool_texts import TOOLS, drawn  # noqa: E402
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: E402
from vllm.tool_parsers import ToolParserManager  # noqa: E402

from structgen.lm import embedded  # noqa: E402

READERS = {
    "hermes": "hermes", "ernie": "ernie45", "llama3": "llama3_json", "mistral-v11": "mistral",
    "deepseek-v3": "deepseek_v3", "deepseek-v3.1": "deepseek_v31", "deepseek-v3.2": "deepseek_v32",
    "kimi-k2": "kimi_k2", "kimi-k3": "kimi_k3", "qwen3-coder": "qwen3_coder", "minimax": "minimax_m2",
    "minimax-m3": "minimax_m3", "glm": "glm45", "granite": "granite", "granite-3.1": "granite",
    "phi4": "phi4_mini_json", "seed-oss": "seed_oss", "step3": "step3",
}  # fmt: skip
# What the families' tokenizers have as tokens, and the readers ask for.
MARKS = [
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>",
    "</arg_value>", "<response>", "</response>", "[TOOL_CALLS]", "[ARGS]", "<|tool_call|>", "<|python_tag|>",
    "<minimax:tool_call>", "</minimax:tool_call>", "<seed:tool_call>", "</seed:tool_call>", "<seed:think>",
    "</seed:think>", "<|open|>", "<|close|>", "<|sep|>", "｜DSML｜", "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_call_argument_begin|>",
    "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>", "<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", "<｜tool_call_begin｜>",
    "<｜tool_call_end｜>", "<｜tool_sep｜>",
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    made = transformers.AutoTokenizer.from_pretrained(embedded.path())
    made.add_special_tokens({"additional_special_tokens": MARKS})
    return made


@pytest.mark.parametrize("style", list(READERS))
def test_vllm_reads_the_same_calls(tokenizer: Any, style: str) -> None:
    reader = ToolParserManager.get_tool_parser(READERS[style])
    request = ChatCompletionRequest(messages=[], model="m", tools=TOOLS, tool_choice="auto")
    for text, calls in drawn(style):
        found = reader(tokenizer, request.tools).extract_tool_calls(text, request).tool_calls
        assert [(c.function.name, json.loads(c.function.arguments)) for c in found] == calls, text
