"""A server under load: keys, hosts, sizes, queues, time limits, failures, and clients that leave."""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
pytest.importorskip("sse_starlette", reason="sse-starlette is not installed: it is in the extra serve")

from starlette.testclient import TestClient

from oracles import harness
from oracles.serving import (
    CHAT,
    COMPLETIONS,
    MESSAGES,
    ORDER,
    ROOT,
    TEXT,
    WEATHER,
    Script,
    asked,
    ok,
    refused,
    served,
)
from structgen.cli import serve as cli_serve
from structgen.serve.app import create_app
from structgen.serve.options import ServerOptions


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
    """The server answers only to its own host names. So a page of another site, whose name was made to
    resolve to the server (DNS rebinding), is refused."""
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
    """A large request that waits for room does not delay small requests, as it once did. It still gets its
    turn, however many small requests arrive."""
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
        if number % 10 == 0:  # the client leaves in the middle of the stream
            async with client.stream("POST", COMPLETIONS, json=body) as response:
                async for _ in response.aiter_lines():
                    return response.status_code
        if number % 10 == 2:  # the client reads slowly
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
    """SIGTERM arrives in the middle of a stream: the stream ends normally, then the process ends."""
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
    """A GGUF file with the embedded model's weights gives the embedded model's texts."""
    pytest.importorskip("transformers", reason="transformers is not installed: it is in the extra hf")
    pytest.importorskip("accelerate", reason="accelerate is not installed: it is in the extra test")
    pytest.importorskip("gguf", reason="gguf is not installed: it is in the extra test")
    from oracles import gguf_model
    from structgen.lm import embedded

    gguf_model.write(tmp_path / "tiny.gguf")
    with TestClient(create_app(str(tmp_path / "tiny.gguf"), temperature=0.0)) as client:
        assert ok(client.get("/v1/models"))["data"][0]["id"] == "tiny.gguf"
        body = {"prompt": embedded.format_prompt(TEXT, ORDER), "guided_json": ORDER, "max_tokens": 200}
        written = json.loads(ok(client.post(COMPLETIONS, json=body))["choices"][0]["text"])
    assert written["customer"] == "Maria Lopez" and written["items"][0]["quantity"] == 3


def test_a_model_of_transformers_with_its_chat_template(tmp_path) -> None:
    """transformers loads the embedded model's weights, and chats use the chat template of the tokenizer."""
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
