"""The real vLLM's tool parsers read texts drawn from structgen's grammars of tool calls, and find equal
calls.

vLLM's reasoning parsers read texts with the thoughts of each family, and find equal thoughts and answers.

`make test-hosts HOST=vllm_tool_calls`. The test omits: mistral before v11, whose parser asks Mistral's
tokenizer for its version; harmony and command-r, which vLLM reads elsewhere; functiongemma, whose parser
drops values other than strings; json, functionary, nemotron, exaone, iquest-q1 and gigachat-3.5, for which
vLLM has no parser. A parser that the installed vLLM lacks is skipped; vLLM 0.33.0 has all of them.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is 3 GB: make test-hosts HOST=vllm_tool_calls")
sys.path.append(str(Path(__file__).parent))
os.environ |= {"VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}

import transformers  # noqa: E402
from tool_texts import NESTED, TOOLS, drawn, tools  # noqa: E402
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: E402
from vllm.reasoning import ReasoningParserManager  # noqa: E402
from vllm.tool_parsers import ToolParserManager  # noqa: E402

from structgen.lm import embedded  # noqa: E402
from structgen.reasoning import FAMILIES  # noqa: E402

READERS = {
    "hermes": "hermes", "ernie": "ernie45", "llama3": "llama3_json", "mistral-v11": "mistral",
    "deepseek-v3": "deepseek_v3", "deepseek-v3.1": "deepseek_v31", "deepseek-v3.2": "deepseek_v32",
    "kimi-k2": "kimi_k2", "kimi-k3": "kimi_k3", "qwen3-coder": "qwen3_coder", "minimax": "minimax_m2",
    "minimax-m3": "minimax_m3", "glm": "glm45", "granite": "granite", "granite-3.1": "granite",
    "phi4": "phi4_mini_json", "seed-oss": "seed_oss", "step3": "step3", "deepseek-v4": "deepseek_v4",
    "deepseek-v4.1": "deepseek_v41", "gigachat-3": "gigachat3", "mimo": "mimo", "dots": "dots",
    "minicpm5": "minicpm5", "glm-4.7": "glm47", "ling3": "ling3", "poolside": "poolside_v1",
    "hunyuan": "hunyuan_a13b",
    "jamba": "jamba", "hy-v3": "hy_v3", "hy-v4": "hy_v4", "k2-horizon": "k2_horizon",
    "granite-20b": "granite-20b-fc", "granite4": "granite4", "longcat": "longcat", "internlm": "internlm",
    "apertus": "apertus", "xlam": "xlam", "inkling": "inkling", "plamo3": "plamo3", "gemma-4": "gemma4",
    "lfm2": "lfm2", "olmo3": "olmo3", "pythonic": "pythonic", "llama4": "llama4_pythonic",
    "step3.5": "step3p5", "step5": "step5", "llama4-json": "llama4_json",
}  # fmt: skip
# The test omits: magistral, whose parser asks for Mistral's tokenizer; harmony, whose parser reads token ids;
# olmo3, whose parser asks for pieces of OLMo's own vocabulary; command-a and apertus, for which vLLM has
# another parser or none.
THINKERS = {
    "qwen3": "qwen3", "deepseek-r1": "deepseek_r1", "deepseek-v3.1": "deepseek_v3",
    "deepseek-v4": "deepseek_v4", "glm-4.5": "glm45", "kimi-k2": "kimi_k2", "kimi-k3": "kimi_k3",
    "minimax-m2": "minimax_m2", "minimax-m3": "minimax_m3", "seed-oss": "seed_oss", "step3": "step3",
    "step3.5": "step3p5", "gemma-4": "gemma4", "mimo": "mimo", "ernie-4.5": "ernie45",
    "nemotron-v3": "nemotron_v3", "hunyuan": "hunyuan_a13b", "granite": "granite",
    "granite-4.2": "granite_thinking_parser", "k2-horizon": "k2_horizon", "plamo3": "plamo3",
    "inkling": "inkling", "hy-v3": "hy_v3", "hy-v4": "hy_v4",
}  # fmt: skip
FLAT = ("phi4", "step3")  # the parsers of these styles take no objects inside arguments
# The parsers ask for these tokens, which the tokenizers of the model families have.
MARKS = [
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>",
    "</arg_value>", "<response>", "</response>", "[TOOL_CALLS]", "[ARGS]", "<|tool_call|>", "<|python_tag|>",
    "<minimax:tool_call>", "</minimax:tool_call>", "<seed:tool_call>", "</seed:tool_call>", "<seed:think>",
    "</seed:think>", "<|open|>", "<|close|>", "<|sep|>", "｜DSML｜", "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_call_argument_begin|>",
    "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>", "<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", "<｜tool_call_begin｜>",
    "<｜tool_call_end｜>", "<｜tool_sep｜>", "<tool_calls>", "</tool_calls>", "<tool_sep>", "<|tool_call>",
    "<tool_call|>", '<|"|>', "<|channel>", "<channel|>", "<|tool_call_start|>", "<ifm|tool_calls>",
    "</ifm|tool_calls>", "<ifm|tool_call>", "</ifm|tool_call>", "<|action_start|>", "<|plugin|>",
    "<|action_end|>", "<|message_model|>", "<|content_invoke_tool_json|>", "<|content_thinking|>",
    "<|content_text|>", "<|content_invoke_tool_text|>", "<|content_tool_error|>", "<|end_message|>",
    "<|content_model_end_sampling|>", "<|tools_prefix|>", "<|tools_suffix|>", "<longcat_tool_call>",
    "</longcat_tool_call>", "<|function_call|>", "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>",
    "<｜DSML｜ calls>", "</｜DSML｜ calls>", "<dots_function_call>", "</dots_function_call>",
]  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    made = transformers.AutoTokenizer.from_pretrained(embedded.path())
    thoughts = [m for row in FAMILIES.values() for m in re.findall(r"<[^<>]+>", row.start + row.end)]
    made.add_special_tokens({"additional_special_tokens": list(dict.fromkeys(MARKS + thoughts))})
    return made


@pytest.mark.parametrize("style", list(READERS))
def test_vllm_reads_the_same_calls(tokenizer: Any, style: str) -> None:
    if READERS[style] not in ToolParserManager.list_registered():
        pytest.skip(f"this vLLM has no parser {READERS[style]}")
    reader = ToolParserManager.get_tool_parser(READERS[style])
    told = TOOLS if style in FLAT else tools(NESTED)
    request = ChatCompletionRequest(messages=[], model="m", tools=told, tool_choice="auto")
    for text, calls in drawn(style, tools=told):
        found = reader(tokenizer, request.tools).extract_tool_calls(text, request).tool_calls
        assert [(c.function.name, json.loads(c.function.arguments)) for c in found] == calls, text


@pytest.mark.parametrize("family", list(THINKERS))
def test_vllm_reads_the_same_thoughts(tokenizer: Any, family: str) -> None:
    row, request = FAMILIES[family], ChatCompletionRequest(messages=[], model="m")
    if THINKERS[family] not in ReasoningParserManager.list_registered():
        pytest.skip(f"this vLLM has no parser {THINKERS[family]}")
    make = ReasoningParserManager.get_reasoning_parser(THINKERS[family])
    switches = {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}
    for gap in {"", row.gap}:
        reader = make(tokenizer, chat_template_kwargs=switches)
        text = f"{'' if row.prefilled else row.start}let me\nsee{row.end}{gap}Lisbon"
        thoughts, answer = reader.extract_reasoning(text, request)
        assert row.split(text) == (thoughts, (answer or "").lstrip("\n")) == ("let me\nsee", "Lisbon")
