"""The playground's endpoints: what they report on a generation, a constraint, a document and a place."""

from __future__ import annotations

import importlib.resources
import json
import os
import random
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
pytest.importorskip("sse_starlette", reason="sse-starlette is not installed: it is in the extra serve")

from starlette.testclient import TestClient

import structgen as sg
from oracles import closed
from oracles.serving import ROOT, TEXT, Script, ok, refused
from structgen.lm.load import compiler_of, language_model
from structgen.serve import places
from structgen.serve.app import create_app
from structgen.serve.examples import examples

API = "/playground/api/"
ORDER = (ROOT / "examples" / "order.schema.json").read_text()
SCHEMA = {"kind": "schema", "text": ORDER}
DATE = {"kind": "regex", "text": r"20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"}


def generated(client, **body) -> list[dict]:
    response = client.post(API + "generate", json=body)
    assert response.status_code == 200, response.text
    lines = [line[6:] for line in response.text.split("\n") if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def of(kind: str, found: list[dict]) -> list[dict]:
    return [event for event in found if event["type"] == kind]


def compiled(typed: dict) -> sg.CompiledGrammar:
    """Returns the grammar that the server compiles, for the vocabulary of the server's model."""
    compiler = compiler_of(language_model(None))
    if typed["kind"] == "regex":
        return compiler.regex(typed["text"])
    return compiler.json_schema(typed["text"], whitespace="compact", numbers="canonical", strings="plain")


# ---- generations ----


@pytest.mark.parametrize("typed", [SCHEMA, DATE], ids=["schema", "regex"])
def test_what_is_told_of_each_token_is_what_model_and_mask_say(client, typed) -> None:
    """For each token the playground reports p, masked, kept, allowed, best and refused. The test compares
    these numbers with the model's row and the mask at the token's place."""
    found = generated(
        client, constraint=typed, prompt=TEXT, temperature=1.0, seed=4, chat=False, max_tokens=90
    )
    tokens = of("token", found)
    lm = language_model(None)
    from structgen.lm import embedded

    schema = json.loads(typed["text"]) if typed["kind"] == "schema" else None
    context = lm.start(embedded.format_prompt(TEXT, schema))
    matcher = compiled(typed).matcher()
    mask = sg.allocate_bitmask(1, lm.vocabulary.vocab_size)
    for number, told in enumerate(tokens):
        row = lm.logprobs([context])[0].astype(np.float64)
        matcher.fill_bitmask(mask, max_tokens=90 - number)
        bits = np.unpackbits(mask.view(np.uint8).reshape(-1), bitorder="little")[: len(row)].astype(bool)
        assert told["allowed"] == bits.sum() and told["left"] == 90 - number
        assert told["kept"] == pytest.approx(np.exp(row[bits]).sum(), abs=1e-5)
        assert told["p"] == pytest.approx(np.exp(row[told["id"]]), rel=1e-3)
        assert told["masked"] == pytest.approx(told["p"] / told["kept"], rel=1e-3)
        assert told["kind"] == (
            "forced" if bits.sum() == 1 else "constrained" if told["kept"] < 0.99 else "free"
        )
        best = [one["id"] for one in told["best"]]
        assert bits[best].all() and len(best) == min(8, bits.sum())
        assert row[best].min() >= np.sort(row[bits])[-len(best)] - 1e-5
        worst = [one["id"] for one in told["refused"]]
        assert not bits[worst].any() and len(worst) == min(6, (~bits).sum())
        assert row[worst].max() == pytest.approx(row[~bits].max())
        assert matcher.accept_token(told["id"])
        context = context.extend(told["id"])
    assert matcher.is_terminated()
    (end,) = of("end", found)
    text = lm.vocabulary.decode([t["id"] for t in tokens]).decode()
    assert end["text"] == text == "".join(t["delta"] for t in tokens) and end["tokens"] == len(tokens)
    assert "".join(t.get("text", "") for t in tokens) == text


def test_the_text_is_that_of_generate(client) -> None:
    wanted = sg.generate(None, TEXT, ORDER, temperature=1.0, seed=5)
    found = generated(client, constraint=SCHEMA, prompt=TEXT, temperature=1.0, seed="5", max_tokens=256)
    assert [t["id"] for t in of("token", found)] == wanted.tokens
    (start,) = of("start", found)
    assert start["seed"] == "5" and start["prompt_tokens"] == wanted.prompt_tokens


def test_drafts_and_what_was_accepted_of_them(client) -> None:
    plain = generated(client, constraint=SCHEMA, prompt=TEXT, temperature=1.0, seed=6)
    found = generated(client, constraint=SCHEMA, prompt=TEXT, temperature=1.0, seed=6, speculate="auto")
    tokens = of("token", found)
    assert [t["id"] for t in tokens] == [t["id"] for t in of("token", plain)]
    for mine, other in zip(tokens, of("token", plain), strict=True):
        assert mine["p"] == pytest.approx(other["p"], rel=1e-2, abs=1e-6)
        assert (mine["allowed"], mine["left"]) == (other["allowed"], other["left"])
    steps = of("draft", found)
    assert sum(step["emitted"] for step in steps) == len(tokens) and len(steps) < len(tokens)
    at = 0
    drafted = 0
    for step in steps:
        emitted = tokens[at : at + step["emitted"]]
        at += step["emitted"]
        node = -1
        for token in emitted:
            below = [i for i, n in enumerate(step["nodes"]) if n["parent"] == node and n["id"] == token["id"]]
            assert len(below) <= 1
            if not below:
                assert not token["drafters"]
                break
            (node,) = below
            assert step["nodes"][node]["accepted"] and token["drafters"] == step["nodes"][node]["drafters"]
            drafted += 1
        assert all(n["parent"] < i and n["drafters"] for i, n in enumerate(step["nodes"]))
        assert sum(n["accepted"] for n in step["nodes"]) == sum(bool(t["drafters"]) for t in emitted)
    assert drafted == sum(bool(t["drafters"]) for t in tokens) > 0


SMALL = json.dumps(closed({"customer": {"type": "string"}, "city": {"enum": ["Porto", "Rome", None]}}))


@pytest.mark.parametrize("method", ["cars", "smc", "local"])
def test_samples_are_those_of_sample(client, method) -> None:
    from structgen.lm import embedded

    prompt = "Two lamps, please"
    asked = {"prompt": prompt, "temperature": 1.0, "seed": 3, "n": 12, "max_tokens": 48, "method": method}
    found = generated(client, constraint={"kind": "schema", "text": SMALL}, **asked)
    (told,) = of("samples", found)
    wanted = sg.sample(
        None,
        embedded.format_prompt(prompt, json.loads(SMALL)),
        SMALL,
        n=12,
        seed=3,
        max_tokens=48,
        method=method,
        format="plain",
    )
    assert {one["text"]: one["p"] for one in told["posterior"]} == pytest.approx(wanted.posterior())
    assert sum(one["count"] for one in told["posterior"]) == len(wanted) == told["n"]
    assert told["law"] == wanted.law and told["log_bracket"] == pytest.approx(list(wanted.log_bracket))
    assert told["brackets"][-1][0] == wanted.diagnostics.brackets[-1][0] if told["brackets"] else True
    for trace in of("trace", found):
        assert trace["text"] == "".join(t.get("text", "") for t in trace["tokens"])
        assert all(0 <= t["p"] <= t["masked"] + 1e-9 for t in trace["tokens"])
    assert of("trace", found)
    nodes = told["trie"]
    for i, node in enumerate(nodes):
        assert node["parent"] < i and 0 <= node["low"] <= node["high"] + 1e-9 <= 1 + 2e-9
        if node["parent"] >= 0:
            assert node["p"] <= nodes[node["parent"]]["p"] + 1e-9
    for parent in {n["parent"] for n in nodes}:
        assert sum(n["p"] for n in nodes if n["parent"] == parent) <= (
            1 if parent < 0 else nodes[parent]["p"]
        ) * (1 + 1e-4)


def test_tools_are_read_back(client) -> None:
    (one,) = [e for e in examples() if e["kind"] == "tools"]
    typed = {"kind": "tools", "text": one["text"], "tool_choice": "get_weather"}
    found = generated(client, constraint=typed, prompt=one["prompt"], temperature=0)
    (call,) = of("end", found)[0]["calls"]
    assert call["name"] == "get_weather" and json.loads(call["arguments"])["city"] == "Porto"


def test_what_is_refused_before_a_token(client) -> None:
    def ask(**more) -> dict:
        body = {"constraint": SCHEMA, "prompt": TEXT, **more}
        return refused(client.post(API + "generate", json=body))

    assert ask(max_tokens=3)["least_tokens"] == 19
    assert ask(method="cars", speculate="auto")["param"] == "speculate"
    assert ask(n=2)["param"] == "n"
    assert ask(speculate=["nobody"])["param"].endswith("speculate")
    assert ask(method="beam")["param"] == "method"
    assert ask(constraint={"kind": "regex", "text": "a(b"})["place"]["start"] == 1
    assert ask(surprise=1)


def test_a_model_that_writes_anything(client) -> None:
    """Bytes that are no text, special tokens and HTML arrive unchanged."""
    text = "</script><img src=x onerror=alert(1)>é😀\n"
    with TestClient(create_app(Script(lambda _: text.encode() + b"\xff"))) as other:
        found = generated(
            other, constraint={"kind": "none"}, prompt="x\x02", chat=False, temperature=0, max_tokens=200
        )
    tokens = of("token", found)
    data = b"".join(t["text"].encode() if "text" in t else bytes(t.get("bytes", [])) for t in tokens)
    assert data == text.encode() + b"\xff" and tokens[-1]["name"] == "end"
    assert of("end", found)[0]["text"] == text + "\ufffd"


# ---- constraints ----


def marked(text: str, place: dict) -> str:
    """Returns the text that a browser marks: `start` and `end` count UTF-16 units."""
    return text.encode("utf-16-le")[2 * place["start"] : 2 * place["end"]].decode("utf-16-le")


@pytest.mark.parametrize(
    "kind, text, mark",
    [
        ("schema", '{"type": }', "}"),
        ("schema", '{"😀": 1, "properties": {"a": {"pattern": "(a"}}}', '"pattern"'),
        ("schema", '{"allOf": [{}, {"type": "string", "pattern": "(a)\\\\1"}]}', '"pattern"'),
        ("regex", "é😀(a", "("),
        ("grammar", 'root ::= "😀" foo\n', "f"),
        ("grammar", 'start: "a"\n  | bar', "b"),
        ("tools", '[{"type":"function","function":{"name":"a","parameters":{"pattern":"("}}}]', '"pattern"'),
    ],
)
def test_errors_are_marked_where_the_engine_names_them(client, kind, text, mark) -> None:
    error = refused(client.post(API + "compile", json={"kind": kind, "text": text}))
    assert marked(text, error["place"]) == mark
    assert "\n" not in error.get("reason", "")


@pytest.mark.parametrize("kind", ["schema", "grammar", "tools"])
@pytest.mark.parametrize("text", ["", " ", "null", "[" * 5000, "\ud800", "{}", "[]", "[1]", "\x00"])
def test_texts_that_are_no_constraint(client, kind, text) -> None:
    # JSON can hold half a surrogate pair, but TestClient cannot write it.
    body = json.dumps({"kind": kind, "text": text})
    response = client.post(API + "compile", content=body, headers={"Content-Type": "application/json"})
    if kind == "schema" and text == "{}":
        assert ok(response)["least_tokens"] == 2
    else:
        refused(response)


def test_the_report_of_what_is_enforced(client) -> None:
    text = '{"type": "object",\n "x-note": 1,\n "properties": {"a": {"type": "integer"}}, "required": ["a"]}'
    found = ok(client.post(API + "compile", json={"kind": "schema", "text": text}))
    (entry,) = found["report"]
    assert (entry["pointer"], entry["keyword"]) == ("", "x-note") or entry["pointer"] == "/x-note"
    assert marked(text, entry["place"]) == '"x-note"' and entry["place"]["line"] == 2
    assert found["shortest"] == '{"a":0}' and found["seconds"]["first_mask"] > 0
    assert ok(client.post(API + "compile", json=DATE))["captures"] == []
    assert ok(client.post(API + "compile", json={"kind": "none"}))["seconds"] is None


def random_json(rng: random.Random, depth: int = 0):
    kind = rng.randrange(7 if depth < 4 else 4)
    if kind == 0:
        return rng.choice(["", "a:b,{}", 'q"\\', "é😀", "\n"])
    if kind == 1:
        return rng.choice([0, -1.5e3, 12])
    if kind == 2:
        return rng.choice([True, None])
    if kind <= 4:
        return [random_json(rng, depth + 1) for _ in range(rng.randrange(4))]
    keys = rng.sample(["a", "b/c", "~", "", "é😀", 'x"y', "0"], rng.randrange(4))
    return {key: random_json(rng, depth + 1) for key in keys}


def test_pointers_lead_to_their_keys() -> None:
    """A pointer leads to the text of its key or item. The test tries every pointer of random documents in
    three layouts."""
    rng = random.Random(0)

    def walk(value, pointer, check):
        items = (
            enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
        )
        for key, inner in items:
            step = str(key).replace("~", "~0").replace("/", "~1")
            check(f"{pointer}/{step}", key, inner)
            walk(inner, f"{pointer}/{step}", check)

    for _ in range(200):
        document = random_json(rng)
        for indent, ascii_ in ((None, True), (2, False), (None, False)):
            text = json.dumps(document, indent=indent, ensure_ascii=ascii_)
            pointers = places.Pointers(text)

            def check(pointer, key, inner, pointers=pointers, text=text):
                found = marked(text, pointers.place(pointer).told())
                if isinstance(key, str):
                    assert json.loads(found) == key
                elif isinstance(inner, (dict, list)):
                    assert found == ("{" if isinstance(inner, dict) else "[")
                else:
                    assert json.loads(found) == inner

            walk(document, "", check)
            assert pointers.place("").start == 0
    for text in ("", "{", '{"a" 1}', "]", '{"a":1}}', "{1:2}", '["a"'):
        places.Pointers(text).place("/a")  # must raise no error


# ---- documents ----


def test_a_document_is_checked_with_place_reason_and_what_could_stand_there(client) -> None:
    document = '\n {"customer": "😀",\n "items": [{"product": "x", "quantity": "two"}]}'
    found = ok(client.post(API + "check", json={"constraint": SCHEMA, "document": document}))
    assert found["verdict"] == "rejected" and found["place"]["line"] == 3
    assert document.encode("utf-16-le")[2 * found["place"]["start"] :].decode("utf-16-le").startswith('"two"')
    (cause,) = found["causes"]
    assert cause["pointer"].endswith("/quantity/type") and marked(ORDER, cause["place"]) == '"type"'
    assert "`-`" in found["allowed"] and found["instance"] == "/items/0/quantity"


def test_without_the_mask_the_prompt_is_the_same(client) -> None:
    asked = {"constraint": SCHEMA, "prompt": TEXT, "temperature": 0}
    masked, free = (generated(client, **asked, masked=masked) for masked in (True, False))
    assert masked[0]["prompt_tokens"] == free[0]["prompt_tokens"] and free[0]["compiled"] is None
    assert free[-1]["text"] == masked[-1]["text"]  # the model writes this text without a mask, too
    limits = {"kind": "schema", "text": examples()[0]["text"]}
    (*_, end) = generated(
        client, constraint=limits, prompt=examples()[0]["prompt"], masked=False, temperature=0
    )
    assert json.loads(end["text"])["city"] == "Lisbon"
    tools = {"kind": "tools", "text": next(e["text"] for e in examples() if e["kind"] == "tools")}
    masked, free = (
        generated(
            client, constraint=tools, prompt="Start a timer for 12 minutes", masked=masked, temperature=0
        )
        for masked in (True, False)
    )
    assert masked[0]["prompt_tokens"] == free[0]["prompt_tokens"] and not free[-1]["calls"]


@pytest.mark.parametrize("number", range(len(examples())))
def test_examples_compile_and_their_documents_are_told_about(client, number) -> None:
    one = examples()[number]
    typed = {"kind": one["kind"], "text": one["text"], "tool_choice": one.get("tool_choice", "auto")}
    ok(client.post(API + "compile", json=typed))
    found = ok(client.post(API + "check", json={"constraint": typed, "document": one["document"]}))
    assert found["verdict"] in ("rejected", "incomplete") and found["allowed"]
    # The shortest completion completes the text, if the answer holds it whole and unescaped.
    rest = found["shortest"]
    if found["verdict"] == "incomplete" and rest and not rest.endswith("...") and "\\" not in rest:
        body = {"constraint": typed, "document": one["document"] + rest}
        assert ok(client.post(API + "check", json=body))["verdict"] == "accepted"


def test_accepted_documents(client) -> None:
    whole = sg.generate(None, TEXT, ORDER)
    for text in (whole.text, json.dumps(whole.value, indent=4) + "\n"):
        assert ok(client.post(API + "check", json={"constraint": SCHEMA, "document": text})) == {
            "verdict": "accepted"
        }
    body = {"constraint": {"kind": "none"}, "document": "anything"}
    assert ok(client.post(API + "check", json=body))["verdict"] == "accepted"


# ---- a place in the text ----


def test_why_tokens_are_refused_and_what_may_come(client) -> None:
    vocabulary = language_model(None).vocabulary
    found = generated(client, constraint=SCHEMA, prompt=TEXT, temperature=0)
    tokens = [t["id"] for t in of("token", found)]
    text = b""
    number = 0
    while not text.endswith(b'"quantity":'):
        text += vocabulary.tokens[tokens[number]]
        number += 1
    quote = next(i for i, t in enumerate(vocabulary.tokens) if t == b'"')
    end = vocabulary.eos_token_ids[0]
    body = {"constraint": SCHEMA, "tokens": tokens[:number], "refused": [quote, end], "left": 100}
    told = ok(client.post(API + "look", json=body))
    assert told["state"]["pointer"] == "/items/0/quantity" and told["state"]["may_end"] is False
    assert [one["id"] for one in told["refused"]] == [quote, end]
    assert "must be an integer" in told["refused"][0]["reason"]
    assert "may not end here" in told["refused"][1]["reason"]
    # If the grammar allows a forbidden token, the number of tokens left is the reason.
    matcher = compiled(SCHEMA).matcher()
    assert matcher.accept_tokens(tokens[:number])
    least = told["state"]["least_tokens"]
    assert least == matcher.token_bounds()[0]
    minus = next(i for i, t in enumerate(vocabulary.tokens) if t == b"-")
    told = ok(client.post(API + "look", json={**body, "refused": [minus], "left": least}))
    assert f"within the {least} tokens" in told["refused"][0]["reason"]
    # Behind the last token the state is ended. Tokens that the grammar refuses are an error.
    assert "ended" in ok(client.post(API + "look", json={**body, "tokens": tokens}))["state"]["next"]
    refused(client.post(API + "look", json={**body, "tokens": [quote, quote, quote]}))
    refused(client.post(API + "look", json={**body, "tokens": [10**9]}))


def test_a_grammar_says_what_it_wants_instead(client) -> None:
    vocabulary = language_model(None).vocabulary
    letter = next(i for i, t in enumerate(vocabulary.tokens) if t == b"x")
    found = ok(client.post(API + "look", json={"constraint": DATE, "tokens": [], "refused": [letter]}))
    assert found["refused"][0]["reason"] == "the grammar wants `20`"
    assert found["state"]["forced"] == "20"


# ---- the page and its files ----


def test_the_page_is_kept_to_itself(client) -> None:
    for path in ("/", "/docs", "/playground/main.js", "/playground/style.css", "/playground/icon.svg"):
        response = client.get(path)
        assert response.status_code == 200 and response.content
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert "require-trusted-types-for 'script'" in policy and "frame-ancestors 'none'" in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        tag = response.headers["etag"]
        assert client.get(path, headers={"If-None-Match": tag}).status_code == 304
    for path in (
        "/playground/nothing.js",
        "/playground/..%2fapp.py",
        "/playground/%2e%2e/app.py",
        "/playground/",
    ):
        assert client.get(path).status_code == 404
    refused(client.get("/playground/__init__.py"), 404)


def test_the_files_of_the_page_load_and_make_nothing_else() -> None:
    """The page names no other origin, sets no string as HTML and has no script in its HTML. Its imports
    exist."""
    folder = importlib.resources.files("structgen.serve") / "page"
    names = {entry.name for entry in folder.iterdir()}
    for entry in folder.iterdir():
        text = entry.read_text("utf-8")
        addresses = set(re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", text))
        assert addresses <= {"http://www.w3.org", "//www.w3.org"}, entry.name
        if entry.name.endswith(".js"):
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(", text
            )
            assert set(re.findall(r'from "\./([^"]+)"', text)) <= names
        if entry.name.endswith(".html"):
            assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>|<style|\sstyle=|\son[a-z]+=", text)
            assert set(re.findall(r'(?:src|href)="/playground/([^"]+)"', text)) <= names
            ids = re.findall(r'\bid="([^"]+)"', text)
            assert len(ids) == len(set(ids))


def test_the_page_has_the_elements_that_its_scripts_ask_for() -> None:
    folder = importlib.resources.files("structgen.serve") / "page"
    html = (folder / "index.html").read_text("utf-8")
    ids = set(re.findall(r'\bid="([^"]+)"', html)) | {"constraint", "document"}
    for name in ("main.js", "tokens.js"):
        assert set(re.findall(r'by\("([^"]+)"\)', (folder / name).read_text("utf-8"))) <= ids


def test_keys_and_sizes(client) -> None:
    with TestClient(create_app(Script(lambda _: "x"), api_keys=("secret",), body_bytes=2000)) as other:
        for entry in (importlib.resources.files("structgen.serve") / "page").iterdir():
            assert other.get(f"/playground/{entry.name}").status_code == 200
        assert other.get("/").status_code == 200
        refused(other.get(API + "info"), 401)
        assert ok(other.get(API + "info", headers={"Authorization": "Bearer secret"}))["model"]
        refused(other.post(API + "compile", json=DATE), 401)
        headers = {"Authorization": "Bearer secret"}
        refused(other.post(API + "compile", json={"kind": "regex", "text": "a" * 3000}, headers=headers), 413)
    refused(client.post(API + "compile", json={"kind": "regex", "text": "a" * 1_000_001}))


def test_a_compile_that_hangs_is_given_up(monkeypatch) -> None:
    """A compile that hangs is stopped, because every endpoint compiles in workers with a time limit."""
    regex, release = sg.Compiler.regex, threading.Event()

    def hanging(self, pattern, **options):
        if pattern == "hang":
            release.wait(20)
        return regex(self, pattern, **options)

    monkeypatch.setattr(sg.Compiler, "regex", hanging)
    typed = {"kind": "regex", "text": "hang"}
    with TestClient(create_app(Script(lambda _: "x"), compile_seconds=0.2, compile_workers=1)) as other:
        for path, body in (
            ("compile", typed),
            ("check", {"constraint": typed, "document": "h"}),
            ("look", {"constraint": typed, "tokens": []}),
            ("generate", {"constraint": typed, "prompt": "x"}),
        ):
            assert refused(other.post(API + path, json=body))["code"] == "grammar_too_costly"
        release.set()
        body = {"kind": "regex", "text": "[a-z]"}
        assert ok(other.post(API + "compile", json=body))["least_tokens"] == 2


def test_random_bodies_end_in_an_answer_or_a_4xx(client) -> None:
    rng = random.Random(1)
    values = [
        None,
        True,
        0,
        -1,
        1e308,
        "",
        "a",
        "\x00",
        [],
        {},
        [[]],
        {"kind": "regex"},
        DATE,
        SCHEMA,
        "auto",
        10**30,
    ]
    fields = {
        "compile": ("kind", "text", "whitespace", "property_order", "tool_choice"),
        "check": ("constraint", "document"),
        "look": ("constraint", "tokens", "refused", "left"),
        "generate": (
            *("constraint", "prompt", "chat", "method", "speculate", "n", "seed", "temperature", "top_k"),
            "top_p",
        ),
    }
    good = {
        "compile": DATE,
        "check": {"constraint": DATE, "document": "20"},
        "look": {"constraint": DATE, "tokens": []},
        "generate": {"constraint": DATE, "prompt": "x", "max_tokens": 12},
    }
    for wrong in (True, False, "1", 1.5, -1):
        assert (
            client.post(API + "generate", json={**good["generate"], "confidence": wrong}).status_code == 400
        )
    statuses = set()
    for number in range(240):
        path = list(fields)[number % 4]
        body = dict(good[path])
        for _ in range(rng.randrange(3)):
            body[rng.choice(fields[path])] = rng.choice(values)
        response = client.post(API + path, json=body)
        assert response.status_code in (200, 400), (path, body, response.text)
        assert "Traceback" not in response.text
        statuses.add((path, response.status_code))
    assert len(statuses) == 8


def test_a_client_that_leaves_ends_its_generation() -> None:
    model = Script(lambda _: "a" * 5000, seconds=0.002)
    with TestClient(create_app(model)) as other:
        body = {"constraint": {"kind": "none"}, "prompt": "x\x02", "chat": False, "max_tokens": 4000}
        with other.stream("POST", API + "generate", json=body) as response:
            next(response.iter_lines())
        service = other.app.state.service
        until = time.monotonic() + 10
        while service.engine.load != (0, 0) and time.monotonic() < until:
            time.sleep(0.02)
        assert service.engine.load == (0, 0)


def test_the_command_opens_the_page(tmp_path) -> None:
    opened = tmp_path / "opened"
    script = tmp_path / "browser.py"
    script.write_text(f"import sys\nopen({str(opened)!r}, 'w').write(sys.argv[1])\n")
    environment = {**os.environ, "BROWSER": f"{sys.executable} {script} %s"}
    process = subprocess.Popen(
        [sys.executable, "-m", "structgen", "playground"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        until = time.monotonic() + 60
        while not opened.exists() or not opened.read_text():
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.05)
        import urllib.request

        with urllib.request.urlopen(opened.read_text()) as page:
            assert b"structgen playground" in page.read()
    finally:
        process.terminate()
        assert "playground is at http://127.0.0.1:" in process.communicate(timeout=30)[1]
