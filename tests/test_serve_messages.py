"""Anthropic's interface: blocks, calls, thoughts, the order of events, and refused requests."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
pytest.importorskip("sse_starlette", reason="sse-starlette is not installed: it is in the extra serve")

from starlette.testclient import TestClient

from oracles.bodies import junk
from oracles.serving import CHAT, RESPONSES, SHORT_ORDER, SHORT_TEXT
from structgen.serve.app import create_app

MESSAGES = "/v1/messages"
ORDER = {"output_config": {"format": {"type": "json_schema", "schema": SHORT_ORDER}}}
WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
ASK = [{"role": "user", "content": "What is the weather in Paris?"}]


@pytest.fixture(scope="module", params=[None, "embedded-thinking"], ids=["plain", "thinking"])
def client(request):
    with TestClient(create_app(request.param), raise_server_exceptions=False) as made:
        yield made


def ask(client, status: int = 200, path: str = MESSAGES, **fields: Any) -> dict[str, Any]:
    body = {"max_tokens": 300, "messages": [{"role": "user", "content": SHORT_TEXT}], **fields}
    response = client.post(path, json={k: v for k, v in body.items() if v is not None})
    assert response.status_code == status, response.text
    found: dict[str, Any] = response.json()
    return found


def thinks(client) -> bool:
    return client.app.state.service.name == "embedded-thinking"


def whole(client, fields: dict[str, Any]) -> dict[str, Any]:
    """Returns the message that a client assembles from a stream. The function checks the order of the
    events."""
    body = {"max_tokens": 300, "messages": ASK, "stream": True, **fields}
    text = client.post(MESSAGES, json=body).text
    message: dict[str, Any] = {}
    open_at, ended = None, False
    for part in text.strip().split("\n\n"):
        name, data = part.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}" and not ended
        match event["type"]:
            case "message_start":
                assert not message
                message = event["message"]
            case "content_block_start":
                assert open_at is None and event["index"] == len(message["content"])
                open_at = event["index"]
                message["content"].append({**event["content_block"], "json": ""})
            case "content_block_delta":
                assert event["index"] == open_at
                block, delta = message["content"][-1], event["delta"]
                field = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "json"}
                if delta["type"] != "signature_delta":
                    key = field[delta["type"]]
                    block[key] += delta.get("partial_json", delta.get(key, ""))
            case "content_block_stop":
                assert event["index"] == open_at
                open_at = None
                block = message["content"][-1]
                parts = block.pop("json")
                if block["type"] == "tool_use":
                    block["input"] = json.loads(parts or "{}")
            case "message_delta":
                assert open_at is None
                message |= event["delta"] | {"usage": event["usage"]}
            case "message_stop":
                ended = True
    assert ended
    return message


def kinds(message: dict[str, Any]) -> list[str]:
    return [block["type"] for block in message["content"]]


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Returns whether two messages are equal, without the fields that depend on chance or on the cache."""

    def plain(message: dict[str, Any]) -> Any:
        blocks = [{k: v for k, v in block.items() if k != "id"} for block in message["content"]]
        return blocks, message["stop_reason"], message["stop_sequence"], message["usage"]["output_tokens"]

    return bool(plain(one) == plain(other))


def test_a_schema_and_thoughts(client) -> None:
    found = ask(client, **ORDER)
    assert kinds(found) == (["thinking", "text"] if thinks(client) else ["text"])
    assert json.loads(found["content"][-1]["text"]) == {"customer": "Ana", "city": "Porto"}
    assert (found["type"], found["role"], found["stop_reason"]) == ("message", "assistant", "end_turn")
    again = ask(client, **ORDER)["usage"]
    assert again["input_tokens"] + again["cache_read_input_tokens"] == sum(
        found["usage"][name] for name in ("input_tokens", "cache_read_input_tokens")
    )
    assert same(whole(client, {"messages": [{"role": "user", "content": SHORT_TEXT}], **ORDER}), found)


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "get_weather"}])
def test_a_call_and_its_result(client, choice) -> None:
    once = {"disable_parallel_tool_use": True}
    fields = {"tools": [WEATHER], "tool_choice": choice | once}
    found = ask(client, messages=ASK, **fields)
    call = found["content"][-1]
    assert (call["type"], call["name"], call["input"]) == ("tool_use", "get_weather", {"city": "Paris"})
    assert found["stop_reason"] == "tool_use"
    assert same(whole(client, fields), found)
    result = {
        "type": "tool_result",
        "tool_use_id": call["id"],
        "content": [{"type": "text", "text": "12 degrees"}],
    }
    turns = [*ASK, {"role": "assistant", "content": found["content"]}, {"role": "user", "content": [result]}]
    number = {"type": "object", "properties": {"degrees": {"type": "integer"}}, "required": ["degrees"]}
    said = ask(
        client,
        messages=turns,
        tools=[WEATHER],
        tool_choice={"type": "none"},
        output_config={"format": {"type": "json_schema", "schema": number}},
    )
    assert isinstance(json.loads(said["content"][-1]["text"])["degrees"], int)


def test_budgets_of_thoughts(client) -> None:
    off = ask(client, thinking={"type": "disabled"}, **ORDER)
    assert kinds(off) == ["text"]
    few = ask(client, thinking={"type": "enabled", "budget_tokens": 4}, **ORDER)
    omitted = ask(client, thinking={"type": "enabled", "budget_tokens": 40, "display": "omitted"}, **ORDER)
    assert kinds(omitted) == ["text"]
    if thinks(client):
        assert 0 < len(few["content"][0]["thinking"]) <= 12
        assert omitted["usage"]["output_tokens"] > off["usage"]["output_tokens"]
    assert json.loads(few["content"][-1]["text"]) == {"customer": "Ana", "city": "Porto"}


def test_ends(client) -> None:
    off = {"type": "disabled"}
    stopped = ask(client, thinking=off, stop_sequences=["Porto"], **ORDER)
    assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", "Porto")
    assert ask(client, thinking=off, max_tokens=3)["stop_reason"] == "max_tokens"
    begun = [{"role": "user", "content": SHORT_TEXT}, {"role": "assistant", "content": '{"customer":"Ana",'}]
    rest = ask(
        client,
        messages=begun,
        thinking=off,
        max_tokens=60,
        structured_outputs={"regex": '"city":"[A-Z][a-z]+"}'},
    )
    assert rest["content"][0]["text"] == '"city":"Porto"}'


def test_tokens_are_counted(client) -> None:
    fields: dict[str, Any] = {
        "messages": ASK,
        "tools": [WEATHER],
        "system": [{"type": "text", "text": "Be short."}],
    }
    count = ask(client, path=f"{MESSAGES}/count_tokens", max_tokens=None, **fields)["input_tokens"]
    usage = ask(client, tool_choice={"type": "any"}, **fields)["usage"]
    assert count == usage["input_tokens"] + usage["cache_read_input_tokens"]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 3, **ORDER}, "max_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 300}}, "thinking.budget_tokens"),
        ({"tools": [{"name": "f", "input_schema": {}}, {"name": "f", "input_schema": {}}]}, "tools[1].name"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tools": [{"name": "f", "input_schema": 3}]}, "tools[0].parameters"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
        ({"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "other"}}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "required"}}, "tool_choice.type"),
        ({"tools": [WEATHER], "tool_choice": {"type": "tool"}}, "tool_choice"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
            "messages[0].content[0]",
        ),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": []}, "messages"),
        ({"output_config": {"format": {"type": "text"}}}, "output_config.format.type"),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "objct"}}}},
            "output_config.format",
        ),
        ({"stop_sequences": [""]}, "stop_sequences"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tool_chioce": {"type": "any"}}, "tool_chioce"),
        ({"guided_regex": "[0-9]"}, "guided_regex"),
    ],
)
def test_errors_name_the_field(client, fields, param) -> None:
    for more in ({}, {"stream": True}):
        found = ask(client, 400, **fields, **more)
        assert found["type"] == "error" and found["error"]["param"] == param, found
        assert found["error"]["type"] == "invalid_request_error" and found["error"]["message"]


@pytest.mark.parametrize("depth", [200, 900, 100_000])
def test_a_deep_input_of_a_call_is_read_or_refused(client, depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    use = f'{{"type": "tool_use", "id": "t", "name": "f", "input": {deep}}}'
    turn = f'{{"role": "assistant", "content": [{use}]}}, {{"role": "user", "content": "go"}}'
    body = f'{{"max_tokens": 3, "messages": [{turn}]}}'
    response = client.post(MESSAGES, content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in (200, 400), response.text


# The valid tools, blocks and items, before a random part is exchanged.
TOOLS: list[dict[str, Any]] = [
    {"type": "custom", "name": "f"},
    {"type": "custom", "custom": {"name": "f", "format": {"type": "grammar"}}},
    WEATHER,
    {"name": "h", "inputSchema": {"type": "object"}},
    {"type": "mcp", "server_label": "town"},
    {"type": "mcp_toolset", "mcp_server_name": "town"},
]
BLOCKS = ["text", "tool_use", "tool_result", "thinking", "mcp_tool_use", "mcp_tool_result", "image"]
ITEMS = [
    "message",
    "custom_tool_call",
    "custom_tool_call_output",
    "mcp_call",
    "mcp_list_tools",
    "function_call",
]
ITEM = {
    "role": "user",
    "content": "x",
    "name": "f",
    "input": "x",
    "arguments": "{}",
    "output": "x",
    "call_id": "c",
}


def _body(chance: random.Random, path: str) -> dict[str, Any]:
    """Returns a body with random values in blocks, items, tools and other fields."""

    def spoiled(value: dict[str, Any]) -> dict[str, Any]:
        more = junk(chance) if chance.random() < 0.5 else {}
        return {**value, **(more if isinstance(more, dict) else {"name": more})}

    def some(make: Callable[[], Any]) -> list[Any]:
        return [make() for _ in range(chance.randint(1, 3))]

    def tool() -> Any:
        return spoiled(chance.choice(TOOLS))

    def message() -> Any:
        blocks = some(lambda: spoiled({"type": chance.choice(BLOCKS), "text": "hi"}))
        return {"role": chance.choice(["user", "assistant"]), "content": blocks}

    body: dict[str, Any] = {"max_output_tokens" if path == RESPONSES else "max_tokens": 3}
    if path == RESPONSES:
        body["input"] = some(lambda: spoiled({"type": chance.choice(ITEMS), **ITEM}))
    elif path == CHAT:
        body["messages"] = [*ASK, {"role": "assistant", "tool_calls": some(tool)}]
    else:
        body["messages"] = some(message)
    if chance.random() < 0.8:
        body["tools"] = some(tool)
    for name in ("tool_choice", "thinking", "output_config", "system", "stop_sequences"):
        if chance.random() < 0.15:
            body[name] = junk(chance)
    return body


@pytest.mark.parametrize("seed", range(100))
def test_whatever_a_client_sends_ends_in_an_answer_or_a_4xx(client, seed: int) -> None:
    client.app.state.service.servers._tools = {"town": [{"name": "walk", "parameters": {"type": "object"}}]}
    chance = random.Random(seed)
    for path in (MESSAGES, f"{MESSAGES}/count_tokens", CHAT, RESPONSES):
        body = _body(chance, path)
        response = client.post(path, json=body)
        assert response.status_code < 500, (body, response.text)
