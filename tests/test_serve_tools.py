"""Tool calls over HTTP: parsed, streamed, forced, strict, and refused."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
pytest.importorskip("sse_starlette", reason="sse-starlette is not installed: it is in the extra serve")

from starlette.testclient import TestClient

import structgen as sg
from oracles import harness
from oracles.serving import (
    CHAT,
    MESSAGES,
    RESPONSES,
    WEATHER,
    Chats,
    Script,
    events,
    ok,
    refused,
)
from structgen.serve.app import create_app
from structgen.serve.constraints import request_constraint, tool_use, with_tools
from structgen.serve.requests import Constrained, OwnOptions


def tool_client(answer: str, style: str = "hermes"):
    return TestClient(create_app(Script(lambda _: answer), tool_style=style), raise_server_exceptions=False)


def chat_script(client, **fields):
    return client.post(CHAT, json={"messages": [{"role": "user", "content": "go\x02"}], **fields})


CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'


@pytest.mark.parametrize(
    "choice", ["auto", "required", {"type": "function", "function": {"name": "get_weather"}}]
)
@pytest.mark.parametrize("stream", [False, True])
def test_tool_calls_come_back_parsed(choice, stream) -> None:
    said = "Let me look. " if choice == "auto" else ""
    app = create_app(Chats(lambda _: said + CALL), tool_style="hermes", temperature=0.0)
    request = {"messages": MESSAGES, "tools": [WEATHER], "tool_choice": choice, "stream": stream}
    with TestClient(app) as client:
        response = client.post(CHAT, json=request)
    if stream:
        deltas = [chunk["choices"][0] for chunk in events(response)]
        parts = [c for d in deltas for c in d["delta"].get("tool_calls", [])]
        assert {c["index"] for c in parts} == {0} and len(parts) > 5
        calls = [joined(parts)]
        text = "".join(d["delta"].get("content") or "" for d in deltas)
        reason = deltas[-1]["finish_reason"]
    else:
        (one,) = ok(response)["choices"]
        calls, text, reason = (
            one["message"]["tool_calls"],
            one["message"]["content"] or "",
            one["finish_reason"],
        )
    (call,) = calls
    assert call["type"] == "function" and call["id"].startswith("call_")
    assert call["function"] == {"name": "get_weather", "arguments": '{"city": "Rome"}'}
    assert (text.strip(), reason) == (said.strip(), "tool_calls")


@pytest.mark.parametrize(
    ("asked", "inside", "outside"),
    [
        ({}, ['{"a": 1, "b": 2}', '{"a":1,"b":2}'], ['{\n\t"a": 1}', '{"b": 2, "a": 1}', '{"a":1e2}']),
        ({"whitespace": "compact"}, ['{"a":1}'], ['{"a": 1}']),
        ({"whitespace": "flexible", "numbers": "any"}, ['{\n\t"a":1e2}'], ["{"]),
        ({"property_order": "any"}, ['{"b": 2, "a": 1}'], ['{  "a":1}']),
    ],
)
def test_the_options_of_json_reach_calls_tags_and_grammars(asked, inside, outside) -> None:
    schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "type": "object"}
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    choice = {"type": "function", "function": {"name": "f"}}
    use = tool_use([tool], choice, None, "json-compact", OwnOptions(**asked))
    assert use is not None
    made = {'{"name":"f","arguments":%s}': with_tools(use, None)}
    for spec in ({"response_format": tag}, {"guided_grammar": f"start: %json {json.dumps(schema)}"}):
        found = request_constraint(Constrained(structgen=asked, **spec))
        assert found is not None
        made[next(iter(spec)) + "%s"] = found
    compiler = sg.Compiler(sg.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], 256))
    for form, constraint in made.items():
        grammar = constraint.build(compiler)
        form = "%s" if form.startswith(("response", "guided")) else form
        assert [t for t in inside if not harness.verdict(grammar, form % t)] == []
        assert [t for t in outside if harness.verdict(grammar, form % t)] == []


def joined(parts: list[dict]) -> dict:
    """Returns the deltas of one call, assembled as OpenAI's client does: strings are appended."""
    first, *rest = parts
    assert first["function"]["arguments"] == "" and all("id" not in part for part in rest)
    arguments = "".join(part["function"]["arguments"] for part in rest)
    return {**first, "function": {**first["function"], "arguments": arguments}}


def test_arguments_arrive_while_they_are_written() -> None:
    app = create_app(Chats(lambda _: CALL + CALL), tool_style="hermes", temperature=0.0)
    request = {"messages": MESSAGES, "tools": [WEATHER], "tool_choice": "required", "stream": True}
    with TestClient(app) as client:
        deltas = [chunk["choices"][0] for chunk in events(client.post(CHAT, json=request))]
        cut = events(client.post(CHAT, json=request | {"max_tokens": 70, "structgen": {"complete": False}}))
        body = {"input": "x", "tools": [WEATHER], "tool_choice": "required", "stream": True}
        response = client.post(RESPONSES, json=body)
    parts = [c for d in deltas for c in d["delta"].get("tool_calls", [])]
    calls = [joined([part for part in parts if part["index"] == i]) for i in (0, 1)]
    assert calls[0]["id"] != calls[1]["id"]
    assert all(json.loads(c["function"]["arguments"]) == {"city": "Rome"} for c in calls)
    assert [part["index"] for part in parts] == sorted(part["index"] for part in parts)
    # A call that is cut off is reported as far as it goes, as OpenAI does.
    (last,) = cut[-1]["choices"]
    told = joined([c for chunk in cut for c in chunk["choices"][0]["delta"].get("tool_calls", [])])
    assert last["finish_reason"] == "length"
    assert '{"city": "Rome"}'.startswith(told["function"]["arguments"]) and told["function"]["arguments"]
    lines = [json.loads(line[6:]) for line in response.text.split("\n") if line.startswith("data: ")]
    kinds = [line["type"].removeprefix("response.") for line in lines]
    assert kinds.count("function_call_arguments.delta") > 8
    assert kinds.count("function_call_arguments.done") == 2 == kinds.count("output_item.added")
    items = lines[-1]["response"]["output"]
    for at, item in enumerate(items):
        deltas = [
            line["delta"] for line in lines if line["type"].endswith("delta") and line["output_index"] == at
        ]
        assert "".join(deltas) == item["arguments"] == '{"city": "Rome"}' and item["status"] == "completed"


def test_parallel_calls_and_one_call_alone() -> None:
    app = create_app(Chats(lambda _: CALL + CALL), tool_style="hermes", temperature=0.0)
    with TestClient(app) as client:
        request = {"messages": MESSAGES, "tools": [WEATHER], "tool_choice": "required"}
        both = ok(client.post(CHAT, json=request))["choices"][0]["message"]["tool_calls"]
        one = ok(client.post(CHAT, json=request | {"parallel_tool_calls": False}))["choices"][0]["message"]
    assert len(both) == 2 and both[0]["id"] != both[1]["id"]
    assert len(one["tool_calls"]) == 1


def test_no_calls_where_none_are_wanted() -> None:
    app = create_app(Chats(lambda _: CALL), tool_style="hermes", temperature=0.0)
    with TestClient(app) as client:
        request = {"messages": MESSAGES, "tools": [WEATHER], "tool_choice": "none", "max_tokens": 40}
        (choice,) = ok(client.post(CHAT, json=request))["choices"]
    assert "tool_calls" not in choice["message"] and "<tool_call>" not in choice["message"]["content"]


@pytest.mark.parametrize("level", ["auto", "function", "parameter"])
@pytest.mark.parametrize("asked", [None, "function", "parameter"])
@pytest.mark.parametrize("strict", [None, True])
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_strictness_is_that_of_the_server_or_more(level, asked, strict, choice) -> None:
    """The model calls with a parameter that the tool does not have. The call is prevented by a strict level
    of the server, a strict level of the request, or a strict tool."""
    app = create_app(
        Chats(lambda _: CALL.replace("city", "town")),
        tool_style="hermes",
        temperature=0.0,
        tool_strictness=level,
    )
    tool = {"type": "function", "function": {**WEATHER["function"], "strict": strict}}
    request = {"messages": MESSAGES, "tools": [tool], "tool_choice": choice, "max_tokens": 120}
    with TestClient(app) as client:
        (one,) = ok(client.post(CHAT, json={**request, "structgen": {"tool_strictness": asked}}))["choices"]
        wrong = client.post(CHAT, json={**request, "structgen": {"tool_strictness": "strict"}})
    (call, *_) = one["message"]["tool_calls"]
    held = strict or "parameter" in (level, asked)
    assert ("town" in json.loads(call["function"]["arguments"])) == (not held)
    assert wrong.status_code == 400 and "tool_strictness" in wrong.text


def test_a_server_has_a_level_that_there_is() -> None:
    with pytest.raises(ValueError, match="tool_strictness is one of auto, function, parameter, not 'strict'"):
        create_app(Chats(lambda _: ""), tool_strictness="strict")


def test_tools_beside_a_response_format() -> None:
    """With tools and a response format, the model chooses between a call and the JSON."""
    for answer, calls in ((CALL, 1), ('{"a":1}', 0)):
        app = create_app(Chats(lambda _, answer=answer: answer), tool_style="hermes", temperature=0.0)
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        with TestClient(app) as client:
            request = {"messages": MESSAGES, "tools": [WEATHER], "guided_json": schema}
            (choice,) = ok(client.post(CHAT, json=request))["choices"]
        assert len(choice["message"].get("tool_calls", [])) == calls
        if not calls:
            assert choice["message"]["content"] == answer


def test_the_embedded_model_calls_tools(client) -> None:
    for choice in ("auto", "required"):
        request = {
            "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
            "tools": [WEATHER],
        }
        (found,) = ok(client.post(CHAT, json=request | {"tool_choice": choice}))["choices"]
        assert found["finish_reason"] == "tool_calls", found
        (call,) = found["message"]["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": [{"type": "retrieval"}]},
        {"tools": [{"type": "function"}]},
        {"tools": [{"type": "function", "function": {"name": 5}}]},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": 5}}]},
        {"tools": [WEATHER, WEATHER]},
        {"tools": [WEATHER], "tool_choice": "sometimes"},
        {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "other"}}},
        {"tool_choice": "required"},
    ],
    ids=lambda fields: json.dumps(fields)[:50],
)
def test_tools_that_are_refused(client, fields) -> None:
    refused(client.post(CHAT, json={"messages": MESSAGES, **fields}))
