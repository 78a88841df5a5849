"""The server under bodies that are expensive to read, and under grammars with expensive masks."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
pytest.importorskip("sse_starlette", reason="sse-starlette is not installed: it is in the extra serve")

from starlette.testclient import TestClient

import structgen as sg
from oracles import harness
from oracles.bodies import Bodies, hostile, judge
from oracles.serving import (
    CHAT,
    COMPLETIONS,
    MESSAGES,
    RESPONSES,
    ROOT,
    WEATHER,
    Script,
    asked,
    events,
    ok,
    refused,
    served,
)
from structgen.serve.app import create_app
from structgen.serve.grammars import Grammars
from structgen.serve.memory import Memory
from structgen.serve.sequence import Answer

JSON = {"Content-Type": "application/json"}
BLOCKS, TEXT_BLOCK = "/v1/messages", {"type": "text", "text": "x"}
CHAT_1 = {"messages": MESSAGES, "max_tokens": 1}


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
    "broken blocks": (BLOCKS, {**CHAT_1, "messages": [{"role": "user", "content": [1] * 1_000_000}]}),
    "blocks": (BLOCKS, {**CHAT_1, "messages": [{"role": "user", "content": [TEXT_BLOCK] * 300_000}]}),
    "strange blocks": (BLOCKS, {**CHAT_1, "messages": [{"role": "user", "content": [{}] * 9_000}] * 100}),
    "stop sequences": (BLOCKS, {**CHAT_1, "stop_sequences": [1] * 1_000_000}),
    "servers": (CHAT, {**CHAT_1, "tools": [{"type": "mcp"}] * 50_000}),
}


@pytest.mark.parametrize("name", BODIES)
def test_megabytes_of_mistakes_are_refused_at_once(client, name: str) -> None:
    """pydantic writes a message for each mistake in a body, in the thread of all requests: a million messages
    took a minute. Here the server refuses the body at once. The test counts CPU seconds."""
    path, body = BODIES[name]
    content = json.dumps(body)
    begin = time.process_time()
    error = refused(client.post(path, content=content, headers=JSON))
    assert time.process_time() - begin < 4
    assert error["code"] == "invalid_request" and len(error["message"]) < 500


def test_bodies_that_never_end_hold_little() -> None:
    """Sixteen clients send a part of the largest allowed body and then wait. Together they may hold little
    memory, so the next client gets 503. A client that is too slow gets 408."""
    limit = 4_000
    app = create_app(body_bytes=limit)
    body = json.dumps(CHAT_1).encode()

    async def ask(*parts: bytes, ends: bool = True) -> list[dict]:
        told: list[dict] = []
        waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        if ends:
            waiting[-1]["more_body"] = False

        async def receive() -> dict:
            if waiting:
                return waiting.pop(0)
            await asyncio.sleep(60)
            return {"type": "http.disconnect"}

        async def send(message: dict) -> None:
            told.append(message)

        headers = [(b"content-type", b"application/json"), (b"host", b"localhost")]
        scope = {
            "type": "http",
            "method": "POST",
            "path": CHAT,
            "raw_path": CHAT.encode(),
            "query_string": b"",
        }
        await app(scope | {"headers": headers, "http_version": "1.1", "scheme": "http"}, receive, send)
        return told

    async def everyone() -> None:
        slow = [asyncio.create_task(ask(b" " * limit, ends=False)) for _ in range(16)]
        await asyncio.sleep(0.05)
        refused_now = await ask(body)
        assert refused_now[0]["status"] == 503 and b"server_busy" in refused_now[1]["body"]
        assert b"retry-after" in dict(refused_now[0]["headers"])
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        assert (await ask(body))[0]["status"] == 200

    asyncio.run(everyone())
    app.state.service.close()
    app = create_app(body_bytes=limit, request_seconds=0.1)
    late = asyncio.run(ask(b"{", ends=False))
    assert late[0]["status"] == 408 and b"request_timeout" in late[1]["body"]


def test_long_names_are_no_slips(client) -> None:
    """A misspelled field gets a hint from `difflib`, whose time grows with the product of the lengths. So the
    server compares no long names."""
    names = {f"{i}" + "guidedjso" * 10_000: 1 for i in range(90)}
    begin = time.process_time()
    ok(client.post(CHAT, content=json.dumps({**CHAT_1, **names}), headers=JSON))
    assert time.process_time() - begin < 4
    ok(client.post(CHAT, json={**CHAT_1, **{f"f{i}": 1 for i in range(100)}}))


def test_the_readers_of_many_tools_are_one(client) -> None:
    """All answers of a request share one reader of the tools' names."""
    tools = [{"type": "function", "function": {"name": f"{i:03}" + "f" * 60}} for i in range(500)]
    body = {"messages": MESSAGES, "tools": tools, "tool_choice": "none", "n": 64, "max_tokens": 1}
    ok(client.post(CHAT, json=body))
    begin = time.process_time()
    ok(client.post(CHAT, json={**body, "tool_choice": "auto"}))
    assert time.process_time() - begin < 10


# ---- masks ----


def test_a_known_mask_is_the_mask() -> None:
    """The call for known masks gives the mask if the cache holds it, and never computes a new mask."""
    vocabulary = sg.Vocabulary.from_bytes([bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256])
    grammar = sg.Compiler(vocabulary).regex("[ab]{3}c?")
    known, made = (sg.allocate_bitmask(1, 257) for _ in range(2))
    for matcher in (grammar.matcher(), grammar.matcher(max_tokens=9)):
        for token in (*b"aba", 256):
            matcher._core.fill_known(known)
            matcher.fill_bitmask(made)
            assert matcher._core.fill_known(known) and np.array_equal(known, made)
            assert matcher.accept_token(token)
    fresh = sg.Compiler(vocabulary).regex("[ab]{3}c?").matcher()
    assert not fresh._core.fill_known(known)


def test_slow_masks_do_not_slow_others(monkeypatch) -> None:
    """Twelve answers have masks of 20 ms. The engine once waited 50 ms per step for slow masks, and 150
    tokens of the other answers took 8 seconds."""
    fill, stop = Answer.fill, threading.Event()

    def slow(self: Answer) -> None:
        if "b" in str(self.job.plan.grammar.source) and not stop.is_set():
            begin = time.thread_time()
            while time.thread_time() - begin < 0.02:
                hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2_000)  # releases the GIL, as a mask does
            self.job.masked(0.02)
        fill(self)

    monkeypatch.setattr(Answer, "fill", slow)
    monkeypatch.setattr(Answer, "fill_known", lambda self: False)
    app = create_app(Script(lambda _: "a" * 1_000), temperature=0.0)
    with TestClient(app) as client, ThreadPoolExecutor(12) as pool:
        body = {"prompt": asked("x"), "guided_regex": "[ab]{600}", "max_tokens": 700}

        def hostile_client() -> None:
            while not stop.is_set():
                client.post(COMPLETIONS, json={**body, "max_tokens": 20, "structgen": {"complete": False}})

        for _ in range(12):
            pool.submit(hostile_client)
        time.sleep(0.5)
        begin = time.perf_counter()
        ok(client.post(COMPLETIONS, json={"prompt": asked("y"), "guided_regex": "[a]{150}"}))
        taken = time.perf_counter() - begin
        stop.set()
    assert taken < 4, taken


MASKS = {"prompt": "x", "temperature": 1.5, "seed": 1, "max_tokens": 30, "structgen": {"complete": False}}


def test_an_answer_says_that_masks_were_subsets() -> None:
    body = MASKS | hostile("masks", 3)
    with TestClient(create_app(mask_work=2_000)) as client:
        done = ok(client.post(COMPLETIONS, json=body))
        assert done["structgen"]["subset_masks"] > 0
        assert (
            f"structgen_subset_masks_total {done['structgen']['subset_masks']}" in client.get("/metrics").text
        )
        streamed = events(client.post(COMPLETIONS, json={**body, "stream": True}))
        assert streamed[-1]["structgen"]["subset_masks"] > 0
        assert "structgen" not in ok(client.post(COMPLETIONS, json={**MASKS, "guided_regex": "[ab]{9}"}))


def test_a_limit_names_what_to_change() -> None:
    with TestClient(create_app(mask_work=2_000, on_limit="error")) as client:
        error = refused(client.post(COMPLETIONS, json=MASKS | hostile("masks", 3)))
        assert error["code"] == "grammar_too_costly" and error["param"] == "guided_regex"
        assert "--mask-work" in error["message"] and "Limits(" not in error["message"]
    with TestClient(create_app(compile_work=1_000)) as client:
        error = refused(client.post(COMPLETIONS, json=MASKS | hostile("compiles", 3)))
        assert error["code"] == "schema_too_complex" and "--compile-work" in error["message"]
        assert "pointer" in error and "Limits(" not in error["message"]


@pytest.mark.parametrize("limit", ["grammar_bytes", "live_bytes"])
def test_a_grammar_has_a_share_of_memory(limit: str) -> None:
    body = {**MASKS, "max_tokens": 200} | hostile("masks", 3)
    with TestClient(create_app(**{limit: 4 << 20})) as client:
        error = refused(client.post(COMPLETIONS, json=body))
        assert error["code"] == "grammar_too_costly" and "simplify" in error["message"]
        assert "--" + limit.replace("_bytes", "-megabytes") in error["message"]
        ok(client.post(COMPLETIONS, json={**MASKS, "guided_regex": "[ab]{9}"}))


def test_what_is_kept_may_have_grown_since() -> None:
    """A grammar is small when the cache stores it, and grows with the masks of its answer. The cache
    therefore measures its grammars again."""
    app = create_app(cache_bytes=2 << 20)
    with TestClient(app) as client:
        service = app.state.service
        for salt in range(3):
            ok(client.post(COMPLETIONS, json=MASKS | hostile("masks", salt)))
            assert sum(one.taken() for one in service.grammars._kept.values()) <= 2 << 20
        ok(client.post(COMPLETIONS, json={**MASKS, "guided_regex": "[ab]{9}"}))
        assert len(service.grammars._kept) == 1


def test_a_grammar_that_has_grown_to_its_limit_is_compiled_anew() -> None:
    """A grammar ended one request at its limit of memory. The next request compiles the grammar anew and has
    the whole limit."""
    app = create_app(grammar_bytes=8 << 20)
    body = {**MASKS, "guided_regex": "[ab]{9}"}
    with TestClient(app) as client:
        ok(client.post(COMPLETIONS, json=body))
        (key,) = app.state.service.grammars._kept
        known = app.state.service.grammars._kept[key]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(known), "taken", lambda one: 8 << 20 if one is known else 0)
            ok(client.post(COMPLETIONS, json=body))
            assert app.state.service.grammars._kept[key] is not known
            ok(client.post(COMPLETIONS, json=body))


def test_a_client_that_leaves_after_a_bad_request_leaves_no_word_in_the_log(caplog) -> None:
    """asyncio logs a task's error at the end of the task if no code read the error."""
    from structgen.serve.answering import Gone, while_there

    class Left:
        async def receive(self) -> dict:
            return {"type": "http.disconnect"}

    async def work() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            raise ValueError("after the end")

    async def ask() -> None:
        with pytest.raises(Gone):
            await while_there(Left(), work())
        await asyncio.sleep(0.01)
        gc.collect()

    asyncio.run(ask())
    assert "never retrieved" not in caplog.text


def test_memory_is_given_back(monkeypatch) -> None:
    monkeypatch.setattr("structgen.serve.memory._SECONDS", 0.05)
    memory, trimmed = Memory(), threading.Event()
    memory._trim = lambda _: trimmed.set()
    memory.freed()
    assert trimmed.wait(10)
    memory.close()


def test_idle_threads_hold_no_grammar() -> None:
    """After a compile that was too expensive, and after an answer, only the cache holds the grammar."""
    kept: list[weakref.ref] = []
    make = Grammars.compiled

    def noted(self, constraint, look=False):
        made = None
        try:
            made = make(self, constraint, look)
            return made
        finally:
            if made is not None:
                kept.append(weakref.ref(made.compiler))

    app = create_app(compile_work=500_000, compile_workers=2)
    service = app.state.service
    with TestClient(app) as client, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Grammars, "compiled", noted)
        for salt in range(3):
            client.post(COMPLETIONS, json={**MASKS, **hostile("strings", salt), "max_tokens": 9})
            ok(client.post(COMPLETIONS, json=MASKS | hostile("masks", salt)))
        service.grammars._kept.clear()
        until = time.monotonic() + 10
        while any(one() is not None for one in kept):
            gc.collect()
            assert time.monotonic() < until, sum(one() is not None for one in kept)
            time.sleep(0.02)
    assert len(kept) >= 3


def test_cheap_compiles_do_not_wait_for_expensive_ones() -> None:
    """Eight compiles of 0.3 seconds run one at a time. Then a schema arrives that the server has not seen."""
    app = create_app(compile_workers=1, compile_seconds=300, compile_work=3_000_000)
    with TestClient(app) as client, ThreadPoolExecutor(8) as pool:
        bodies = [{**MASKS, "max_tokens": 1} | hostile("compiles", salt) for salt in range(8)]
        expensive = [pool.submit(client.post, COMPLETIONS, json=body) for body in bodies]
        while not client.app.state.service.workers._tasks:
            time.sleep(0.01)
        ok(client.post(COMPLETIONS, json={**MASKS, "guided_json": {"type": "integer", "maximum": 77}}))
        assert sum(one.done() for one in expensive) <= 4
        assert all(one.result() for one in expensive)


@pytest.fixture
def compiles(monkeypatch) -> list[int | None]:
    """The limit of units of work of each compile, in order."""
    found: list[int | None] = []
    make = sg.Compiler.__init__

    def counted(self, vocabulary, **options) -> None:
        make(self, vocabulary, **options)
        found.append(self.limits.compile)

    monkeypatch.setattr(sg.Compiler, "__init__", counted)
    return found


def test_a_quick_grammar_is_compiled_once_and_then_has_the_limits_of_the_server(client, compiles) -> None:
    """The first compile allows masks 20,000 units. Later masks of the grammar take more than 50,000."""
    pattern = "x(.*[a-f].{12}[b-k].*|.*[c-h].{13}[a-c].*){5,60}"
    with TestClient(create_app(on_limit="error", mask_work=2_000_000)) as own:
        ok(own.post(COMPLETIONS, json={**MASKS, "guided_regex": pattern}))
        assert len(compiles) == 1
        ok(own.post(COMPLETIONS, json={**MASKS, "guided_regex": pattern}))
        assert len(compiles) == 1  # the grammar was kept
    with TestClient(create_app(on_limit="error", mask_work=50_000)) as own:
        error = refused(own.post(COMPLETIONS, json={**MASKS, "guided_regex": pattern}))
        assert "50,000 units" in error["message"]
    compiles.clear()
    calm = MASKS | {"temperature": 1}
    done = ok(client.post(COMPLETIONS, json={**calm, "guided_regex": "y" + pattern}))
    assert len(compiles) == 1 and "structgen" not in done


def test_what_a_first_look_does_not_tell_is_compiled_with_the_limits_of_the_server(client, compiles) -> None:
    ok(client.post(COMPLETIONS, json={**MASKS, **hostile("items", 1), "max_tokens": 2}))
    assert compiles == [300_000, 10_000_000]
    # The quick compile already refuses what no limit could allow.
    for fields, code in (({"guided_regex": "("}, "invalid_grammar"), ({"guided_regex": "[ab]{99}"}, None)):
        compiles.clear()
        error = refused(client.post(COMPLETIONS, json={"prompt": "x", "max_tokens": 3, **fields}))
        assert error["code"] == (code or "max_tokens_too_small") and compiles == [300_000]


def test_nothing_is_compiled_for_a_client_that_left(monkeypatch) -> None:
    httpx = pytest.importorskip("httpx2", reason="httpx2 is not installed: it is in the extra test")
    release, begun = threading.Event(), []

    def hanging(self: Grammars, constraint, look=False):
        begun.append(constraint.identity[1][0])
        release.wait(20)
        raise ValueError

    monkeypatch.setattr(Grammars, "compiled", hanging)
    with served(None, compile_workers=1) as address:
        for name in "abc":  # too expensive for the queue of quick compiles
            body = {"prompt": "x", "guided_regex": name + "x" * 200_000}
            with pytest.raises(httpx.TimeoutException):
                httpx.post(address + COMPLETIONS, json=body, timeout=0.5)
        until = time.monotonic() + 5
        while 'status="499"} 3.0' not in httpx.get(f"{address}/metrics").text:
            assert time.monotonic() < until
            time.sleep(0.02)
        release.set()
        assert httpx.post(address + COMPLETIONS, json={"prompt": "x", "max_tokens": 1}).status_code == 200
    assert begun == ["a"]


# ---- texts of answers and errors ----


def said(done: dict) -> list[str]:
    """Returns the warnings of an answer, without the warnings about the embedded model's doubt."""
    return [one for one in done["structgen"]["warnings"] if "embedded model" not in one]


def test_a_broken_schema_is_told(client) -> None:
    """A client that writes `"required": "a"` learns that the keyword requires nothing."""
    body = {"messages": MESSAGES, "max_tokens": 200}
    broken = {"type": "object", "properties": {"a": {"type": "null"}}, "required": "a"}
    for fields in ({"guided_json": broken}, {"response_format": {"type": "json_object", "schema": broken}}):
        (told,) = said(ok(client.post(CHAT, json=body | fields)))
        assert "required" in told and "#" in told
    tool = {"type": "function", "function": {"name": "f", "parameters": broken}}
    done = ok(client.post(CHAT, json=body | {"tools": [tool], "tool_choice": "required"}))
    assert "required" in done["structgen"]["warnings"][0]
    typo = {"type": "object", "additionalproperties": False}
    done = ok(client.post(CHAT, json=body | {"guided_json": typo}))
    assert "did you mean `additionalProperties`" in done["structgen"]["warnings"][0]
    unknown = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"a": {"type": "string", "format": "password", "forbidden": [5], "x-order": 1}},
        "anyOf": [],
    }
    done = ok(client.post(CHAT, json=body | {"guided_json": unknown}))
    assert sorted(said(done)) == [
        "#/properties/a: `forbidden`: unknown keyword: it constrains nothing",
        "#/properties/a: `format`: unknown format 'password': it constrains nothing",
        "#: `anyOf`: ignored: an empty array",
    ]
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array", "prefixItems": [{}]}
    (told,) = said(ok(client.post(CHAT, json=body | {"guided_json": old})))
    assert told == "#: `prefixItems`: not a keyword of this draft: it constrains nothing"
    (told,) = said(ok(client.post(CHAT, json=body | {"grammar": 'root ::= "a"\nx ::= "b"'})))
    assert "x" in told
    streamed = events(client.post(CHAT, json=body | {"guided_json": broken, "stream": True}))
    assert "required" in streamed[-1]["structgen"]["warnings"][0]
    response = ok(client.post(RESPONSES, json={"input": "x", "guided_json": broken}))
    assert "required" in response["structgen"]["warnings"][0]
    assert "structgen" not in ok(
        client.post(CHAT, json=body | {"tools": [WEATHER], "tool_choice": "required"})
    )


def test_the_embedded_model_says_that_it_reads_one_turn(client) -> None:
    turns = [*MESSAGES, {"role": "assistant", "content": "{}"}, {"role": "user", "content": "and 3 lamps"}]
    body = {"max_tokens": 5, "structgen": {"complete": False}}
    (told,) = ok(client.post(CHAT, json={"messages": turns, **body}))["structgen"]["warnings"]
    assert "no other turns" in told
    assert ok(client.post(RESPONSES, json={"input": turns, "max_output_tokens": 5}))["structgen"]["warnings"]
    assert "structgen" not in ok(client.post(CHAT, json={"messages": MESSAGES, **body}))


def test_the_embedded_model_goes_on_with_a_message(client) -> None:
    body = {"max_tokens": 40, "temperature": 0, "structgen": {"complete": False}}
    whole = ok(client.post(CHAT, json={"messages": MESSAGES, **body}))["choices"][0]["message"]["content"]
    begun = [*MESSAGES, {"role": "assistant", "content": whole[:9]}]
    done = ok(client.post(CHAT, json={"messages": begun, "continue_final_message": True, **body}))
    assert done["choices"][0]["message"]["content"] == whole[9:] and "structgen" not in done


BROKEN = [  # a schema that no draft permits, with the pointer and the keyword of the mistake
    ({"properties": {"a": {"type": "objekt"}}}, "/properties/a", "type"),
    ({"items": {"type": ["string", "int"]}}, "/items", "type"),
    ({"properties": {"a": {"anyOf": [{"multipleOf": 0}, {}]}}}, "/properties/a/anyOf/0", "multipleOf"),
    ({"patternProperties": {"a": {"multipleOf": -0.5}}}, "/patternProperties/a", "multipleOf"),
    ({"$defs": {"a": {"type": "list"}}}, "/$defs/a", "type"),
    (5, "", ""),
]


@pytest.mark.parametrize(("schema", "pointer", "keyword"), BROKEN, ids=lambda value: str(value)[:40])
def test_a_schema_that_no_draft_permits_is_refused_wherever_it_stands(
    client, schema, pointer: str, keyword: str
) -> None:
    """The mistake stands also below an optional property, which a subset of the mask would silently omit."""
    error = refused(client.post(CHAT, json={"messages": MESSAGES, "guided_json": schema}))
    assert (error["code"], error["pointer"], error["keyword"]) == ("invalid_grammar", pointer, keyword)
    assert error["reason"] and "at #" not in error["reason"]


def test_what_is_enforced_otherwise_than_written_is_told(client) -> None:
    schema = {
        "$schema": "draft-03",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "a": {"$ref": "#/nothing"},
            "b": {"type": "array", "maxItems": -1},
            "c": {"type": []},
        },
        "minProperties": 0.5,
    }
    done = ok(client.post(CHAT, json={"messages": MESSAGES, "guided_json": schema, "max_tokens": 60}))
    assert json.loads(done["choices"][0]["message"]["content"]) == {"b": []}
    assert sorted(said(done)) == [
        "#/properties/a: `$ref`: reference '#/nothing' cannot be resolved: nothing stands there; values that "
        "need it are refused",
        "#/properties/b: `maxItems`: below 0: read as 0",
        "#/properties/c: `type`: an empty list: no value has a type of it",
        "#: `$schema`: names no known draft: read as draft 2020-12",
        "#: `minProperties`: not a whole number: rounded up",
    ]


def test_a_schema_that_is_no_json_has_a_place(client) -> None:
    error = refused(client.post(CHAT, json={"messages": MESSAGES, "guided_json": '{"a":\n 1,}'}))
    assert (error["line"], error["code"]) == (2, "invalid_grammar") and error["reason"]


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"structgen": {"speculate": 5}}, "structgen.speculate", "must be 'auto' or a list"),
        ({"stop": [5]}, "stop[0]", "must be a text"),
        ({"stop": 5}, "stop", "must be a text or a list"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content", "must be a text or a list"),
        ({"messages": [{"content": "x"}]}, "messages[0].role", "is missing"),
        ({"n": 1.5}, "n", "must be a whole number"),
        ({"temperature": "hot"}, "temperature", "must be a number"),
        ({"logit_bias": {"7": 101}}, "logit_bias.7", "must be at most 100"),
        ({"tools": [5]}, "tools[0]", "must be an object"),
        ({"structgen": {"sampling": {"methods": "cars"}}}, "structgen.sampling.methods", "is no field here"),
        ({"structured_outputs": {}}, "structured_outputs", "has none of json"),
        ({"structured_outputs": {"disable_any_whitespace": True}}, "structured_outputs", "has none of json"),
        ({"stop_token_ids": [3, 99_999]}, "stop_token_ids", "not 99999"),
        ({"stop_token_ids": [-1]}, "stop_token_ids", "not -1"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema", "is missing"),
        ({"guided_json": {"$ref": "http://a/b"}}, "guided_json", "below '$defs'"),
        ({"response_format": {"type": "regex"}}, "response_format.regex", "must be a text"),
        ({"response_format": {"type": None}}, "response_format.type", "is missing; known: text"),
        (
            {"response_format": {"type": "json_schema", "schema": 5}},
            "response_format.schema",
            "an object or a",
        ),
        ({"respone_format": {"a": 1}}, "respone_format", "is no constraint"),
        ({"functions": [1]}, "functions", "use 'tools'"),
        ({"guided_json": {"$dynamicRef": "#x"}}, "guided_json", "keyword '$dynamicRef'"),
        ({"temperature": 0, "structgen": {"sampling": {}}}, "temperature", "above 0"),
        (
            {"structured_outputs": {"json": {}, "disable_additional_properties": True}},
            "structured_outputs.disable_additional_properties",
            "in the schema",
        ),
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_mistakes_are_told_in_the_words_of_clients(client, fields, param: str, message: str) -> None:
    error = refused(client.post(CHAT, json={**CHAT_1, **fields}))
    assert error["param"] == param and message in error["message"]


def test_fields_of_other_endpoints_are_refused(client) -> None:
    for fields, words in (
        ({"stop": "a"}, "/v1/chat"),
        ({"n": 2}, "/v1/chat"),
        ({"max_tokens": 3}, "max_output"),
    ):
        error = refused(client.post(RESPONSES, json={"input": "x", **fields}))
        assert error["param"] == next(iter(fields)) and words in error["message"]
    ok(client.post(RESPONSES, json={"input": "x", "max_output_tokens": 3, "n": None, "stop": []}))


def test_an_import_that_is_not_there_names_no_argument_of_python(client) -> None:
    error = refused(client.post(CHAT, json={**CHAT_1, "grammar": "%import foo.bar\nstart: bar"}))
    assert "no such grammar" in error["message"] and "import_paths" not in error["message"]


def test_half_a_surrogate_pair_is_told_in_words(client) -> None:
    body = b'{"prompt": "a", "user": "\\ud800", "max_tokens": "\\ud800"}'
    error = refused(client.post(COMPLETIONS, content=body, headers=JSON))
    assert error["param"] == "max_tokens" and "must be" in error["message"]


def test_the_embedded_model_reads_what_is_left_of_a_broken_schema(client) -> None:
    for broken in ({"allOf": [{"properties": "a"}]}, {"properties": True, "allOf": [{"type": "object"}]}):
        body = {"messages": MESSAGES, "guided_json": broken, "max_tokens": 60}
        assert "properties" in ok(client.post(CHAT, json=body))["structgen"]["warnings"][0]


def test_which_tool_is_wrong_is_told(client) -> None:
    """The error names the tool, because two tools may have equal places in their schemas."""

    def tools(parameters: dict) -> dict:
        wrong = {"type": "function", "function": {"name": "second", "parameters": parameters}}
        return {"messages": MESSAGES, "tools": [WEATHER, wrong], "max_tokens": 200}

    city = next(iter(WEATHER["function"]["parameters"]["properties"]))
    error = refused(client.post(CHAT, json=tools({"properties": {city: {"type": "strin"}}})))
    assert error["message"].startswith("tool 'second': unknown type") and error["pointer"].endswith(city)
    broken = {"type": "object", "properties": {city: {"minLength": -1, "formt": "date"}}}
    told = ok(client.post(CHAT, json=tools(broken) | {"tool_choice": "required"}))["structgen"]["warnings"]
    assert len(told) == 2 and all(text.startswith("second: #") for text in told)


def test_a_number_of_tokens_that_is_not_known_to_be_the_least_is_not_called_so(client) -> None:
    items = {"type": "string", "minLength": 5}
    schema = {"type": "array", "uniqueItems": True, "minItems": 4, "items": items}
    for limit, words in ((1, "has so few tokens"), (11, "is known to have so few tokens")):
        body = {"messages": MESSAGES, "guided_json": schema, "max_tokens": limit}
        error = refused(client.post(CHAT, json=body))
        assert words in error["message"] and "known to suffice" in error["message"]
    body["max_tokens"] = error["least_tokens"]
    assert ok(client.post(CHAT, json=body))["choices"][0]["finish_reason"] == "stop"


def test_more_warnings_than_are_told_are_said_to_be_there(client) -> None:
    schema = {"type": "object", "maxProperties": 0, **{f"word{i}": 1 for i in range(30)}}
    done = ok(client.post(CHAT, json={**CHAT_1, "max_tokens": 9, "guided_json": schema}))
    told = said(done)
    assert len(told) == 11 and "more" in told[-1]


def test_reading_a_token_has_a_limit_that_names_its_option(client, monkeypatch) -> None:
    def too_much(*_: object) -> None:
        raise sg.BudgetExceeded("reading this text takes more than 1 units of work; raise Limits(mask=...)")

    monkeypatch.setattr("structgen.serve.sequence.Answer.advance", too_much)
    monkeypatch.setattr("structgen.speculation.engine.SpeculativeRows.step", too_much)
    for extra in ({}, {"structgen": {"speculate": "auto"}}):
        error = refused(client.post(COMPLETIONS, json={"prompt": "x", "guided_regex": "[ab]{9}"} | extra))
        assert error["code"] == "grammar_too_costly" and "--mask-work" in error["message"]


def test_no_sample_names_what_cut_all_texts_off(client) -> None:
    body = {"prompt": "hi", "top_p": 0.9, "seed": 1, "guided_choice": ["a", "b"]}
    body["structgen"] = {"sampling": {"method": "cars", "max_trials": 50}}
    error = refused(client.post(COMPLETIONS, json=body))
    assert error["code"] == "no_sample" and "top_p" in error["message"]


def test_long_values_are_not_repeated(client) -> None:
    for path, body, status in (
        (CHAT, {**CHAT_1, "model": "x" * 9_000}, 404),
        (RESPONSES, {"input": [{"type": "y" * 9_000}]}, 400),
        (CHAT, {"messages": [{"role": "user", "content": [{"type": "z" * 9_000}]}]}, 400),
    ):
        assert len(refused(client.post(path, json=body), status)["message"]) < 400


def test_prompts_of_several_types_are_told_by_what_fits_furthest(client) -> None:
    for prompt, param in ((5, "prompt"), ([["x"]], "prompt[0][0]"), ([3, "x"], "prompt[1]")):
        assert refused(client.post(COMPLETIONS, json={"prompt": prompt}))["param"] == param


def test_numbers_that_json_has_not_come_back_as_null(client) -> None:
    """Python's json reads `1e999` and `NaN`, and answers repeat fields of the request."""
    for number in (b"1e999", b"NaN", b"-Infinity"):
        body = b'{"input": "x", "max_output_tokens": 3, "metadata": {"a": %s}}' % number
        assert ok(client.post(RESPONSES, content=body, headers=JSON))["metadata"] == {"a": None}
        body = body[:-1] + b', "stream": true}'
        told = client.post(RESPONSES, content=body, headers=JSON)
        assert told.status_code == 200 and '"metadata":{"a":null}' in told.text


def test_every_error_has_a_code(client) -> None:
    for response, status, code in (
        (client.get("/v1/nothing"), 404, "not_found"),
        (client.get(CHAT), 405, "method_not_allowed"),
        (client.post(CHAT, content=b"[" * 100_000, headers=JSON), 400, "invalid_request"),
        (client.post(CHAT, json={**CHAT_1, "top_logprobs": 3}), 400, "invalid_request"),
        (client.post(COMPLETIONS, json={"prompt": "x", "logit_bias": {"x": 1}}), 400, "invalid_request"),
        (client.post(RESPONSES, json={"input": [{}]}), 400, "invalid_request"),
    ):
        assert refused(response, status)["code"] == code


def test_a_slash_at_the_end_is_no_other_place(client) -> None:
    response = client.post(CHAT + "/", json=CHAT_1, follow_redirects=False)
    assert ok(response)["choices"]
    assert ok(client.get("/v1/models/"))["data"]
    refused(client.get("/v1/nothing/"), 404)


def test_what_a_shutdown_cuts_off_is_told_so() -> None:
    httpx = pytest.importorskip("httpx2", reason="httpx2 is not installed: it is in the extra test")
    command = [sys.executable, "-m", "structgen", "serve", "--port", "0", "--drain-seconds", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        address = next(line for line in process.stderr if "served at" in line).split()[-1]
        body = {"prompt": "x", "guided_regex": "[ab]{900}", "n": 100, "temperature": 1}
        cut = ThreadPoolExecutor().submit(httpx.post, f"{address}/completions", json=body, timeout=60)
        metrics = address.removesuffix("/v1") + "/metrics"
        while "structgen_live_answers 0.0" in httpx.get(metrics).text:
            time.sleep(0.02)
        process.terminate()
        error = refused(cut.result(40), 503)
        assert error["code"] == "server_busy" and "shutting down" in error["message"]
    finally:
        process.kill()


# ---- random bodies ----


@pytest.mark.parametrize("part", range(harness.cases(8)))
def test_any_body_ends_in_an_answer_or_an_error_of_openai_s_shape(client, part: int) -> None:
    """12,000 seeds were tried once, and 3,000 more since the bodies changed. `oracles/bodies.py` describes
    the bodies."""
    for seed in range(10 * part, 10 * (part + 1)):
        request = Bodies(seed).request()
        answer = client.request(request.method, request.path, content=request.body, headers=request.headers)
        wrong = judge(answer.status_code, answer.headers.get("content-type", ""), answer.text)
        assert wrong is None, (seed, wrong, request, answer.text[:300])
    assert client.get("/health").status_code == 200
