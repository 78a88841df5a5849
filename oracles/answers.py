"""Random requests to a server, and judges of the answers.

Input: a seed. Output: a path, a body, and the conditions on the answer's texts. The judges share no code with
the engine: `jsonschema` with structgen's oracle, Python's `re`, and lists. `wrong` checks an answer's texts,
counts and finish reasons. A stream is assembled as a client assembles it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from oracles import strategies
from oracles.oracle import JsonOracle

CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
PROMPTS = [
    "Maria Lopez ordered 3 oak chairs, ship to Lisbon",
    "x",
    "What is the weather in Paris?",
    "größer \U0001f469\u200d\U0001f680 \u0645\u0631\u062d\u0628\u0627 e\u0301",
    "a\nb\tc",
]
PATTERNS = [
    "[ab]{3,9}", r"\d{1,4}(\.\d+)?", "(yes|no|maybe)!?", "[a-z]+@[a-z]+\\.(com|org)", "ä{2}ß?|€",
    "(\\w+ ){2,5}\\w+", "\U0001f600{1,3}", "[^a-z]{4}", "(?P<x>a+)b",
]  # fmt: skip
TEXTS = ["yes", "no", "", "größer", "\U0001f600", "a" * 40, "yes, but", '"', "\\", "\n"]
STOPS = ["a", "1", '"', " ", "},", "es", "\U0001f600", "öß", "ab", "END", "\n", "\\", "e\u0301"]
# Errors that a random schema may rightly cause.
REFUSED = {
    "unsatisfiable_schema", "schema_too_complex", "grammar_too_costly", "max_tokens_too_small",
    "unsupported_schema", "invalid_grammar",
}  # fmt: skip


@dataclass
class Asked:
    """A request. `fits` tells whether a finished text is right; with None every text is right."""

    path: str
    body: dict[str, Any]
    fits: Callable[[str], bool] | None = None
    tools: dict[str, Callable[[str], bool]] = field(default_factory=dict)

    @property
    def limit(self) -> int:
        names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
        return next(self.body[name] for name in names if name in self.body)


@dataclass
class Text:
    """One finished text of an answer. `logged`: the bytes of the tokens' log-probabilities, or None if not
    requested."""

    text: str = ""
    finish: str | None = None
    stop: Any = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    logged: list[bytes] | None = None


def oracle(schema: Any) -> Callable[[str], bool]:
    return JsonOracle(schema).accepts


def asked(seed: int) -> Asked:
    """Returns the request of one seed."""
    c = random.Random(seed)
    path = c.choice([CHAT, CHAT, COMPLETIONS, RESPONSES])
    limit = c.choice([3, 20, 60, 60, 120])
    prompt = c.choice(PROMPTS)
    if path == CHAT:
        body: dict[str, Any] = {"messages": [{"role": "user", "content": prompt}]}
        body[c.choice(["max_tokens", "max_completion_tokens"])] = limit
    elif path == COMPLETIONS:
        body = {"prompt": prompt, "max_tokens": limit}
    else:
        body = {"input": prompt, "max_output_tokens": limit}
    out = Asked(path, body)
    _constrain(c, seed, out)
    body["temperature"] = c.choice([0, 0.5, 1, 1.5])
    body["seed"] = c.choice([0, 1, 5, -3, 2**63, 10**25])
    if c.random() < 0.3:
        body["top_p"] = c.choice([0.0, 0.3, 0.99, 1.0])
    if path != RESPONSES:
        _draw(c, out)
    elif c.random() < 0.3:
        body["top_logprobs"] = c.randrange(5)
    return out


def _constrain(c: random.Random, seed: int, out: Asked) -> None:
    body, kind = (
        out.body,
        c.choice(["schema", "schema", "schema", "regex", "choice", "grammar", "tools", "none"]),
    )
    if kind == "tools" and out.path == COMPLETIONS:
        kind = "schema"
    if kind == "schema":
        schema = strategies.schema(strategies.Seeded(seed))
        format_ = {"type": "json_schema", "name": "x", "schema": schema}
        if out.path == RESPONSES:
            body["text"] = {"format": format_}
        else:
            del format_["name"], format_["schema"]
            format_ |= {"json_schema": {"name": "x", "schema": schema}}
            body |= c.choice(
                [
                    {"response_format": format_},
                    {"guided_json": schema},
                    {"structured_outputs": {"json": schema}},
                ]
            )
        if c.random() < 0.4:
            body["structgen"] = c.choice(
                [{"whitespace": "flexible"}, {"property_order": "any"}, {"strings": "any", "numbers": "any"}]
            )
        out.fits = oracle(schema)
    elif kind == "regex":
        pattern = c.choice(PATTERNS)
        body["guided_regex"] = pattern
        out.fits = lambda text: re.fullmatch(pattern, text) is not None
    elif kind == "choice":
        texts = c.sample(TEXTS, c.randrange(1, 5))
        body["structured_outputs"] = {"choice": texts}
        out.fits = lambda text: text in texts
    elif kind == "grammar":
        body["grammar"] = 'root ::= "(" root ")" | [0-9]+ ("+" root)?'
        out.fits = _sum
    elif kind == "tools":
        schemas = {f"f{i}": strategies.keyed(strategies.Seeded(seed + i)) for i in range(c.randrange(1, 3))}
        functions = [{"name": name, "parameters": schema} for name, schema in schemas.items()]
        body["tools"] = [
            {"type": "function", **f} if out.path == RESPONSES else {"type": "function", "function": f}
            for f in functions
        ]
        body["tool_choice"] = "required"
        body["parallel_tool_calls"] = c.choice([True, False])
        out.tools = {name: oracle(schema) for name, schema in schemas.items()}


def _draw(c: random.Random, out: Asked) -> None:
    """Adds fields that only the older endpoints have, and `/v1/responses` does not."""
    few: dict[str, Any] = {
        "n": c.choice([1, 2, 5]),
        "top_k": c.choice([-1, 1, 40]),
        "min_p": c.choice([0.0, 0.2]),
        "frequency_penalty": c.choice([-2, 2]),
        "presence_penalty": c.choice([-2, 2]),
        "repetition_penalty": c.choice([0.5, 2.0]),
        "logit_bias": {str(i): c.choice([-100, 100]) for i in c.sample(range(2048), c.randrange(300))},
    }
    body = out.body
    body |= {name: few[name] for name in c.sample(sorted(few), c.randrange(4))}
    if c.random() < 0.25:
        body["stop"] = c.choice([c.choice(STOPS), c.sample(STOPS, 4)])
        body["include_stop_str_in_output"] = c.choice([True, False])
    elif c.random() < 0.5:
        body["logprobs"] = True if out.path == CHAT else c.randrange(3)


def _sum(text: str) -> bool:
    """Returns whether a text matches `root ::= "(" root ")" | [0-9]+ ("+" root)?`."""
    while True:
        if text.startswith("(") and text.endswith(")"):
            text = text[1:-1]
        elif found := re.match("[0-9]+", text):
            text = text[found.end() :]
            if not text:
                return True
            if not text.startswith("+"):
                return False
            text = text[1:]
        else:
            return False


# ---- answers ----


def texts_of(asked: Asked, answer: dict[str, Any]) -> list[Text]:
    """Returns the texts of an answer that is no stream."""
    if asked.path == RESPONSES:
        return [_response(answer)]
    found = []
    for choice in sorted(answer["choices"], key=lambda choice: choice["index"]):
        message = choice.get("message", {})
        text = (message.get("content") or "") if asked.path == CHAT else choice["text"]
        made = Text(text, choice["finish_reason"], choice.get("stop_reason"))
        made.calls = [call["function"] for call in message.get("tool_calls", [])]
        made.logged = _logged(asked, choice.get("logprobs"))
        found.append(made)
    return found


def _response(answer: dict[str, Any]) -> Text:
    made = Text(finish="stop" if answer["status"] == "completed" else "length")
    for item in answer["output"]:
        if item["type"] == "function_call":
            made.calls.append({"name": item["name"], "arguments": item["arguments"]})
        else:
            made.text += "".join(part["text"] for part in item["content"])
    return made


def _logged(asked: Asked, logprobs: Any) -> list[bytes] | None:
    if logprobs is None:
        return None
    if asked.path == CHAT:
        return [bytes(entry["bytes"]) for entry in logprobs["content"] or []]
    return [text.encode() for text in logprobs["tokens"]]


def joined(asked: Asked, lines: list[str]) -> tuple[list[Text], dict[str, Any]]:
    """Returns the texts and the usage of a stream, from its `data:` lines."""
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    if asked.path == RESPONSES:
        last = events[-1]["response"]
        written = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
        made = _response(last)
        assert written == made.text, "the deltas of a stream are not its text"
        return [made], last["usage"]
    texts = [Text() for _ in range(asked.body.get("n", 1))]
    for event in events:
        for choice in event["choices"]:
            made = texts[choice["index"]]
            assert made.finish is None, "a piece after the end"
            delta = choice.get("delta", {})
            made.text += (delta.get("content") or "") if asked.path == CHAT else choice["text"]
            for part in delta.get("tool_calls", []):
                if "id" in part:
                    assert part["index"] == len(made.calls)
                    made.calls.append({"name": part["function"]["name"], "arguments": ""})
                made.calls[part["index"]]["arguments"] += part["function"]["arguments"]
            if (logged := _logged(asked, choice.get("logprobs"))) is not None:
                made.logged = (made.logged or []) + logged
            made.finish, made.stop = choice["finish_reason"], choice.get("stop_reason")
    return texts, events[-1]["usage"]


def wrong(asked: Asked, texts: list[Text], usage: dict[str, Any]) -> str | None:
    """Returns a description of the first fault of a whole answer, or None."""
    body = asked.body
    if len(texts) != body.get("n", 1):
        return f"{len(texts)} answers"
    names = (
        ("input_tokens", "output_tokens")
        if asked.path == RESPONSES
        else ("prompt_tokens", "completion_tokens")
    )
    drawn = usage[names[1]]
    if usage["total_tokens"] != usage[names[0]] + drawn or not 0 < drawn <= asked.limit * len(texts):
        return f"counts {usage}"
    stops = [body["stop"]] if isinstance(body.get("stop"), str) else body.get("stop", [])
    for made in texts:
        if said := _wrong(asked, made, stops):
            return f"{said}: {made}"
    if all(made.logged is not None for made in texts) and not asked.tools:
        # The token that ends a text is drawn, but has no entry.
        logged = [made.logged or [] for made in texts]
        ends = sum(made.finish == "stop" for made in texts)
        if drawn != sum(map(len, logged)) + ends:
            return f"{drawn} tokens, {sum(map(len, logged))} entries and {ends} ends"
        for entries, made in zip(logged, texts, strict=True):
            if asked.path == CHAT and b"".join(entries).decode("utf-8", "replace") != made.text:
                return "the entries are not the text"
    elif len(texts) == 1 and texts[0].finish == "length" and drawn != asked.limit:
        return f"cut off after {drawn} of {asked.limit} tokens"
    return None


def _wrong(asked: Asked, made: Text, stops: list[str]) -> str | None:
    constrained = asked.fits is not None or bool(asked.tools)
    if made.finish not in ("stop", "length", "tool_calls"):
        return "no reason to end"
    if "\ufffd" in made.text and constrained:
        return "half a character"
    if made.stop is not None:
        if made.stop not in stops or made.finish != "stop":
            return "another stop string"
        kept = made.stop if asked.body.get("include_stop_str_in_output") else ""
        if not made.text.endswith(kept) or any(
            stop in made.text[: len(made.text) - len(kept)] for stop in stops
        ):
            return "the text goes on after a stop string"
        return None
    if any(stop in made.text for stop in stops):
        return "a stop string was passed by"
    if not constrained:
        return None
    if made.finish == "length":
        return "cut off"
    if asked.tools:
        reason = "stop" if asked.path == RESPONSES else "tool_calls"
        # text may follow a call in styles without an end for all calls
        if made.finish != reason or not made.calls:
            return "no call"
        if asked.body["parallel_tool_calls"] is False and len(made.calls) != 1:
            return "several calls"
        for call in made.calls:
            if call["name"] not in asked.tools or not asked.tools[call["name"]](call["arguments"]):
                return "a call that is not valid"
        return None
    assert asked.fits is not None
    return None if asked.fits(made.text) else "not valid"
