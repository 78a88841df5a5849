"""The endpoints of a server: the requests of clients, and the answers."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
pytest.importorskip("sse_starlette", reason="sse-starlette is not installed: it is in the extra serve")

from starlette.testclient import TestClient

import structgen as sg
from oracles import harness
from oracles.bodies import junk
from oracles.sampling_oracle import DRAWING
from oracles.serving import (
    CHAT,
    COMPLETIONS,
    FORMAT,
    MESSAGES,
    ORDER,
    RESPONSES,
    ROOT,
    TEXT,
    WEATHER,
    Script,
    asked,
    events,
    ok,
    refused,
)
from structgen.serve.app import create_app

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
    """The requests that docs/server.md sends with curl."""
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
    """instructor sends the parameters as an open schema with references, in pydantic's form. The embedded
    model writes only the arguments, and the answer is still a call, streamed or not."""
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
    if response.status_code != 200:  # a schema that is only deep may be accepted
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
        # The end token counts as a token and has no text.
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


# ---- structgen's own endpoints ----


@pytest.mark.parametrize("method", [*DRAWING, "auto"])
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
    """Reads for confidence end within the deadline of a request. They once went on behind the deadline, and
    the answer was an error."""
    numbers = json.dumps(list(range(100, 140)), separators=(",", ":"))
    lm = Script(lambda _: numbers, seconds=0.005)
    numerals = {"type": "array", "items": {"type": "integer"}, "minItems": 40}
    request = {"prompt": asked("x"), "json_schema": numerals, "max_tokens": 500, "seed": 1}
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
    # a client without lifespan events
    client = TestClient(create_app(Script(lambda _: "fine"), temperature=0.0))
    assert client.get("/health").status_code == 200
    assert ok(client.post(COMPLETIONS, json={"prompt": asked("x")}))["choices"][0]["text"] == "fine"
    client.app.state.service.close()
