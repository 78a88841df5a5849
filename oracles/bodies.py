"""Random and hostile request bodies of clients, mistaken clients and attackers.

Input: a seed. Output: a method, a path, a body as bytes, and headers. Every draw is a request of some form in
which fields are missing, mistyped or huge, or hold a hostile constraint.
"""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

from oracles import attack, closed

TEXTS = [
    *("", "x", "\x00", "\ud800", "\U0001f600", "a" * 5_000, "<|answer|>", "</s>", "[1, 2", '{"a": 1}'),
    *("../../etc/passwd", "http://127.0.0.1/", "\u202e", "auto", "none", "required", "1e999"),
    *("'; DROP TABLE", "{{ 7 * 7 }}", "%s%n", "json", "e\u0301\u0301\u0301" * 50),
    *("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\ufeff\u2028\u2029\x85", "\u05d0\u0627\u202ba\u200f"),
    *("\uffff\ufdd0\U0010ffff", "data: [DONE]\n\ndata: {}\n\n"),
]
NUMBERS = [
    *(0, 1, -1, 2, 3.5, 1e308, -1e308, 1e-320, 10**30, -(10**30), 2**63, 2**31, 128, 129, 4096, True),
    False,
]
PATTERNS = [
    *("[ab]{3}", "(", "a{1000000}", "(a|b)*c", r"\d+(\.\d+)?", "(?=a)b", r"(a)\1", "[^]", "(?P<x>a)"),
    *("((((a*)*)*)*)*", "\\", "[\ud800-\udfff]", "^$", "(.*[a-f].{12}[b-k].*){2,60}", "x{0}", "(?i)a"),
    r"\p{L}",
]
GRAMMARS = [
    *('root ::= "a"', "root ::= root", 'root ::= [^"]* "', 'start: "a"+', 'start: /a/ x\nx: "b" | x x'),
    *("%import common.WS\nstart: WS", 'root ::= "\\x00"{1,999999}', "", "::="),
    *('start: %json {"type": "integer"}', 'root ::= ("a" | root "b")* root?'),
    *("%import .secret.X\nstart: X", "start: <|answer|>"),
]
SCHEMAS: list[Any] = [
    {},
    True,
    False,
    {"type": "integer"},
    {"type": "strin"},
    {"required": "a"},
    {"$ref": "#"},
    {"$ref": "file:///etc/passwd"},
    {"$ref": "http://127.0.0.1/x"},
    {"$ref": "#/definitions/~2"},
    {"allOf": []},
    {"enum": []},
    {"const": "\ud800"},
    {"minimum": 5, "maximum": 3},
    {"pattern": "("},
    {"multipleOf": 0},
    {"type": "array", "minItems": 10**9},
    {"type": "string", "minLength": 10**7},
    {"$schema": 5},
    {"$id": "::"},
    {"properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    {"not": {}},
    {"if": {"type": "integer"}, "then": False},
    {"type": ["integer", "null"]},
    {"format": "regex"},
    {"type": "object", "patternProperties": {"(": {}}},
    {"type": "number", "multipleOf": 1e-300},
    {"oneOf": [{}, {}]},
    {"type": "array", "uniqueItems": True, "items": {"enum": list(range(300))}, "contains": {"const": 3}},
    {"enum": [10**400, -0.0, 1e999]},
    [],
    [{}],
    "schema",
    None,
    5,
    {"type": "object", "properties": []},
    {"type": "object", "properties": {"a": 5}, "required": [5, "a", None]},
    {"type": "object", "properties": {"a": {"type": "text"}}},
    {"type": {}},
    {"anyOf": [], "oneOf": [5], "allOf": {}},
    {"$defs": 5, "$ref": "#/$defs/a"},
    {"$ref": 5},
    {"enum": {}},
    {"const": {"a": [None, 1e308, "\ud800"]}},
    {"minLength": "3", "maxLength": -1, "type": "string"},
    {"minItems": 3, "maxItems": 1, "type": "array"},
    {"format": "nothing", "x": 1, "unknown": {"type": []}},
    {"properties": {"\ud800": {}, "": {}, "\x00": {}, "a" * 5_000: {}}, "required": ["\ud800"]},
]


def nested(depth: int, key: str = "items") -> Any:
    """Returns a schema nested `depth` times."""
    made: Any = {}
    for _ in range(depth):
        made = {key: [made] if key in ("allOf", "anyOf", "oneOf") else made}
    return made


DEPTHS = [5, 60, 200, 300]
UNKNOWN = [
    *("user", "store", "x", "guided_jsn", "response_formt", "\ud800", "", "a" * 300, "metadata", "format"),
    *("functions", "suffix"),
]


def hostile(name: str, salt: int) -> dict[str, Any]:
    """Returns a constraint with slow masks or a slow compile, of one of five kinds. Each salt gives a new
    grammar."""
    if name == "masks":
        k = 12 + salt % 9
        text = f"(.*[a-f].{{{k}}}[b-k].*|.*[c-h].{{{k + 1}}}[a-c].*|[a-e ]{{50,{100 + salt}}}){{2,60}}"
        return {"guided_regex": text}
    if name == "counters":
        text = "[a-z]"
        for i in range(6):
            text = f"({text}{{2,{12 + i + salt % 50}}}[a-m]?)"
        return {"guided_regex": text + f"{{1,{1 + salt}}}"}
    patterns: list[Any]
    if name == "strings":
        patterns = [{"not": {"pattern": f"[a-f].{{{16 + j}}}[b-k]"}} for j in range(12)]
        item = {"type": "string", "minLength": 60 + salt % 50, "allOf": patterns}
        return {"guided_json": {"type": "array", "minItems": 40 + salt, "items": item}}
    if name == "compiles":
        names = [f"p{i}" for i in range(30)]
        values = {
            name: {
                "allOf": [
                    {"type": "string", "pattern": f"[a-f].{{{12 + j + i % 5}}}[b-k]{salt + i}"}
                    for j in range(8)
                ]
            }
            for i, name in enumerate(names)
        }
        return {"guided_json": {"type": "object", "properties": values, "required": names}}
    if name == "items":
        listed = {
            "type": "array",
            "uniqueItems": True,
            "minItems": 20,
            "items": {"enum": list(range(salt, 800 + salt))},
        }
        return {"guided_json": {**listed, "contains": {"maximum": salt + 30}, "maxContains": 9}}
    raise ValueError(f"no hostile constraint is called {name!r}")


class Request(NamedTuple):
    method: str
    path: str
    body: bytes
    headers: dict[str, str]


class Bodies:
    """The requests of one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def request(self) -> Request:
        c = self.chance
        path, body = c.choice(
            [self.chat, self.chat, self.completion, self.response, self.message, self.typed]
        )()
        if not path.startswith("/playground") and c.random() < 0.2:
            body |= self.thoughts()
        for _ in range(c.choice([0, 0, 0, 0, 1, 2, 4])):
            self.break_one(body)
        data = json.dumps(body).encode()
        if c.random() < 0.05:
            at = c.randrange(len(data) + 1)
            data = c.choice(
                [
                    data[:at],
                    data[:at] + bytes([c.randrange(256)]) + data[at:],
                    b"[" * 3_000,
                    b"",
                    b"null",
                    data * 2,
                ]
            )
        headers = {"Content-Type": "application/json"}
        if c.random() < 0.03:
            headers = c.choice(
                [{}, {"Content-Type": "text/plain"}, {"Content-Type": "application/json; charset=x"}]
            )
        method = c.choice(["GET", "PUT", "DELETE", "OPTIONS"]) if c.random() < 0.02 else "POST"
        if c.random() < 0.05:
            path = c.choice(
                [
                    path + "/",
                    path + "/x",
                    "/v1/models/" + "%ff",
                    "/v1",
                    "//",
                    path.upper(),
                    "/v1/models/..%2f",
                ]
            )
        return Request(method, path, data, headers)

    # ---- constraints and messages ----

    def text(self) -> str:
        return self.chance.choice(TEXTS)

    def schema(self) -> Any:
        c = self.chance
        if c.random() < 0.05:
            return nested(c.choice(DEPTHS), c.choice(["items", "not", "allOf", "anyOf", "oneOf", "contains"]))
        if c.random() < 0.3:
            return attack.schema(c.randrange(1_000), 0.5)
        if c.random() < 0.2:
            return closed({self.text(): self.schema()}, ())
        return c.choice(SCHEMAS)

    def constraint(self) -> dict[str, Any]:
        c = self.chance
        schema = self.schema()
        fields: list[dict[str, Any]] = [
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}},
            {"response_format": {"type": "json_object", "schema": schema}},
            {"response_format": {"type": "json_object"}},
            {"guided_json": schema},
            {"guided_json": json.dumps(schema)},
            {"json_schema": schema},
            {"guided_regex": c.choice(PATTERNS)},
            {"guided_choice": [self.text() for _ in range(c.randrange(4))]},
            {"guided_grammar": c.choice(GRAMMARS)},
            {"grammar": c.choice(GRAMMARS)},
            {"structured_outputs": {"json": schema}},
            {"structured_outputs": {"regex": c.choice(PATTERNS), "whitespace_pattern": c.choice(PATTERNS)}},
            {"structured_outputs": {"structural_tag": self.tag()}},
            {"response_format": self.tag()},
            {},
        ]
        return c.choice(fields)

    def tag(self) -> Any:
        c = self.chance
        inner = c.choice(
            [
                {"type": "json_schema", "json_schema": self.schema()},
                {"type": "any_text"},
                {"type": "regex", "pattern": c.choice(PATTERNS)},
                {},
            ]
        )
        tag = {"begin": self.text(), "content": inner, "end": self.text()}
        form: Any = c.choice(
            [
                {"type": "tag", **tag},
                {"type": "triggered_tags", "triggers": [self.text()], "tags": [tag]},
                {"type": "sequence", "elements": [inner, tag]},
                [],
            ]
        )
        return {"type": "structural_tag", "format": form}

    def tools(self) -> dict[str, Any]:
        c = self.chance
        names = [
            c.choice(["f", "get_weather", "", "f", "a b", '"', "x" * 100, "auto"])
            for _ in range(c.randrange(1, 4))
        ]
        tools = [
            {"type": "function", "function": {"name": name, "parameters": self.schema()}} for name in names
        ]
        if c.random() < 0.2:
            tools[0]["function"] |= {"strict": True, "description": self.text()}
        if c.random() < 0.1:
            del tools[0]["function"]["parameters"]
        choice = c.choice(
            [
                "auto",
                "none",
                "required",
                {"type": "function", "function": {"name": names[0]}},
                {"type": "allowed_tools"},
            ]
        )
        return {"tools": tools, "tool_choice": choice, "parallel_tool_calls": c.choice([True, False, None])}

    def drawing(self) -> dict[str, Any]:
        c = self.chance
        few = {
            "temperature": c.choice([0, 0.7, 1, 100]),
            "top_p": c.choice([0, 0.5, 1]),
            "seed": c.choice([0, -1, 2**63, 10**30]),
            "n": c.choice([1, 1, 2, 5, 128, 129, 10**9]),
            "stop": c.choice(
                ["a", ["b", '"'], "\ud800", "", [], [""], self.text(), [self.text()] * 64, ["x"] * 65, [5]]
            ),
            "logit_bias": c.choice(
                [
                    {"5": 100},
                    {str(i): -100 for i in range(2_048)},
                    {str(i): 100 for i in range(0, 2_048, 2)},
                    {"5": 101},
                    {"2048": 1},
                    {"-1": 1},
                    {"0x5": 1, " 5 ": 1, "\u0665": 1, "5.0": 1},
                    {"5": 1e-320, "6": -0.0},
                ]
            ),
            "max_tokens": c.choice([1, 7, 0, -1, 10**9, 2**63, 10**30, 1.0, 1.5]),
            "min_p": c.choice([0, 1, 0.5]),
            "repetition_penalty": c.choice([1e-9, 10, 1]),
            "stop_token_ids": c.choice([[], [5], [10**9], [-1], list(range(64))]),
            "include_stop_str_in_output": True,
            "stream": c.choice([True, False]),
            "stream_options": {"include_usage": True},
            "top_k": c.choice([-1, 0, 5]),
            "presence_penalty": c.choice([-2, 2]),
            "min_tokens": c.choice([0, 1, 3]),
            "ignore_eos": True,
            "structgen": c.choice(
                [
                    {"complete": False},
                    {"whitespace": c.choice(["flexible", "compact", "(", ""])},
                    {"property_order": "any"},
                    {"sampling": {"method": c.choice(["cars", "smc", "auto"]), "max_trials": 20}},
                    {"speculate": "auto"},
                    {"draft": c.choice(["7", "4", 3, "x"])},
                    {"masked_logprobs": True},
                ]
            ),
        }
        return {name: few[name] for name in c.sample(sorted(few), c.randrange(5))}

    # ---- endpoints ----

    def chat(self) -> tuple[str, dict[str, Any]]:
        c = self.chance
        roles = ["user", "user", "system", "assistant", "tool"]
        messages = [{"role": c.choice(roles), "content": self.text()} for _ in range(c.randrange(1, 4))]
        if c.random() < 0.1:
            messages[-1]["content"] = c.choice(
                [[{"type": "text", "text": self.text()}], [{"type": "image_url"}], None, []]
            )
        own = self.tools() if c.random() < 0.3 else {}
        some = {"logprobs": True, "top_logprobs": c.randrange(22)} if c.random() < 0.2 else {}
        limit = {c.choice(["max_tokens", "max_completion_tokens"]): c.choice([1, 5, 20, 40])}
        return "/v1/chat/completions", {
            "messages": messages,
            **limit,
            **self.constraint(),
            **own,
            **some,
            **self.drawing(),
        }

    def completion(self) -> tuple[str, dict[str, Any]]:
        c = self.chance
        prompt = c.choice(
            [self.text(), [self.text(), self.text()], [1, 2, 3], [[1], [2, 5]], [-1], [10**9], []]
        )
        some = (
            {"echo": True, "logprobs": c.randrange(6), "max_tokens": c.choice([0, 3])}
            if c.random() < 0.2
            else {}
        )
        return "/v1/completions", {
            "prompt": prompt,
            "max_tokens": c.choice([1, 5, 30]),
            **self.constraint(),
            **self.drawing(),
            **some,
        }

    def response(self) -> tuple[str, dict[str, Any]]:
        c = self.chance
        items = [
            {"role": "user", "content": [{"type": "input_text", "text": self.text()}]},
            {"type": "function_call_output", "call_id": "x", "output": "y"},
            {"type": "function_call", "name": "f", "arguments": self.text()},
            {"type": "item_reference"},
            {"role": "user", "content": self.text()},
        ]
        given = c.choice([self.text(), c.sample(items, c.randrange(1, 4))])
        text = (
            {"text": {"format": {"type": "json_schema", "name": "x", "schema": self.schema()}}}
            if c.random() < 0.5
            else self.constraint()
        )
        tools = (
            {"tools": [{"type": "function", "name": "f", "parameters": self.schema()}]}
            if c.random() < 0.3
            else {}
        )
        more: dict[str, Any] = {
            "instructions": self.text(),
            "tool_choice": c.choice(["auto", "required", {"type": "function", "name": "f"}, {"type": "x"}]),
            "temperature": c.choice([0, 2, 1e300]),
            "seed": c.choice([0, -(10**30)]),
            "top_logprobs": c.choice([0, 20, 21]),
            "metadata": {"a": self.text()},
            "previous_response_id": c.choice([None, "", "resp_1"]),
            "parallel_tool_calls": c.choice([True, False]),
            "structgen": c.choice(
                [{"complete": False}, {"draft": "4"}, {"speculate": "auto"}, None, {"x": 1}]
            ),
            "store": True,
            "background": c.choice([False, True]),
        }
        return "/v1/responses", {
            "input": given,
            "max_output_tokens": c.choice([1, 5, 30, 30, 10**9, 0]),
            "stream": c.choice([True, False]),
            **text,
            **tools,
            **{name: more[name] for name in c.sample(sorted(more), c.randrange(4))},
        }

    def message(self) -> tuple[str, dict[str, Any]]:
        """Returns a body of Anthropic's interface."""
        c = self.chance
        blocks: list[Any] = [
            {"type": "text", "text": self.text()},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": self.text()}},
            {"type": "tool_result", "tool_use_id": c.choice(["t1", "", "t9"]), "content": self.text()},
            {"type": "thinking", "thinking": self.text(), "signature": self.text()},
            {"type": "image", "source": {"type": "base64", "data": self.text()}},
            {},
        ]
        said = [self.text(), c.sample(blocks, c.randrange(4))]
        tools: list[Any] = [
            {"name": c.choice(["f", "", "a b", "f" * 200]), "input_schema": self.schema()},
            {"name": "f", "inputSchema": self.schema(), "outputSchema": self.schema()},
            {"type": "custom", "name": "g", "input_schema": self.schema(), "strict": True},
            {"type": "mcp_toolset", "mcp_server_name": self.text()},
            {"type": "web_search_20250305", "name": "web_search"},
        ]
        more: dict[str, Any] = {
            "system": c.choice([self.text(), [{"type": "text", "text": self.text()}], [{}]]),
            "tools": c.choices(tools, k=c.randrange(1, 4)),
            "tool_choice": c.choice(
                [{"type": "auto"}, {"type": "any"}, {"type": "tool", "name": "f"}, {}, "any"]
            ),
            "output_config": {"format": {"type": "json_schema", "schema": self.schema()}},
            "stop_sequences": c.choice([[], [self.text()], ["x"] * 70]),
            "temperature": c.choice([0, 2, -1]),
        }
        return c.choice(["/v1/messages", "/v1/messages", "/v1/messages/count_tokens"]), {
            "max_tokens": c.choice([1, 5, 30, 30, 0, 10**9]),
            "messages": [
                {"role": c.choice(["user", "user", "assistant", "system"]), "content": c.choice(said)}
                for _ in range(c.randrange(1, 4))
            ],
            "stream": c.choice([True, False]),
            **{name: more[name] for name in c.sample(sorted(more), c.randrange(4))},
        }

    def thoughts(self) -> dict[str, Any]:
        """Returns fields about thoughts, for every endpoint."""
        c = self.chance
        number = c.choice([0, 1, 7, -1, 10**30, "3"])
        fields: list[dict[str, Any]] = [
            {"reasoning_effort": c.choice(["none", "low", "max", self.text()])},
            {"reasoning": {"effort": "low", "max_tokens": number, "enabled": c.choice([True, False, None])}},
            {"thinking": {"type": c.choice(["enabled", "disabled", "x"]), "budget_tokens": number}},
            {"thinking_token_budget": number},
            {"chat_template_kwargs": {"enable_thinking": c.choice([True, "x"]), "thinking_budget": number}},
            {"include_reasoning": False, "separate_reasoning": c.choice([True, False])},
            {"structgen": {"answer_tokens": number}},
        ]
        return c.choice(fields)

    def typed(self) -> tuple[str, dict[str, Any]]:
        """Returns a body of the playground."""
        c = self.chance
        kind = c.choice(["schema", "regex", "grammar", "tools", "none"])
        text = {
            "schema": json.dumps(self.schema()),
            "regex": c.choice(PATTERNS),
            "grammar": c.choice(GRAMMARS),
            "tools": json.dumps(self.tools()["tools"]),
            "none": "",
        }[kind]
        constraint = {"kind": kind, "text": text}
        name, body = c.choice(
            [
                ("compile", constraint),
                ("check", {"constraint": constraint, "document": self.text()}),
                (
                    "look",
                    {
                        "constraint": constraint,
                        "tokens": [c.randrange(300) for _ in range(c.randrange(3))],
                        "refused": [5],
                    },
                ),
                (
                    "generate",
                    {
                        "constraint": constraint,
                        "prompt": self.text(),
                        "max_tokens": 9,
                        "method": c.choice(["plain", "cars", "smc"]),
                        "n": 3,
                    },
                ),
            ]
        )
        return f"/playground/api/{name}", body

    # ---- mistakes ----

    def junk(self, depth: int = 0) -> Any:
        c = self.chance
        if depth > 3 or c.random() < 0.6:
            return c.choice([None, *TEXTS, *NUMBERS, [], {}])
        if c.random() < 0.5:
            return [self.junk(depth + 1) for _ in range(c.randrange(4))]
        return {
            c.choice(["type", "function", "name", "schema", "format", "role", "x", *UNKNOWN[:6]]): self.junk(
                depth + 1
            )
            for _ in range(c.randrange(4))
        }

    def break_one(self, body: dict[str, Any]) -> None:
        """Changes one field somewhere in the body: another value, no value, or an unknown field."""
        c = self.chance
        where: Any = body
        while isinstance(where, (dict, list)) and where and c.random() < 0.5:
            inner = list(where.values()) if isinstance(where, dict) else where
            inner = [value for value in inner if isinstance(value, (dict, list)) and value]
            if not inner:
                break
            where = c.choice(inner)
        if isinstance(where, list):
            where[c.randrange(len(where))] = self.junk()
        elif c.random() < 0.2 or not where:
            where[c.choice(UNKNOWN)] = self.junk()
        elif c.random() < 0.2:
            del where[c.choice(sorted(where))]
        else:
            where[c.choice(sorted(where))] = self.junk()


def judge(status: int, content_type: str, text: str) -> str | None:
    """Returns a description of an answer's fault, or None. Errors inside of a stream are judged, too."""
    if status >= 500:
        return f"a {status}"
    if "Traceback" in text or 'File "/' in text:
        return "a traceback"
    if content_type.startswith("text/event-stream"):
        for line in text.split("\n"):
            if line.startswith("data: {"):
                event = json.loads(line[6:])
                error = (
                    event.get("error")
                    if event.get("type") != "response.failed"
                    else event["response"]["error"]
                )
                if error is not None and (wrong := _error(error)):
                    return wrong
        return None
    if status < 400:
        return None
    try:
        return _error(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return f"a {status} that is no error of OpenAI's"


def _error(error: Any) -> str | None:
    if not isinstance(error, dict) or not error.get("message") or not isinstance(error.get("code"), str):
        return "an error without a message or a code"
    if error["code"] in ("internal_error", "generation_failed"):
        return "a failure of the server"
    return None


def junk(chance: random.Random, depth: int = 0) -> Any:
    """Returns a random JSON value."""
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
