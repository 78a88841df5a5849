"""The server with a model that thinks: settings of thoughts in requests, and thoughts in answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oracles.serving import SHORT_ORDER, SHORT_TEXT

pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
pytest.importorskip("sse_starlette", reason="sse-starlette is not installed: it is in the extra serve")

from starlette.testclient import TestClient

from oracles.bodies import Bodies
from structgen.serve.app import create_app

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
FORMAT = {"type": "json_schema", "json_schema": {"name": "order", "schema": SHORT_ORDER}}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}  # fmt: skip
ANSWER = {"customer": "Ana", "city": "Porto"}
THOUGHTS = f"\nThe request says: {SHORT_TEXT}. I write what it says, in the order of the fields.\n"


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app("embedded-thinking"), raise_server_exceptions=False) as made:
        yield made


def chat(client, status: int = 200, **fields: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": SHORT_TEXT}], "response_format": FORMAT, **fields}
    response = client.post(CHAT, json=body)
    assert response.status_code == status, response.text
    found: dict[str, Any] = response.json()
    return found


def events(client, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    lines = client.post(path, json={**body, "stream": True}).text.split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def test_thoughts_stand_beside_the_content(client) -> None:
    found = chat(client)
    message, usage = found["choices"][0]["message"], found["usage"]
    assert json.loads(message["content"]) == ANSWER and message["reasoning_content"] == THOUGHTS
    assert 0 < usage["completion_tokens_details"]["reasoning_tokens"] < usage["completion_tokens"]


def test_a_stream_tells_them_apart(client) -> None:
    body = {"messages": [{"role": "user", "content": SHORT_TEXT}], "response_format": FORMAT}
    found = events(client, CHAT, {**body, "stream_options": {"include_usage": True}})
    deltas = [choice["delta"] for chunk in found for choice in chunk["choices"]]
    assert "".join(d.get("reasoning_content", "") for d in deltas) == THOUGHTS
    assert json.loads("".join(d.get("content") or "" for d in deltas)) == ANSWER
    kinds = ["reasoning_content" in d for d in deltas if d.get("content") or "reasoning_content" in d]
    assert kinds == sorted(kinds, reverse=True)
    assert found[-1]["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0


OFF = [
    {"reasoning_effort": "none"},
    {"reasoning": {"effort": "none"}},
    {"reasoning": {"enabled": False}},
    {"thinking": {"type": "disabled"}},
    {"chat_template_kwargs": {"enable_thinking": False}},
    {"chat_template_kwargs": {"thinking": False}},
    {"thinking_token_budget": 0},
]


@pytest.mark.parametrize("fields", OFF, ids=str)
def test_no_thoughts(client, fields) -> None:
    found = chat(client, **fields)
    message = found["choices"][0]["message"]
    assert json.loads(message["content"]) == ANSWER and "reasoning_content" not in message
    assert found["usage"]["completion_tokens_details"]["reasoning_tokens"] == 0


BUDGETS = [
    {"thinking_token_budget": 4},
    {"reasoning": {"max_tokens": 4}},
    {"thinking": {"type": "enabled", "budget_tokens": 4}},
    {"chat_template_kwargs": {"thinking_budget": 4}},
    {"reasoning": {"max_tokens": 4}, "thinking_token_budget": 50, "reasoning_effort": "high"},
]


@pytest.mark.parametrize("fields", BUDGETS, ids=str)
def test_a_budget_of_thoughts(client, fields) -> None:
    message = chat(client, **fields)["choices"][0]["message"]
    assert json.loads(message["content"]) == ANSWER
    assert message["reasoning_content"] and THOUGHTS.startswith(message["reasoning_content"])
    assert len(message["reasoning_content"]) <= 12


def test_the_answer_has_its_room(client) -> None:
    for room in (20, 40, 60):
        choice = chat(client, max_tokens=room)["choices"][0]
        assert (
            choice["finish_reason"] == "stop"
            and json.loads(choice["message"]["content"]).keys() == ANSWER.keys()
        )
    kept = chat(client, max_tokens=60, structgen={"answer_tokens": 30})["choices"][0]["message"]
    assert json.loads(kept["content"]) == ANSWER and kept["reasoning_content"]
    error = chat(client, 400, max_tokens=20, structgen={"answer_tokens": 30})["error"]
    assert error["code"] == "max_tokens_too_small" and "give at least 46" in error["message"]
    error = chat(client, 400, max_tokens=5)["error"]
    assert error["code"] == "max_tokens_too_small" and error["least_tokens"] == 8


def test_completions_think_where_a_request_asks(client) -> None:
    prompt = f"<|text|>{SHORT_TEXT}<|schema|>{json.dumps(SHORT_ORDER)}<|answer|>"
    body = {"prompt": prompt, "structured_outputs": {"json": SHORT_ORDER}}
    path = "/v1/completions"
    plain = client.post(path, json=body).json()["choices"][0]
    assert json.loads(plain["text"]).keys() == ANSWER.keys() and "reasoning_content" not in plain
    asked = {**body, "reasoning": {"enabled": True}}
    found = client.post(path, json=asked).json()
    choice = found["choices"][0]
    assert json.loads(choice["text"]).keys() == ANSWER.keys() and choice["reasoning_content"]
    assert found["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0
    parts = [choice for chunk in events(client, path, asked) for choice in chunk["choices"]]
    assert "".join(part["text"] for part in parts) == choice["text"]
    assert "".join(part.get("reasoning_content", "") for part in parts) == choice["reasoning_content"]
    whole = client.post(path, json={**asked, "separate_reasoning": False, "logprobs": 1}).json()["choices"][0]
    assert whole["text"].endswith(choice["text"]) and choice["reasoning_content"] in whole["text"]
    for more, param in (({"logprobs": 1}, "logprobs"), ({"prompt": [prompt, prompt]}, "prompt")):
        refused = client.post(path, json={**asked, **more})
        assert refused.status_code == 400 and refused.json()["error"]["param"] == param


def test_thoughts_end_before_an_answer_of_any_text_is_cut(client) -> None:
    choice = chat(client, response_format=None, max_tokens=40)["choices"][0]
    assert choice["message"]["reasoning_content"] and choice["message"]["content"]
    assert "think>" not in choice["message"]["content"]


def test_thoughts_hidden_or_in_the_content(client) -> None:
    for fields in ({"include_reasoning": False}, {"reasoning": {"exclude": True}}):
        found = chat(client, **fields)
        assert "reasoning_content" not in found["choices"][0]["message"]
        assert found["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0
    whole = chat(client, separate_reasoning=False)["choices"][0]["message"]["content"]
    thoughts, answer = whole.split("</think>\n")
    assert thoughts == "<think>" + THOUGHTS and json.loads(answer) == ANSWER


def test_drafts_and_sampling(client) -> None:
    plain = chat(client)
    fast = chat(client, structgen={"speculate": "auto"})
    assert fast["choices"][0]["message"] == plain["choices"][0]["message"] and fast["usage"] == plain["usage"]
    drawn = chat(client, structgen={"sampling": {"method": "importance"}}, seed=3)
    assert "think>" not in drawn["choices"][0]["message"]["content"]


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_tools_behind_thoughts(client, choice: str) -> None:
    ask = [{"role": "user", "content": "What is the weather in Lisbon?"}]
    body = {"messages": ask, "tools": [TOOL], "tool_choice": choice}
    message = client.post(CHAT, json=body).json()["choices"][0]["message"]
    assert [json.loads(c["function"]["arguments"]) for c in message["tool_calls"]] == [{"city": "Lisbon"}]
    assert message["reasoning_content"] and message["content"] is None


def test_responses_have_an_item_of_thoughts(client) -> None:
    body = {
        "input": SHORT_TEXT,
        "text": {"format": {"type": "json_schema", "name": "order", "schema": SHORT_ORDER}},
    }
    found = client.post(RESPONSES, json=body).json()
    thoughts, message = found["output"]
    assert thoughts["type"] == "reasoning" and thoughts["content"] == [
        {"type": "reasoning_text", "text": THOUGHTS}
    ]
    assert json.loads(message["content"][0]["text"]) == ANSWER
    assert found["usage"]["output_tokens_details"]["reasoning_tokens"] > 0
    streamed = events(client, RESPONSES, body)
    assert [e["sequence_number"] for e in streamed] == list(range(len(streamed)))
    deltas = [e["delta"] for e in streamed if e["type"] == "response.reasoning_text.delta"]
    assert "".join(deltas) == THOUGHTS
    added = [e["output_index"] for e in streamed if e["type"] == "response.output_item.added"]
    assert added == [0, 1] and [o["type"] for o in streamed[-1]["response"]["output"]] == [
        "reasoning",
        "message",
    ]
    hidden = client.post(RESPONSES, json={**body, "reasoning": {"effort": "none"}}).json()
    assert [o["type"] for o in hidden["output"]] == ["message"] and hidden["reasoning"]["effort"] == "none"


@pytest.mark.parametrize(
    "fields, param",
    [
        ({"thinking_token_budget": -1}, "thinking_token_budget"),
        ({"reasoning_effort": "much"}, "reasoning_effort"),
        ({"reasoning": {"max_tokens": "5"}}, "reasoning.max_tokens"),
        ({"chat_template_kwargs": {"enable_thinking": "no"}}, "chat_template_kwargs.enable_thinking"),
        ({"chat_template_kwargs": {"thinking_budget": "9"}}, "chat_template_kwargs.thinking_budget"),
        ({"structgen": {"answer_tokens": -1}}, "structgen.answer_tokens"),
    ],
)
def test_what_is_refused(client, fields, param: str) -> None:
    assert chat(client, 400, **fields)["error"]["param"] == param


def test_a_model_that_does_not_think() -> None:
    with TestClient(create_app(), raise_server_exceptions=False) as plain:
        found = chat(plain, thinking_token_budget=5, reasoning_effort="low")
        assert json.loads(found["choices"][0]["message"]["content"]) == ANSWER
        assert "reasoning_content" not in found["choices"][0]["message"]
        assert "completion_tokens_details" not in found["usage"]
    with pytest.raises(ValueError, match="'qwen5' is no family"):
        create_app(reasoning="qwen5")
    with TestClient(create_app("embedded-thinking", reasoning="none")) as off:
        message = chat(off)["choices"][0]["message"]
        assert json.loads(message["content"]) == ANSWER and "reasoning_content" not in message


def test_a_schema_that_is_too_much_to_tell_behind_a_limit(client) -> None:
    """Behind thoughts with a limit, a mask proves its tokens without the parser's states under that limit.
    This body once failed."""
    body = json.loads(Bodies(261).request().body)
    answer = client.post(RESPONSES, json={**body, "max_output_tokens": 200})
    assert answer.status_code == 200 and answer.json()["usage"]["output_tokens"] == 200
