"""A model that writes a given text, a server around the model, and helpers for requests and answers.

Input: a function from the prompt to the answer. Output: a `LanguageModel` over single bytes. Its tokens cut
every character into pieces, which must not disturb stop strings, tool calls or UTF-8.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn

import structgen
from oracles import closed
from oracles.tasks import Context
from structgen.serve.app import create_app

EOS = 256
SPECIAL = {"<|mark|>": 257}
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


class Prefix(Context):
    def __init__(self, lm: Script, tokens: tuple[int, ...]) -> None:
        super().__init__(tokens)
        self.lm = lm

    def extend(self, token: int) -> Prefix:
        return Prefix(self.lm, (*self._tokens, token))


class Script:
    """A model that writes `answer(prompt)` and then ends.

    Args:
        seconds: the duration of a forward pass.
        fail: an exception that the next forward passes raise.
    """

    def __init__(
        self, answer: Callable[[str], str | bytes], seconds: float = 0.0, context: int = 100_000
    ) -> None:
        tokens = [bytes([b]) for b in range(256)] + [b"", b"<|mark|>"]
        self.vocabulary = structgen.Vocabulary.from_bytes(tokens, EOS, SPECIAL)
        self.eos_token_ids = [EOS]
        self.max_context: int | None = context
        self.answer = answer
        self.seconds = seconds
        self.batches: list[int] = []
        self.fail: Exception | None = None
        self._begins: dict[int, tuple[int, bytes]] = {}

    def start(self, prompt: str | Sequence[int]) -> Prefix:
        ids = tuple(prompt.encode() if isinstance(prompt, str) else prompt) or (10,)
        if any(not 0 <= i <= 257 for i in ids):
            from structgen.lm.base import LanguageModelError

            raise LanguageModelError("no such token")
        if self.max_context is not None and len(ids) > self.max_context:
            from structgen.lm.base import ContextTooLong

            raise ContextTooLong(f"the prompt has {len(ids)} tokens; the model reads {self.max_context}")
        return Prefix(self, ids)

    def logprobs(self, contexts: Sequence[Prefix]) -> np.ndarray:
        self.batches.append(len(contexts))
        if self.fail is not None:
            raise self.fail
        if self.seconds:
            time.sleep(self.seconds)
        rows = np.full((len(contexts), 258), np.log(0.05 / 257), np.float32)
        for row, context in zip(rows, contexts, strict=True):
            row[self.next(bytes(t for t in context._tokens if t < 256))] = np.log(0.95)
        return rows

    def next(self, text: bytes) -> int:
        """Returns the next token of the script. A prompt ends with its only line break."""
        prompt, _, written = text.partition(b"\x02")
        wanted = self.answer(prompt.decode("utf-8", "replace"))
        data = wanted.encode() if isinstance(wanted, str) else wanted
        return data[len(written)] if len(written) < len(data) and data.startswith(written) else EOS


class Chats(Script):
    """A script whose prompts are chats: the answer begins behind the last line."""

    def next(self, text: bytes) -> int:
        head, _, written = text.rpartition(b"assistant:")
        data = self.answer(head.decode("utf-8", "replace"))
        data = data.encode() if isinstance(data, str) else data
        return data[len(written)] if len(written) < len(data) and data.startswith(written) else EOS


def asked(text: str) -> str:
    """Returns the prompt of `/v1/completions` for a `Script` that is asked about `text`."""
    return text + "\x02"


@contextmanager
def served(model: Any, **settings: Any) -> Iterator[str]:
    """Starts a real server at a free port of the machine, and yields its address."""
    app = create_app(model, **settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while not server.started:
        assert thread.is_alive() and time.monotonic() < until
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def ok(response: Any) -> Any:
    """Returns the answer of a request that must succeed."""
    assert response.status_code == 200, response.text
    return response.json()


def refused(response: Any, status: int = 400) -> Any:
    """Returns the error of a request that must fail with `status`. The error has every field."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert {"message", "type", "param", "code"} <= error.keys()
    assert error["message"] and "Traceback" not in response.text
    return error


def events(response: Any) -> list[Any]:
    """Returns the data of a stream without the end mark. The function asserts the end mark."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line[6:] for line in response.text.split("\n") if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


# A shorter order, for tests of thoughts and of Anthropic's interface.
SHORT_ORDER = closed({"customer": {"type": "string"}, "city": {"type": "string"}})
SHORT_TEXT = "Ana ordered 2 lamps, ship to Porto"
