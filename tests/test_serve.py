"""The server's endpoints: what clients send, and what they get back."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
pytest.importorskip("sse_starlette", reason="sse-starlette is not installed: it is in the extra serve")

from starlette.testclient import TestClient

import structgen as sg
from oracles import closed, harness
from oracles.serving import Chats, Script, asked, served
from structgen.cli import serve as cli_serve
from structgen.serve.app import create_app
from structgen.serve.constraints import request_constraint, tool_use, with_tools
from structgen.serve.options import ServerOptions
from structgen.serve.requests import Constrained, OwnOptions

ROOT = Path(__file__).resolve().parents[1]
ORDER = json.loads((ROOT / "examples" / "order.schema.json").read_text())
TEXT = "Maria Lopez ordered 3 oak chairs and 2 desk lamps, ship to Lisbon by 5 March 2027"
MESSAGES = [{"role": "user", "content": TEXT}]
FORMAT = {"type": "json_schema", "json_schema": {"name": "order", "schema": ORDER}}
CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": closed({"city": {"type": "string"}})},
}


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(), raise_server_exceptions=False) as made:
        yield made


def ok(response) -> dict:
    assert response.status_code == 200, response.text
    return response.json()


def refused(response, status: int = 400) -> dict:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert {"message", "type", "param", "code"} <= error.keys()
    assert error["message"] and "Traceback" not in response.text
    return error


def events(response) -> list[dict]:
    """The data of a stream, without the end mark, which is asked for."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line[6:] for line in response.text.split("\n") if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


# ---- chat ----


def test_chat_with_a_schema(client) -> None:
    body = ok(client.post(CHAT, json={"messages": MESSAGES, "response_format": FORMAT}))
    (choice,) = body["choices"]
    assert json.loads(choice["message"]["content"])["customer"] == "Maria Lopez"
    assert (choice["finish_reason"], body["object"]) == ("stop", "chat.completion")
    counts = body["usage"]
    assert counts["total_tokens"] == counts["prompt_tokens"] + counts["completion_tokens"]


def test_a_stream_is_the_answer_in_pieces(client) -> None:
    request = {"messages": MESSAGES, "response_format": FORMAT}
    whole = ok(client.post(CHAT, json=request))
    more = {"stream": True, "stream_options": {"include_usage": True}}
    found = events(client.post(CHAT, json=request | more))
    deltas = [chunk["choices"][0] for chunk in found if chunk["choices"]]
    text = "".join(delta["delta"].get("content") or "" for delta in deltas)
    assert text == whole["choices"][0]["message"]["content"]
    assert deltas[0]["delta"]["role"] == "assistant"
    assert [d["finish_reason"] for d in deltas if d["finish_reason"]] == ["stop"]
    assert (
        found[-1]["choices"] == []
        and found[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]
    )
    assert len({chunk["id"] for chunk in found}) == 1


def test_the_server_writes_what_generate_writes(client) -> None:
    import structgen as sg

    wanted = sg.generate(None, TEXT, ORDER, temperature=1.0, seed=5)
    request = {"messages": MESSAGES, "response_format": FORMAT, "temperature": 1.0, "seed": 5}
    body = ok(client.post(CHAT, json=request))
    assert json.loads(body["choices"][0]["message"]["content"]) == wanted.value
    assert body["usage"]["completion_tokens"] == len(wanted.tokens)
    assert body["usage"]["prompt_tokens"] == wanted.prompt_tokens


def test_a_seed_repeats_n_answers(client) -> None:
    request = {"messages": MESSAGES, "temperature": 1.5, "seed": 3, "n": 4, "guided_regex": "[a-z]{3,8}"}
    first, second = (ok(client.post(CHAT, json=request)) for _ in range(2))
    texts = [[c["message"]["content"] for c in body["choices"]] for body in (first, second)]
    assert texts[0] == texts[1] and len(set(texts[0])) > 1
    assert [c["index"] for c in first["choices"]] == [0, 1, 2, 3]
    other = ok(client.post(CHAT, json=request | {"seed": 4}))
    assert [c["message"]["content"] for c in other["choices"]] != texts[0]
    assert ok(client.post(CHAT, json=request | {"seed": -1}))


def test_log_probabilities_masked_and_not(client) -> None:
    request = {
        "messages": MESSAGES,
        "guided_choice": ["zzz", "yes"],
        "logprobs": True,
        "top_logprobs": 3,
        "structgen": {"masked_logprobs": True},
    }
    body = ok(client.post(CHAT, json=request))
    entries = body["choices"][0]["logprobs"]["content"]
    text = body["choices"][0]["message"]["content"]
    assert b"".join(bytes(e["bytes"]) for e in entries).decode() == text
    for entry in entries:
        assert len(entry["top_logprobs"]) == 3 and entry["logprob"] <= 0
        assert entry["masked_logprob"] >= entry["logprob"] - 1e-6
        assert 1 <= len(entry["masked_top_logprobs"]) <= 3
        best = entry["top_logprobs"]
        assert [e["logprob"] for e in best] == sorted((e["logprob"] for e in best), reverse=True)


def test_bias_decides(client) -> None:
    ids = client.app.state.service.lm.vocabulary.encode
    for word in ("yes", "no"):
        first = ids(word)[0]
        request = {"messages": MESSAGES, "guided_choice": ["yes", "no"], "logit_bias": {str(first): 100}}
        assert ok(client.post(CHAT, json=request))["choices"][0]["message"]["content"] == word


def test_the_requests_of_the_documentation(client) -> None:
    """What docs/server.md hands to curl."""
    page = (ROOT / "docs" / "server.md").read_text()
    body = json.loads(page.split("-d @- <<'EOF'\n")[1].split("    EOF\n")[0])
    text = ok(client.post(CHAT, json=body))["choices"][0]["message"]["content"]
    assert f"`{text}`" in page
    body = json.loads(page.split("-d '")[1].split("'\n")[0])
    assert ok(client.post(COMPLETIONS, json=body))["choices"][0]["text"] in ("sunny", "cloudy")


# ---- constraints, in every form ----


@pytest.mark.parametrize(
    "fields",
    [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"const": 7}}}},
        {"response_format": {"type": "json_object", "schema": {"const": 7}}},
        {"response_format": {"type": "structural_tag", "format": {"type": "const_string", "value": "7"}}},
        {"structured_outputs": {"json": {"const": 7}}},
        {"structured_outputs": {"json": '{"const": 7}'}},
        {"structured_outputs": {"regex": "7"}},
        {"structured_outputs": {"choice": ["7"]}},
        {"structured_outputs": {"grammar": 'root ::= "7"'}},
        {"structured_outputs": {"structural_tag": '{"type": "const_string", "value": "7"}'}},
        {"guided_json": {"const": 7}},
        {"guided_regex": "7"},
        {"guided_choice": ["7"]},
        {"guided_grammar": 'start: "7"'},
        {"grammar": 'root ::= "7"'},
        {"json_schema": {"const": 7}},
    ],
    ids=lambda fields: json.dumps(fields)[:60],
)
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_every_form_of_a_constraint(client, fields, path) -> None:
    prompt = {"messages": MESSAGES} if path == CHAT else {"prompt": TEXT}
    (choice,) = ok(client.post(path, json=prompt | fields))["choices"]
    text = choice["message"]["content"] if path == CHAT else choice["text"]
    assert (text, choice["finish_reason"]) == ("7", "stop")


def test_a_function_that_is_forced_has_the_arguments_that_it_lists(client) -> None:
    """Parameters as pydantic writes a model's schema, which instructor sends: open, with references. The
    embedded model answers with the arguments alone, and it is a call all the same; also as it streams."""
    item = {"type": "object", "properties": {"product": {"type": "string"}, "quantity": {"type": "integer"}}}
    item["required"] = ["product", "quantity"]
    order = {
        "$defs": {"Item": item},
        "type": "object",
        "properties": {
            "customer": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
        },
        "required": ["customer", "items"],
    }
    tools = [
        {"type": "function", "function": {"name": name, "parameters": order}} for name in ("Other", "Order")
    ]
    request = {
        "messages": [{"role": "user", "content": "Order for Ms Chen: two lamps and one chair."}],
        "tools": tools,
        "tool_choice": {"type": "function", "function": {"name": "Order"}},
    }
    body = ok(client.post(CHAT, json=request))
    (call,) = body["choices"][0]["message"]["tool_calls"]
    wanted = [{"product": "lamps", "quantity": 2}, {"product": "chair", "quantity": 1}]
    assert call["function"]["name"] == "Order" and body["usage"]["completion_tokens"] < 50
    assert json.loads(call["function"]["arguments"]) == {"customer": "Ms Chen", "items": wanted}
    text = client.post(CHAT, json={**request, "stream": True}).text
    pieces = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    calls = [c for p in pieces for x in p["choices"] for c in x["delta"].get("tool_calls") or ()]
    assert "".join(c["function"].get("arguments") or "" for c in calls) == call["function"]["arguments"]
    assert [c["function"]["name"] for c in calls if c["function"].get("name")] == ["Order"]


def test_json_object_is_an_object(client) -> None:
    request = {"messages": MESSAGES, "response_format": {"type": "json_object"}, "max_tokens": 30}
    (choice,) = ok(client.post(CHAT, json=request))["choices"]
    assert isinstance(json.loads(choice["message"]["content"]), dict) and choice["finish_reason"] == "stop"


def test_a_budget_is_kept_or_refused_at_once(client) -> None:
    request = {"messages": MESSAGES, "response_format": FORMAT, "temperature": 2.0}
    error = refused(client.post(CHAT, json=request | {"max_tokens": 5}))
    least = error["least_tokens"]
    assert (error["code"], error["param"], error["tokens_left"]) == ("max_tokens_too_small", "max_tokens", 5)
    for limit in (least, least + 1, least + 7):
        body = ok(client.post(CHAT, json=request | {"max_completion_tokens": limit}))
        assert body["choices"][0]["finish_reason"] == "stop" and body["usage"]["completion_tokens"] <= limit
        json.loads(body["choices"][0]["message"]["content"])


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"guided_json": {"type": "objct"}}, "invalid_grammar", "objct"),
        ({"guided_json": {"properties": {"a": {"pattern": "(a)\\1"}}}}, "invalid_grammar", "pattern"),
        ({"guided_json": {"type": "string", "const": 5}}, "unsatisfiable_schema", "exclude each other"),
        ({"guided_json": {"type": "strin"}}, "invalid_grammar", "did you mean 'string'?"),
        ({"guided_json": {"$ref": "http://127.0.0.1:1/x.json"}}, "unsupported_schema", "x.json"),
        ({"guided_json": {"$ref": "file:///etc/passwd"}}, "unsupported_schema", "passwd"),
        ({"guided_grammar": 'start: "a"\n%import ..secrets.X'}, "invalid_grammar", ""),
        ({"guided_regex": "("}, "invalid_grammar", ""),
        ({"guided_choice": []}, "invalid_grammar", ""),
        ({"guided_json": 5}, "invalid_grammar", "schema"),
        ({"guided_json": {"a": 1}, "guided_regex": "x"}, None, "one constraint"),
        ({"response_format": {"type": "json_scheme"}}, None, "json_schema"),
        ({"response_format": {"type": "json_schema"}}, None, "schema"),
        ({"guided_jsn": {}}, "invalid_request", "guided_jsn"),
        ({"functions": [{}]}, "invalid_request", "tools"),
        ({"bad_words": ["x"]}, "invalid_request", "bad_words"),
        ({"allowed_token_ids": [5]}, "invalid_request", "logit_bias"),
        ({"prompt_logprobs": 1}, "invalid_request", "echo"),
        ({"structgen": {"spectulate": "auto"}}, "invalid_request", "spectulate"),
        ({"structgen": {"whitespace": "("}, "guided_json": {}}, "invalid_grammar", ""),
        ({"top_logprobs": 2}, None, "logprobs"),
        ({"logit_bias": {"x": 1}}, None, "logit_bias"),
        ({"logit_bias": {"99999999": 1}}, None, "logit_bias"),
        ({"stop": ""}, "invalid_request", "stop"),
        ({"max_tokens": 0}, None, "max_tokens"),
        ({"n": 0}, "invalid_request", "n"),
        ({"temperature": -1}, "invalid_request", "temperature"),
        ({"messages": []}, "invalid_request", "messages"),
        ({"messages": [{"role": "user", "content": "word " * 3000}]}, "context_length_exceeded", "1024"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            None,
            "image_url",
        ),
        ({"model": "gpt-4o"}, "model_not_found", "embedded"),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_what_is_refused_and_how(client, fields, code, words) -> None:
    response = client.post(CHAT, json={"messages": MESSAGES, **fields})
    error = refused(response, 404 if code == "model_not_found" else 400)
    assert words in error["message"], error
    if code is not None:
        assert error["code"] == code, error


def test_a_refused_schema_has_keyword_and_pointer(client) -> None:
    schema = {"type": "object", "properties": {"a/b": {"type": "string", "pattern": "(a)\\1"}}}
    error = refused(client.post(CHAT, json={"messages": MESSAGES, "guided_json": schema}))
    assert (error["keyword"], error["pointer"]) == ("pattern", "/properties/a~1b")
    grammar = refused(client.post(CHAT, json={"messages": MESSAGES, "grammar": 'root ::= "a"\nx ::= ('}))
    assert grammar["line"] == 2 or grammar["line"] == 3


# ---- bodies ----


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b'{"messages": 1}',
        b'{"messages": [1]}',
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}',
        b'{"messages": [{"role": "user", "content": "x"}], "seed": 1e999}',
        b'{"messages": [{"role": "user", "content": "x"}], "guided_json": {"minimum": NaN}}',
        b'{"messages": [{"role": "user", "content": "x"}], "guided_json": {"const": "\\ud800"}}',
        b'{"messages": [{"role": "user", "content": "x"}], "seed": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"messages": ' + b'{"a":' * 100_000,
        b'{"messages": [{"role": "user", "content": "x"}], "guided_json": '
        + b'{"not":' * 900
        + b"{}"
        + b"}" * 901,
    ],
    ids=range(17),
)
def test_malformed_bodies(client, body) -> None:
    response = client.post(CHAT, content=body, headers={"Content-Type": "application/json"})
    if response.status_code != 200:  # a schema that is merely deep
        refused(response)
    assert client.get("/health").status_code == 200


def test_a_body_without_its_type_is_told_so(client) -> None:
    assert "Content-Type" in refused(client.post(CHAT, content=b'{"messages": []}'))["message"]


def test_unknown_paths_and_methods(client) -> None:
    refused(client.get("/v1/nothing"), 404)
    refused(client.get(CHAT), 405)
    refused(client.get("/v1/models/gpt-4o"), 404)
    assert ok(client.get("/v1/models"))["data"][0]["id"] == "embedded"
    assert ok(client.get("/v1/models/embedded"))["max_model_len"] == 1024
    assert ok(client.get("/openapi.json"))["paths"].keys() >= {CHAT, COMPLETIONS, RESPONSES}
    assert client.get("/docs").status_code == 200


def junk(chance: random.Random, depth: int = 0):
    """A random JSON value."""
    simple = [None, True, False, 0, -1, 1, 3.5, 10**30, "", "x", "auto", "json_schema", "function", [], {}]
    if depth > 2 or chance.random() < 0.5:
        return chance.choice(simple)
    if chance.random() < 0.5:
        return [junk(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    keys = [
        "type", "function", "name", "parameters", "json_schema", "schema", "role", "content", "format", "x",
        "custom", "grammar", "syntax", "definition", "input_schema", "input", "text", "id", "enabled",
        "configs", "allowed_tools", "default_config", "budget_tokens", "arguments", "output",
    ]  # fmt: skip
    return {chance.choice(keys): junk(chance, depth + 1) for _ in range(chance.randint(0, 3))}


FIELDS = [
    "messages", "prompt", "input", "model", "temperature", "top_p", "top_k", "min_p", "n", "seed", "stop",
    "max_tokens", "frequency_penalty", "logit_bias", "stream_options", "logprobs", "top_logprobs", "tools",
    "tool_choice", "parallel_tool_calls", "response_format", "structured_outputs", "guided_json",
    "guided_choice",
    "guided_grammar", "grammar", "json_schema", "structgen", "echo", "best_of", "text",
    "instructions", "metadata",
    "stop_token_ids", "chat_template_kwargs", "max_completion_tokens", "repetition_penalty",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_whatever_a_client_sends_ends_in_an_answer_or_a_4xx(client, seed: int) -> None:
    chance = random.Random(seed)
    for path, own in (
        (CHAT, {"messages": MESSAGES}),
        (COMPLETIONS, {"prompt": "x"}),
        (RESPONSES, {"input": "x"}),
    ):
        limit = {"max_output_tokens": 3} if path == RESPONSES else {"max_tokens": 3}
        body = {**own, **limit, "tools": [WEATHER]} if chance.random() < 0.3 else {**own, **limit}
        for _ in range(chance.randint(1, 3)):
            value = junk(chance)
            if chance.random() < 0.3 and isinstance(body.get("tools"), list):
                body["tools"] = [*body["tools"], value]
            else:
                body[chance.choice(FIELDS)] = value
        response = client.post(path, json=body)
        if response.status_code != 200:
            assert 400 <= response.status_code < 500, (body, response.text)
            refused(response, response.status_code)


# ---- tools ----


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
    """The deltas of one call as OpenAI's client puts them together: strings are appended."""
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
    # What is cut off is told as far as it goes, as OpenAI does it.
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
    """A model that calls with a parameter of its own is held by the stricter level, or by a strict tool."""
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
    """Either a call or the JSON, as the model likes."""
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


# ---- completions ----


def test_completions_echo_and_log_probabilities(client) -> None:
    request = {
        "prompt": [TEXT, "Ana ordered a lamp"],
        "guided_json": ORDER,
        "echo": True,
        "logprobs": 2,
        "n": 2,
    }
    body = ok(client.post(COMPLETIONS, json=request))
    assert [c["index"] for c in body["choices"]] == [0, 1, 2, 3]
    for choice, prompt in zip(
        body["choices"], [TEXT, TEXT, "Ana ordered a lamp", "Ana ordered a lamp"], strict=True
    ):
        assert choice["text"].startswith(prompt + "{")
        logprobs = choice["logprobs"]
        assert logprobs["token_logprobs"][0] is None and all(x <= 0 for x in logprobs["token_logprobs"][1:])
        assert len(logprobs["tokens"]) == len(logprobs["text_offset"]) == len(logprobs["top_logprobs"])


def test_scoring_a_prompt_without_an_answer(client) -> None:
    service = client.app.state.service
    ids = service.lm.encode("<|text|>Ana<|schema|><|answer|>")
    body = ok(client.post(COMPLETIONS, json={"prompt": ids, "echo": True, "logprobs": 0, "max_tokens": 0}))
    (choice,) = body["choices"]
    contexts = [service.lm.start(ids[:k]) for k in range(1, len(ids))]
    rows = service.lm.logprobs(contexts)
    wanted = [float(row[t]) for row, t in zip(rows, ids[1:], strict=True)]
    assert choice["logprobs"]["token_logprobs"][1:] == pytest.approx(wanted, abs=1e-4)
    assert body["usage"]["completion_tokens"] == 0 and choice["finish_reason"] == "length"


@pytest.mark.parametrize("stream", [False, True])
def test_stop_strings_across_tokens(stream) -> None:
    app = create_app(Script(lambda _: "größer als END? und weiter"), temperature=0.0)
    with TestClient(app) as client:
        for stop, keep, text in (
            ("END?", False, "größer als "),
            (["r als", "öß"], False, "gr"),
            ("ß", True, "größ"),
        ):
            request = {
                "prompt": asked("x"),
                "stop": stop,
                "include_stop_str_in_output": keep,
                "stream": stream,
            }
            response = client.post(COMPLETIONS, json=request)
            choices = [c["choices"][0] for c in events(response)] if stream else ok(response)["choices"]
            assert "".join(c["text"] for c in choices) == text
            assert choices[-1]["finish_reason"] == "stop" and choices[-1]["stop_reason"] in stop


def test_texts_that_must_not_end_early() -> None:
    app = create_app(Script(lambda _: "abcd"), temperature=0.0)
    with TestClient(app) as client:

        def ask(**more) -> dict:
            body = ok(client.post(COMPLETIONS, json={"prompt": asked("x"), "max_tokens": 9, **more}))
            assert body["usage"]["completion_tokens"] <= 9
            return body

        for least in range(9):
            body = ask(min_tokens=least)
            text, reason = body["choices"][0]["text"], body["choices"][0]["finish_reason"]
            assert text.startswith("abcd") and len(text) == max(4, least) and reason == "stop"
            assert body["usage"]["completion_tokens"] == len(text) + 1
        # The end token counts, and has no text.
        body = ask(ignore_eos=True)
        assert (body["choices"][0]["text"], body["choices"][0]["finish_reason"]) == ("abcd", "length")
        assert body["usage"]["completion_tokens"] == 9
        assert ask(min_tokens=3, stop_token_ids=[ord("b")])["choices"][0]["text"][:1] == "a"
        for fields in (
            {"min_tokens": 2, "guided_regex": "a+"},
            {"ignore_eos": True, "guided_regex": "a+"},
            {"min_tokens": 10},
            {"min_tokens": -1},
            {"min_tokens": 2, "structgen": {"sampling": {}}},
        ):
            refused(client.post(COMPLETIONS, json={"prompt": asked("x"), "max_tokens": 9, **fields}))
        refused(client.post(CHAT, json={"messages": MESSAGES, "tools": [WEATHER], "min_tokens": 2}))


def test_length_and_usage_are_exact() -> None:
    app = create_app(Script(lambda _: "abcdefgh"), temperature=0.0)
    with TestClient(app) as client:
        for limit, text, reason, tokens in (
            (3, "abc", "length", 3),
            (8, "abcdefgh", "length", 8),
            (9, "abcdefgh", "stop", 9),
        ):
            body = ok(client.post(COMPLETIONS, json={"prompt": asked("x"), "max_tokens": limit}))
            assert (body["choices"][0]["text"], body["choices"][0]["finish_reason"]) == (text, reason)
            assert body["usage"]["completion_tokens"] == tokens and body["usage"]["prompt_tokens"] == 2


def test_penalties_and_cuts_change_the_draw() -> None:
    app = create_app(Script(lambda _: "aaaaaaaaaaaa"), temperature=0.0)
    with TestClient(app) as client:

        def text(**fields):
            return ok(client.post(COMPLETIONS, json={"prompt": asked("x"), "max_tokens": 12, **fields}))[
                "choices"
            ][0]["text"]

        assert text() == "a" * 12
        assert text(frequency_penalty=2.0, presence_penalty=2.0) != "a" * 12
        assert text(temperature=1.0, min_p=0.5, seed=1) == text(temperature=1.0, top_k=1, seed=2) == "a" * 12
        assert text(temperature=1.0, top_p=0.0, seed=3) == "a" * 12
        hot = ok(
            client.post(
                COMPLETIONS, json={"prompt": asked("x"), "temperature": 50, "seed": 1, "max_tokens": 30}
            )
        )
        assert set(hot["choices"][0]["text"]) != {"a"}


# ---- responses ----


def test_responses(client) -> None:
    text = {"format": {"type": "json_schema", "name": "order", "schema": ORDER}}
    for given in (TEXT, [{"role": "user", "content": [{"type": "input_text", "text": TEXT}]}]):
        body = ok(client.post(RESPONSES, json={"input": given, "text": text}))
        assert (body["object"], body["status"]) == ("response", "completed")
        (item,) = body["output"]
        assert json.loads(item["content"][0]["text"])["customer"] == "Maria Lopez"
        assert body["usage"]["total_tokens"] == body["usage"]["input_tokens"] + body["usage"]["output_tokens"]
    refused(client.post(RESPONSES, json={"input": TEXT, "previous_response_id": "resp_1"}))
    refused(client.post(RESPONSES, json={"input": TEXT, "text": text, "max_output_tokens": 3}))
    refused(client.post(RESPONSES, json={"input": [{"type": "input_image"}]}))


def test_responses_as_events(client) -> None:
    flat = {"type": "function", **WEATHER["function"]}
    request = {
        "input": "What is the weather in Paris?",
        "tools": [flat],
        "tool_choice": "required",
        "stream": True,
    }
    response = client.post(RESPONSES, json=request)
    found = [json.loads(line[6:]) for line in response.text.split("\n") if line.startswith("data: ")]
    names = [line[7:] for line in response.text.split("\n") if line.startswith("event: ")]
    assert names == [event["type"] for event in found]
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    assert names[:2] == ["response.created", "response.in_progress"] and names[-1] == "response.completed"
    (item,) = found[-1]["response"]["output"]
    assert (item["type"], item["name"], json.loads(item["arguments"])) == (
        "function_call",
        "get_weather",
        {"city": "Paris"},
    )


# ---- structgen's own ----


@pytest.mark.parametrize("method", ["cars", "smc", "local", "auto"])
def test_sampling(client, method) -> None:
    request = {
        "messages": MESSAGES, "response_format": FORMAT, "n": 3, "temperature": 1.0, "seed": 2,
        "structgen": {"sampling": {"method": method}},
    }  # fmt: skip
    body = ok(client.post(CHAT, json=request))
    about = body["structgen"]
    assert about["law"] in ("exact", "weighted", "approximate", "local") and about["method"]
    low, high = about["log_bracket"]
    assert low is None or high is None or low <= high <= 1e-6
    assert sum(c["structgen"]["weight"] for c in body["choices"]) == pytest.approx(1.0)
    for choice in body["choices"]:
        json.loads(choice["message"]["content"])
    again = ok(client.post(CHAT, json=request))
    assert [c["message"] for c in again["choices"]] == [c["message"] for c in body["choices"]]


def test_speculation_writes_the_same(client) -> None:
    request = {"messages": MESSAGES, "response_format": FORMAT, "temperature": 0.8, "seed": 7, "n": 2}
    plain = ok(client.post(CHAT, json=request))
    for drafters in ("auto", ["grammar", "lookup"]):
        drafted = ok(client.post(CHAT, json=request | {"structgen": {"speculate": drafters}}))
        assert [c["message"] for c in drafted["choices"]] == [c["message"] for c in plain["choices"]]
        assert drafted["usage"]["completion_tokens"] == plain["usage"]["completion_tokens"]
    refused(client.post(CHAT, json=request | {"structgen": {"speculate": ["nobody"]}}))
    refused(client.post(CHAT, json=request | {"min_p": 0.1, "structgen": {"speculate": "auto"}}))


def test_sampling_has_a_time_limit_its_wait_included() -> None:
    lm = Script(lambda _: "a" * 1000, seconds=0.02)
    app = create_app(lm, request_seconds=0.5)
    request = {"prompt": asked("x"), "guided_regex": "[a-z]{500}", "seed": 1}
    with TestClient(app) as client:

        def ask(_index: int) -> tuple[Any, float]:
            begin = time.perf_counter()
            body = request | {"structgen": {"sampling": {"method": "cars"}}}
            return client.post(COMPLETIONS, json=body), time.perf_counter() - begin

        for response, seconds in harness.together(ask, 3):
            assert refused(response, 408)["code"] == "request_timeout" and seconds < 5


def test_reads_for_confidence_end_within_the_time_of_a_request() -> None:
    """They read on behind the deadline, and the answer was an error."""
    numbers = json.dumps(list(range(100, 140)), separators=(",", ":"))
    lm = Script(lambda _: numbers, seconds=0.005)
    numerals = {"type": "array", "items": {"type": "integer"}}
    request = {"prompt": asked("x"), "json_schema": numerals, "max_tokens": 500}
    with TestClient(create_app(lm, request_seconds=6.0)) as client:
        body = request | {"structgen": {"confidence": 4096, "whitespace": "compact"}}
        (choice,) = ok(client.post(COMPLETIONS, json=body))["choices"]
        fields = choice["structgen"]["fields"]
        assert [one["text"] for one in fields[:2]] == ["100", "101"] and len(fields) >= 40
        assert all(0 <= one["low"] <= one["high"] <= 1 for one in fields)
        assert fields[0]["low"] > 0 and (fields[-1]["low"], fields[-1]["high"]) == (0, 1)
        read = len(lm.batches)
        time.sleep(0.3)
        assert len(lm.batches) == read


def test_an_application_that_is_never_told_to_start() -> None:
    client = TestClient(create_app(Script(lambda _: "fine"), temperature=0.0))  # no lifespan
    assert client.get("/health").status_code == 200
    assert ok(client.post(COMPLETIONS, json={"prompt": asked("x")}))["choices"][0]["text"] == "fine"
    client.app.state.service.close()


# ---- load, limits, failures ----


def test_keys() -> None:
    app = create_app(Script(lambda _: "x"), api_keys=("right", "other"), temperature=0.0)
    with TestClient(app) as client:
        for header in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "right"},
            {"Authorization": "Bearer "},
        ):
            error = refused(client.post(COMPLETIONS, json={"prompt": asked("x")}, headers=header), 401)
            assert error["code"] == "invalid_api_key"
        refused(client.get("/metrics"), 401)
        assert client.get("/health").status_code == 200
        for key in ("right", "other"):
            header = {"Authorization": f"Bearer {key}"}
            ok(client.post(COMPLETIONS, json={"prompt": asked("x")}, headers=header))


@pytest.mark.parametrize(
    ("arguments", "hosts"),
    [
        ([], ("127.0.0.1", "[::1]", "localhost")),
        (["--allowed-host", "box.lan"], ("127.0.0.1", "[::1]", "localhost", "box.lan")),
        (["--host", "0.0.0.0"], ()),
        (["--host", "0.0.0.0", "--allowed-host", "box.lan"], ("box.lan",)),
    ],
)
def test_hosts_by_default(arguments: list[str], hosts: tuple[str, ...]) -> None:
    parser = argparse.ArgumentParser()
    cli_serve.add_arguments(parser)
    assert cli_serve.settings(parser.parse_args(arguments))["hosts"] == hosts


def test_the_command_has_every_option_with_its_default(monkeypatch) -> None:
    monkeypatch.delenv("STRUCTGEN_API_KEY", raising=False)
    parser = argparse.ArgumentParser()
    cli_serve.add_arguments(parser)
    found = cli_serve.settings(parser.parse_args([]))
    assert found.keys() == ServerOptions.__dataclass_fields__.keys()
    assert ServerOptions(**found | {"hosts": ()}) == ServerOptions()
    given = parser.parse_args(["--cache-megabytes", "3", "--mask-seconds", "0.5", "--on-limit", "error"])
    found = cli_serve.settings(given)
    assert (found["cache_bytes"], found["mask_seconds"], found["on_limit"]) == (3 << 20, 0.5, "error")


def test_hosts() -> None:
    """A page of another site, whose name was made to lead here, is not answered (DNS rebinding)."""
    app = create_app(Script(lambda _: "x"), hosts=("127.0.0.1", "[::1]", "localhost"), temperature=0.0)
    with TestClient(app, base_url="http://localhost:8000") as client:
        for host in ("localhost:8000", "LOCALHOST", "127.0.0.1:1", "[::1]:8000", "[::1]"):
            ok(client.post(COMPLETIONS, json={"prompt": asked("x")}, headers={"Host": host}))
        for host in ("evil.example", "evil.example:8000", "localhost.evil.example", "[::2]:8000", ""):
            for path in (COMPLETIONS, "/", "/docs", "/health", "/playground/api/check"):
                error = refused(client.post(path, json={"prompt": "x"}, headers={"Host": host}), 403)
                assert error["code"] == "host_not_allowed"


def test_large_bodies() -> None:
    app = create_app(Script(lambda _: "x", context=20_000_000), body_bytes=11 << 20, temperature=0.0)
    with TestClient(app) as client:
        properties = {f"p{i}": {"type": "string", "description": "d" * 900} for i in range(10_000)}
        body = {
            "prompt": asked("x"),
            "guided_json": {"properties": properties, "required": ["p1"]},
            "max_tokens": 100,
        }
        assert len(json.dumps(body)) > 9 << 20
        response = client.post(COMPLETIONS, json=body)
        assert response.status_code in (200, 400), response.text[:300]
        error = refused(client.post(COMPLETIONS, content=b"x" * (12 << 20)), 413)
        assert error["code"] == "request_too_large"


def test_answers_share_forwards_and_join_between_steps() -> None:
    lm = Script(lambda _: "a" * 30, seconds=0.002)
    app = create_app(lm, temperature=0.0)
    with TestClient(app) as client:

        def ask(number: int) -> None:
            time.sleep(number * 0.004)
            ok(client.post(COMPLETIONS, json={"prompt": asked(f"{number}")}))

        harness.together(ask, 16)
    assert max(lm.batches) > 4 and sum(lm.batches) < 16 * 40


@pytest.mark.parametrize(
    "body",
    [{"prompt": asked("long"), "n": 24}, {"prompt": [asked("long")] * 40, "n": 4}],
    ids=["n", "prompts"],
)
def test_one_request_does_not_take_every_place(body: dict) -> None:
    """Neither many answers to one prompt nor many prompts keep another client waiting."""
    over = threading.Event()

    def text(prompt: str) -> str:
        return "b" if "short" in prompt else "" if over.is_set() else "a" * 3_000

    lm = Script(text, seconds=0.001)
    app = create_app(lm, temperature=0.0, sequences=8)
    with TestClient(app) as client, ThreadPoolExecutor() as pool:
        large = pool.submit(client.post, COMPLETIONS, json={**body, "max_tokens": 400})
        while len(lm.batches) < 20:
            time.sleep(0.005)
        before = len(lm.batches)
        for _ in range(3):
            ok(client.post(COMPLETIONS, json={"prompt": asked("short")}))
        assert len(lm.batches) - before < 200 and not large.done()
        over.set()


def test_a_large_request_that_waits_holds_up_no_small_one(monkeypatch) -> None:
    """Small ones waited as long as it did, behind another large one; and it comes in, however many small ones
    there are."""
    monkeypatch.setattr("structgen.serve.engine._STARVING", 0.1)
    over, done = threading.Event(), []
    app = create_app(
        Script(lambda p: "" if over.is_set() else "a" * 9_000 if "long" in p else "b" * 20, seconds=0.001),
        temperature=0.0,
        sequences=8,
    )
    with TestClient(app) as client, ThreadPoolExecutor(5) as pool:

        def large(name: str) -> None:
            ok(client.post(COMPLETIONS, json={"prompt": asked(name), "n": 8, "max_tokens": 8_000}))
            done.append(name)

        large_ones = [pool.submit(large, "long")]
        time.sleep(0.1)
        large_ones.append(pool.submit(large, "late"))
        time.sleep(0.3)
        begin = time.perf_counter()
        for _ in range(3):
            ok(client.post(COMPLETIONS, json={"prompt": asked("short")}))
        assert time.perf_counter() - begin < 5 and not done
        stop = threading.Event()

        def small() -> None:
            while not stop.is_set():
                ok(client.post(COMPLETIONS, json={"prompt": asked("short")}))

        for _ in range(3):
            pool.submit(small)
        over.set()
        wait(large_ones, 20)
        stop.set()
    assert sorted(done) == ["late", "long"]


def test_a_limit_that_no_text_meets_is_taken_where_completeness_is_not_asked_for() -> None:
    app = create_app(Script(lambda _: '"abcdefgh"'), temperature=0.0)
    with TestClient(app) as client:
        body = {"prompt": asked("x"), "guided_json": {"type": "string", "minLength": 8}, "max_tokens": 3}
        assert refused(client.post(COMPLETIONS, json=body))["code"] == "max_tokens_too_small"
        done = ok(client.post(COMPLETIONS, json={**body, "structgen": {"complete": False}}))
        assert done["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    "name",
    ["response_fromat", "responseFormat", "response_schema", "output_format", "schema", "format", "json",
     "gramar", "ebnf", "structuredOutputs", "guidedjson", "guided_\ud800", "regex"],
)  # fmt: skip
def test_a_mistyped_constraint_does_not_become_none(client: TestClient, name: str) -> None:
    content = json.dumps({"messages": MESSAGES, name: {"type": "object"}})
    headers = {"Content-Type": "application/json"}
    error = refused(client.post("/v1/chat/completions", content=content, headers=headers))
    assert error["code"] == "invalid_request" and "no constraint that this server knows" in error["message"]


@pytest.mark.parametrize(
    ("path", "field", "words"),
    [
        (CHAT, {"tool": [WEATHER]}, "did you mean 'tools'?"),
        (CHAT, {"tool_chioce": "required"}, "did you mean 'tool_choice'?"),
        (CHAT, {"strcutgen": {"whitespace": "flexible"}}, "did you mean 'structgen'?"),
        (CHAT, {"max_token": 5}, "did you mean 'max_tokens'?"),
        (CHAT, {"guided_jsn": {}}, "did you mean 'guided_json'?"),
        (CHAT, {"text": {"format": {"type": "json_object"}}}, "use 'response_format'"),
        (CHAT, {"extra_body": {"guided_json": {}}}, "beside the other fields"),
        (CHAT, {"max_tokens": "5"}, "'max_tokens' must be a whole number"),
        (CHAT, {"tools": [{"function": {"name": "f", "paramters": {}}}]}, "did you mean 'parameters'?"),
        (COMPLETIONS, {"tools": [WEATHER]}, "a field of /v1/chat/completions"),
        (RESPONSES, {"text": {"fromat": {"type": "json_object"}}}, "did you mean 'format'?"),
        (RESPONSES, {"logprobs": True}, "a field of /v1/chat/completions"),
    ],
)  # fmt: skip
def test_a_field_that_is_misspelled_or_misplaced_is_refused(
    client: TestClient, path: str, field: dict, words: str
) -> None:
    asks = {CHAT: {"messages": MESSAGES}, COMPLETIONS: {"prompt": asked("x")}, RESPONSES: {"input": "x"}}
    error = refused(client.post(path, json={**asks[path], **field}))
    assert words in error["message"], error


def test_fields_of_openai_that_change_nothing_are_taken(client: TestClient) -> None:
    shared = {
        "user": "u",
        "store": True,
        "metadata": {"a": "b"},
        "top_a": 0.1,
        "safety_identifier": "s",
        "service_tier": "auto",
        "prompt_cache_key": "k",
        "max_tokens": 3,
        "repeat_penalty": 1.1,
    }
    chat = {"messages": MESSAGES, "reasoning_effort": "low", "verbosity": "low", "prediction": {}, **shared}
    ok(client.post(CHAT, json=chat))
    del shared["max_tokens"]
    more = {"include": [], "max_tool_calls": 3, "reasoning": {}, "truncation": "auto", "max_output_tokens": 3}
    ok(client.post(RESPONSES, json={"input": "x", "text": {"verbosity": "low"}, **more, **shared}))


def test_a_prompt_that_must_be_too_long_is_not_read() -> None:
    lm = Script(lambda _: "x", context=100)
    lm.start = lambda prompt: pytest.fail("the prompt was read")  # type: ignore[assignment]
    with TestClient(create_app(lm, temperature=0.0)) as client:
        error = refused(client.post(COMPLETIONS, json={"prompt": "x" * 2_000}))
        assert error["code"] == "context_length_exceeded" and "2000 characters" in error["message"]


def test_connections_do_not_wait_for_acknowledgements() -> None:
    with cli_serve._listen("127.0.0.1", 0) as listening:
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_long_prompt_does_not_hold_up_others() -> None:
    lm = Script(lambda _: "abc", seconds=0.001)
    app = create_app(lm, temperature=0.0, prefill=16)
    with TestClient(app) as client, ThreadPoolExecutor() as pool:
        long = pool.submit(client.post, COMPLETIONS, json={"prompt": asked("y" * 3_000)})
        while not lm.batches:
            time.sleep(0.001)
        ok(client.post(COMPLETIONS, json={"prompt": asked("x")}))
        assert not long.done() and ok(long.result())


def test_a_full_queue_says_when_to_come_back() -> None:
    app = create_app(Script(lambda _: "a" * 2000, seconds=0.002), sequences=1, queue=1, temperature=0.0)
    with TestClient(app) as client:
        body = {"prompt": asked("x"), "max_tokens": 40}
        responses = harness.together(lambda _: client.post(COMPLETIONS, json=body), 6)
    codes = sorted(r.status_code for r in responses)
    assert codes[0] == 200 and 429 in codes, codes
    for response in responses:
        if response.status_code == 429:
            refused(response, 429)
            assert int(response.headers["Retry-After"]) >= 1


def test_a_request_has_a_time_limit() -> None:
    app = create_app(Script(lambda _: "a" * 10_000, seconds=0.01), request_seconds=0.2, temperature=0.0)
    with TestClient(app) as client:
        assert (
            refused(client.post(COMPLETIONS, json={"prompt": asked("x")}), 408)["code"] == "request_timeout"
        )


def test_a_failing_model_ends_requests_and_not_the_server() -> None:
    lm = Script(lambda _: "fine")
    app = create_app(lm, temperature=0.0)
    with TestClient(app, raise_server_exceptions=False) as client:
        lm.fail = RuntimeError("secret detail")
        response = client.post(COMPLETIONS, json={"prompt": asked("x")})
        error = refused(response, 500)
        assert error["type"] == "server_error" and "secret" not in response.text
        streamed = client.post(COMPLETIONS, json={"prompt": asked("x"), "stream": True})
        assert "error" in streamed.text and "secret" not in streamed.text
        lm.fail = None
        assert ok(client.post(COMPLETIONS, json={"prompt": asked("x")}))["choices"][0]["text"] == "fine"


def test_a_mask_that_fails_ends_its_request_alone(monkeypatch) -> None:
    from structgen.errors import BudgetExceeded
    from structgen.serve.sequence import Answer

    fill = Answer.fill

    def broken(self: Answer) -> None:
        fill(self)
        if (
            self.job.plan.grammar is not None
            and "b" in str(self.job.plan.grammar.source)
            and self.position == 2
        ):
            self.error = BudgetExceeded("too much")

    monkeypatch.setattr(Answer, "fill", broken)
    monkeypatch.setattr(Answer, "fill_known", lambda self: False)
    app = create_app(Script(lambda _: "aaaa", seconds=0.002), temperature=0.0)
    with TestClient(app) as client:
        bodies = [{"prompt": asked("x"), "guided_regex": pattern} for pattern in ("[a]{4}", "[ab]{4}")]
        fine, broken = harness.together(lambda i: client.post(COMPLETIONS, json=bodies[i]), 2)
        assert ok(fine)["choices"][0]["text"] == "aaaa"
        refused(broken)


def test_a_slow_mask_holds_up_nobody_else(monkeypatch) -> None:
    from structgen.serve.sequence import Answer

    fill = Answer.fill

    def slow(self: Answer) -> None:
        if "b" in str(self.job.plan.grammar.source):
            time.sleep(1.0)
        fill(self)

    monkeypatch.setattr(Answer, "fill", slow)
    monkeypatch.setattr(Answer, "fill_known", lambda self: False)
    app = create_app(Script(lambda _: "aaaa"), temperature=0.0, mask_seconds=0.3)
    with TestClient(app) as client, ThreadPoolExecutor() as pool:
        body = {"prompt": asked("x"), "guided_regex": "[ab]{4}"}
        slow_one = pool.submit(client.post, COMPLETIONS, json=body)
        time.sleep(0.1)
        begin = time.perf_counter()
        ok(client.post(COMPLETIONS, json={"prompt": asked("y"), "guided_regex": "[a]{4}"}))
        assert time.perf_counter() - begin < 0.8
        assert refused(slow_one.result())["code"] == "grammar_too_costly"


def test_a_compile_that_hangs_is_given_up(monkeypatch) -> None:
    from structgen import Compiler

    regex, release = Compiler.regex, threading.Event()

    def hanging(self, pattern, **options):
        if pattern == "hang":
            release.wait(20)
        return regex(self, pattern, **options)

    monkeypatch.setattr(Compiler, "regex", hanging)
    app = create_app(Script(lambda _: "aaaa"), temperature=0.0, compile_seconds=0.3, compile_workers=1)
    with TestClient(app) as client:
        for _ in range(2):
            error = refused(client.post(COMPLETIONS, json={"prompt": asked("x"), "guided_regex": "hang"}))
            assert error["code"] == "grammar_too_costly"
            ok(client.post(COMPLETIONS, json={"prompt": asked("x"), "guided_regex": "[a]{4}"}))
        release.set()


def test_known_grammars_do_not_wait_for_new_ones(monkeypatch) -> None:
    from structgen import Compiler

    regex, release = Compiler.regex, threading.Event()

    def hanging(self, pattern, **options):
        if pattern.startswith("hang"):
            release.wait(20)
        return regex(self, pattern, **options)

    monkeypatch.setattr(Compiler, "regex", hanging)
    app = create_app(Script(lambda _: "aaaa"), temperature=0.0, compile_workers=2)
    with TestClient(app) as client, ThreadPoolExecutor() as pool:
        request = {"prompt": asked("x"), "guided_regex": "[a]{4}"}
        ok(client.post(COMPLETIONS, json=request))
        for i in range(4):
            body = {"prompt": asked("x"), "guided_regex": f"hang{i}", "max_tokens": 9}
            pool.submit(client.post, COMPLETIONS, json=body)
        time.sleep(0.1)
        begin = time.perf_counter()
        ok(client.post(COMPLETIONS, json=request))
        ok(client.post(COMPLETIONS, json={"prompt": asked("x")}))
        assert time.perf_counter() - begin < 5
        release.set()


# ---- a real server ----


def test_two_hundred_clients_slow_readers_and_leavers() -> None:
    httpx = pytest.importorskip("httpx2", reason="httpx2 is not installed: it is in the extra test")
    lm = Script(lambda prompt: "answer to " + prompt)

    async def ask(client, number: int) -> int:
        prompt = f"question {number}"
        body = {"prompt": asked(prompt), "stream": number % 2 == 0, "temperature": 0}
        if number % 10 == 0:  # leaves in mid-stream
            async with client.stream("POST", COMPLETIONS, json=body) as response:
                async for _ in response.aiter_lines():
                    return response.status_code
        if number % 10 == 2:  # reads slowly
            text = ""
            async with client.stream("POST", COMPLETIONS, json=body) as response:
                async for line in response.aiter_lines():
                    await asyncio.sleep(0.01)
                    if line.startswith("data: {"):
                        text += json.loads(line[6:])["choices"][0]["text"]
            assert text == f"answer to {prompt}"
            return response.status_code
        response = await client.post(COMPLETIONS, json=body)
        if not body["stream"]:
            assert response.json()["choices"][0]["text"] == f"answer to {prompt}"
        return response.status_code

    async def everyone(address: str) -> list[int]:
        limits = httpx.Limits(max_connections=250)
        async with httpx.AsyncClient(base_url=address, limits=limits, timeout=60) as client:
            return await asyncio.gather(*(ask(client, i) for i in range(200)))

    with served(lm, sequences=64) as address:
        codes = asyncio.run(everyone(address))
        assert codes == [200] * 200
        metrics = httpx.get(f"{address}/metrics").text
        assert "structgen_waiting_requests 0.0" in metrics
        assert 'structgen_requests_total{endpoint="/v1/completions",status="200"} 200.0' in metrics


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_ends_when_its_client_leaves(stream) -> None:
    httpx = pytest.importorskip("httpx2", reason="httpx2 is not installed: it is in the extra test")
    lm = Script(lambda _: "a" * 50_000, seconds=0.005)
    with served(lm, max_tokens=50_000) as address:
        body = {"prompt": asked("x"), "stream": stream, "temperature": 0}
        with pytest.raises(httpx.TimeoutException):
            if stream:
                with httpx.stream("POST", address + COMPLETIONS, json=body, timeout=0.3) as response:
                    for _, _ in zip(range(5), response.iter_lines(), strict=False):
                        pass
                raise httpx.ReadTimeout("left")
            httpx.post(address + COMPLETIONS, json=body, timeout=0.3)
        until = time.monotonic() + 5
        while "structgen_live_answers 0.0" not in httpx.get(f"{address}/metrics").text:
            assert time.monotonic() < until, "the engine still writes for a client that left"
            time.sleep(0.05)


def test_the_command_serves_and_finishes_what_it_began(tmp_path) -> None:
    """SIGTERM in mid-stream: the stream ends as it would have, then the process."""
    httpx = pytest.importorskip("httpx2", reason="httpx2 is not installed: it is in the extra test")
    command = [sys.executable, "-m", "structgen", "serve", "--port", "0", "--name", "mine"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if "served at" in line)
        address = line.split()[-1]
        assert line.startswith("mine is served at http://127.0.0.1:")
        body = {"messages": MESSAGES, "guided_regex": "[a-z ]{300,400}", "stream": True, "model": "mine"}
        texts = []
        with httpx.stream("POST", f"{address}/chat/completions", json=body, timeout=60) as response:
            for number, data in enumerate(response.iter_lines()):
                if number == 8:
                    process.terminate()
                if data.startswith("data: {"):
                    (choice,) = json.loads(data[6:])["choices"]
                    texts.append(choice["delta"].get("content") or "")
                    reason = choice["finish_reason"]
        assert reason == "stop" and 300 <= len("".join(texts)) <= 400
        assert process.wait(30) in (0, -15)
    finally:
        process.kill()
        assert "Traceback" not in process.stderr.read()


def test_the_command_names_what_is_wrong(capsys) -> None:
    from structgen.cli import main

    for arguments, words in (
        (["--sequences", "0"], "sequences"),
        (["--api-key", ""], "API key"),
        (["--host", "256.0.0.1"], "cannot listen"),
        (["./no-such-folder", "--port", "0"], "no such folder"),
        (["no-such.gguf", "--port", "0"], "no such file"),
        (["--mask-work", "0"], "--mask-work"),
        (["--grammar-megabytes", "0"], "--grammar-megabytes"),
        ([str(ROOT / "docs"), "--port", "0"], "no config.json"),
    ):
        assert main(["serve", *arguments]) == 2
        err = capsys.readouterr().err
        assert words in err.splitlines()[-1] and "Traceback" not in err


def test_a_gguf_file(tmp_path) -> None:
    """The embedded model's weights in llama.cpp's format write what the embedded model writes."""
    pytest.importorskip("transformers", reason="transformers is not installed: it is in the extra hf")
    pytest.importorskip("accelerate", reason="accelerate is not installed: it is in the extra test")
    pytest.importorskip("gguf", reason="gguf is not installed: it is in the extra test")
    from structgen.lm import embedded
    from tests.hosts import gguf_model

    gguf_model.write(tmp_path / "tiny.gguf")
    with TestClient(create_app(str(tmp_path / "tiny.gguf"), temperature=0.0)) as client:
        assert ok(client.get("/v1/models"))["data"][0]["id"] == "tiny.gguf"
        body = {"prompt": embedded.format_prompt(TEXT, ORDER), "guided_json": ORDER, "max_tokens": 200}
        written = json.loads(ok(client.post(COMPLETIONS, json=body))["choices"][0]["text"])
    assert written["customer"] == "Maria Lopez" and written["items"][0]["quantity"] == 3


def test_a_model_of_transformers_with_its_chat_template(tmp_path) -> None:
    """The same weights by another road: chats go through the tokenizer's template."""
    pytest.importorskip("transformers", reason="transformers is not installed: it is in the extra hf")
    from structgen.lm import embedded

    folder = tmp_path / "tiny"
    shutil.copytree(embedded.path("target"), folder)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["chat_template"] = (
        "{%- for m in messages %}{{ m.role }}: {{ m.content }}{% if m.tool_calls %}"
        "{% for c in m.tool_calls %}<tool_call>{{ c.function.arguments | tojson }}</tool_call>{% endfor %}"
        "{% endif %}\n{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    app = create_app(str(folder), temperature=0.0)
    service = app.state.service
    assert (service.name, service.tool_style, service.embedded) == ("tiny", "hermes", False)
    call = {
        "id": "a",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'},
    }
    messages = [
        *MESSAGES,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "12 degrees"}]},
    ]
    with TestClient(app) as client:
        request = {"messages": messages, "tools": [WEATHER], "tool_choice": "required", "max_tokens": 80}
        both = [ok(client.post(CHAT, json=request)) for _ in range(2)]
        (choice,) = both[0]["choices"]
        assert choice["finish_reason"] == "tool_calls"
        json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])
        assert both[1]["usage"]["prompt_tokens_details"]["cached_tokens"] > 20
        go_on = {
            "messages": [*MESSAGES, {"role": "assistant", "content": "{"}],
            "continue_final_message": True,
        }
        ok(client.post(CHAT, json=go_on | {"max_tokens": 3, "add_generation_prompt": False}))
        refused(client.post(CHAT, json={"messages": MESSAGES, "chat_template_kwargs": {"tokenize": False}}))
