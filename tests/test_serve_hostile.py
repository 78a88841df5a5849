"""The server under bodies that are made to be expensive, and under grammars whose masks are."""

from __future__ import annotations

import json
import time

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("sse_starlette")

from starlette.testclient import TestClient

from structgen.serve.app import create_app
from tests.test_serve import CHAT, COMPLETIONS, MESSAGES, RESPONSES, ok, refused

JSON = {"Content-Type": "application/json"}
CHAT_1 = {"messages": MESSAGES, "max_tokens": 1}


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(), raise_server_exceptions=False) as made:
        yield made


BODIES = {
    "unknown fields": (CHAT, {**CHAT_1, **{f"f{i}": 1 for i in range(200_000)}}),
    "fields of the extension": (CHAT, {**CHAT_1, "structgen": {f"f{i}": 1 for i in range(300_000)}}),
    "fields of outputs": (CHAT, {**CHAT_1, "structured_outputs": {f"f{i}": 1 for i in range(300_000)}}),
    "no messages": (CHAT, {**CHAT_1, "messages": [1] * 1_000_000}),
    "broken messages": (CHAT, {**CHAT_1, "messages": [{"role": "user", "content": 5}] * 100_000}),
    "broken parts": (CHAT, {**CHAT_1, "messages": [{"role": "user", "content": [1] * 1_000_000}]}),
    "many messages": (CHAT, {**CHAT_1, "messages": MESSAGES * 20_000}),
    "stops": (CHAT, {**CHAT_1, "stop": [1] * 1_000_000}),
    "stop ids": (CHAT, {**CHAT_1, "stop_token_ids": ["x"] * 1_000_000}),
    "bias": (CHAT, {**CHAT_1, "logit_bias": {str(i): "x" for i in range(300_000)}}),
    "choices": (CHAT, {**CHAT_1, "guided_choice": [1] * 1_000_000}),
    "broken tools": (CHAT, {**CHAT_1, "tools": [1] * 1_000_000}),
    "many tools": (CHAT, {**CHAT_1, "tools": [{"function": {"name": f"f{i}"}} for i in range(50_000)]}),
    "broken ids": (COMPLETIONS, {"prompt": [["x"]] * 500_000, "max_tokens": 1}),
    "prompts": (COMPLETIONS, {"prompt": ["x"] * 1_000_000, "max_tokens": 1}),
    "items": (RESPONSES, {"input": [1] * 1_000_000}),
}


@pytest.mark.parametrize("name", BODIES)
def test_megabytes_of_mistakes_are_refused_at_once(client, name: str) -> None:
    """pydantic words every mistake it meets, on the event loop: a million of them took a minute. Seconds are
    the processor's."""
    path, body = BODIES[name]
    content = json.dumps(body)
    begin = time.process_time()
    error = refused(client.post(path, content=content, headers=JSON))
    assert time.process_time() - begin < 4
    assert error["code"] == "invalid_request" and len(error["message"]) < 500


def test_long_names_are_no_slips(client) -> None:
    """`difflib` compares in time that grows with the product of the lengths."""
    names = {f"{i}" + "guidedjso" * 10_000: 1 for i in range(90)}
    begin = time.process_time()
    ok(client.post(CHAT, content=json.dumps({**CHAT_1, **names}), headers=JSON))
    assert time.process_time() - begin < 4
    ok(client.post(CHAT, json={**CHAT_1, **{f"f{i}": 1 for i in range(100)}}))


def test_the_readers_of_many_tools_are_one(client) -> None:
    """Each answer of a request reads its text with the names of all tools."""
    tools = [{"type": "function", "function": {"name": f"{i:03}" + "f" * 60}} for i in range(500)]
    body = {"messages": MESSAGES, "tools": tools, "tool_choice": "none", "n": 64, "max_tokens": 1}
    ok(client.post(CHAT, json=body))
    begin = time.process_time()
    ok(client.post(CHAT, json={**body, "tool_choice": "auto"}))
    assert time.process_time() - begin < 10
