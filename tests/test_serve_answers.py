"""Random requests to a server. Judges that share no code with the server check the answers
(`oracles/answers.py`)."""

from __future__ import annotations

import copy
import json

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
pytest.importorskip("sse_starlette", reason="sse-starlette is not installed: it is in the extra serve")

from starlette.testclient import TestClient

from oracles import answers
from oracles.answers import COMPLETIONS, RESPONSES, Asked, Text
from structgen.serve.app import create_app

SEEDS, PARTS = 32, 8


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app()) as made:
        yield made


@pytest.mark.parametrize("part", range(PARTS))
def test_answers_are_what_was_asked_for(client, part: int) -> None:
    """A streamed answer equals the answer without a stream. Exception: a mask that omitted tokens depends on
    what the engine already knew. One long run tried 700 seeds."""
    answered = 0
    for seed in range(part, SEEDS, PARTS):
        asked = answers.asked(seed)
        response = client.post(asked.path, json=asked.body)
        if response.status_code != 200:
            assert response.json()["error"]["code"] in answers.REFUSED, (seed, response.text)
            continue
        answered += 1
        answer = response.json()
        texts = answers.texts_of(asked, answer)
        assert (said := answers.wrong(asked, texts, answer["usage"])) is None, (seed, said, asked.body)
        more = {} if asked.path == RESPONSES else {"stream_options": {"include_usage": True}}
        stream = client.post(asked.path, json=asked.body | more | {"stream": True}).text
        pieces, usage = answers.joined(asked, stream.split("\n"))
        assert (said := answers.wrong(asked, pieces, usage)) is None, (seed, said, asked.body)
        if "subset_masks" not in answer.get("structgen", {}) and not asked.tools:
            assert [t.text for t in pieces] == [t.text for t in texts], (seed, asked.body)
    assert answered


def test_the_judge_sees_what_is_wrong() -> None:
    schema = {"type": "object", "required": ["a"]}
    body = {"prompt": "x", "max_tokens": 9, "n": 2, "guided_json": schema, "logprobs": 0}
    asked = Asked(COMPLETIONS, body, answers.oracle(schema))
    logged = [b"{", b'"a"', b":", b"1", b"}"]
    texts = [Text('{"a":1}', "stop", logged=list(logged)) for _ in range(2)]
    usage = {"prompt_tokens": 3, "completion_tokens": 12, "total_tokens": 15}
    assert answers.wrong(asked, texts, usage) is None
    for name, value in (("text", '{"b":1}'), ("text", '{"a":1'), ("finish", "length"), ("finish", None)):
        broken = copy.deepcopy(texts)
        setattr(broken[1], name, value)
        assert answers.wrong(asked, broken, usage) is not None, (name, value)
    assert answers.wrong(asked, texts, usage | {"completion_tokens": 11, "total_tokens": 14}) is not None
    assert answers.wrong(asked, texts, usage | {"total_tokens": 16}) is not None
    assert answers.wrong(asked, texts[:1], usage) is not None
    stopped = Asked(COMPLETIONS, {"prompt": "x", "max_tokens": 9, "stop": ["b"]})
    counts = {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4}
    assert answers.wrong(stopped, [Text("aa", "stop", "b")], counts) is None
    assert answers.wrong(stopped, [Text("aab", "stop", "b")], counts) is not None
    assert answers.wrong(stopped, [Text("aabc", "stop")], counts) is not None
    assert answers.wrong(stopped, [Text("aa", "stop", "c")], counts) is not None
    call = {"name": "f", "arguments": json.dumps({"a": 1})}
    tools = Asked(answers.CHAT, {"max_tokens": 9, "parallel_tool_calls": False}, tools={"f": asked.fits})
    assert answers.wrong(tools, [Text("", "tool_calls", calls=[call])], counts) is None
    assert answers.wrong(tools, [Text("", "tool_calls", calls=[call, call])], counts) is not None
    assert answers.wrong(tools, [Text("", "tool_calls", calls=[call | {"name": "g"}])], counts) is not None
    assert (
        answers.wrong(tools, [Text("", "tool_calls", calls=[call | {"arguments": "{}"}])], counts) is not None
    )
