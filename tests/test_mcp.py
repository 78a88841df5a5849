"""Tools of MCP: every form of a list, names, schemas as they occur in practice, and a session over stdio.

Oracles: jsonschema judges arguments, `parse_tool_calls` reads names, OpenAI's form of the list gives an equal
grammar, and the package `mcp` runs the session.
"""

from __future__ import annotations

import asyncio
import copy
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import structgen as sg
from oracles.harness import verdict
from oracles.mcp_server import LISTED, answered
from structgen.checking import bytes_compiler
from structgen.frontend.tools import STYLES

OPENAI = [
    {"type": "function", "function": {"name": tool["name"], "parameters": tool["inputSchema"]}}
    for tool in LISTED
]
SERVER = Path(__file__).resolve().parents[1] / "oracles" / "mcp_server.py"
pytestmark = pytest.mark.filterwarnings("ignore::structgen.DoubtfulAnswer")


def in_session(use: Callable[[Any], Awaitable[None]]) -> None:
    """Runs a coroutine in a session of the package `mcp` with oracles/mcp_server.py."""
    mcp = pytest.importorskip("mcp", reason="mcp is not installed (the extra `mcp`)")

    async def run() -> None:
        server = mcp.StdioServerParameters(command=sys.executable, args=[str(SERVER)])
        async with mcp.stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            await use(session)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_every_spelling_of_a_list_is_the_same_grammar() -> None:
    compiler = bytes_compiler()
    expected = compiler.tools(OPENAI, "required").serialize()
    anthropic = [{"name": tool["name"], "input_schema": tool["inputSchema"]} for tool in LISTED]
    for given in ({"tools": LISTED}, {"tools": LISTED, "nextCursor": "1"}, LISTED, tuple(LISTED), anthropic):
        assert compiler.tools(given, "required").serialize() == expected


def test_objects_of_the_package_are_taken_as_they_are() -> None:
    types = pytest.importorskip("mcp.types", reason="mcp is not installed (the extra `mcp`)")
    listed = types.ListToolsResult.model_validate({"tools": LISTED})
    compiler = bytes_compiler()
    text = '<tool_call>\n{"name": "timers/set", "arguments": {"minutes": 601}}\n</tool_call>'
    for given in (listed, listed.tools):
        grammar = compiler.tools(given, "required")
        assert not grammar.matcher().accept_bytes(text)
        assert verdict(grammar, text.replace("601", "600"))
        assert sg.parse_tool_calls(text, tools=given).calls[0].name == "timers/set"


def test_the_embedded_model_chooses_and_calls_over_stdio() -> None:
    async def use(session: Any) -> None:
        page, tools = await session.list_tools(), []
        tools += page.tools
        while cursor := getattr(page, "next_cursor", None):
            import mcp.types

            page = await session.list_tools(params=mcp.types.PaginatedRequestParams(cursor=cursor))
            tools += page.tools
        assert [tool.name for tool in tools] == [tool["name"] for tool in LISTED]
        asked = {
            "What is the weather in Paris?": ("get_weather", {"city": "Paris"}),
            "Set a timer for 20 minutes": ("timers/set", {"minutes": 20}),
            "Send an email to ana@example.org with the subject Lunch": (
                'mail "now"',
                {"to": "ana@example.org", "subject": "Lunch"},
            ),
        }
        for prompt, (name, some) in asked.items():
            (call,) = sg.generate(
                None, prompt, tools=tools, tool_choice="required", parallel_tool_calls=False
            ).value.calls
            assert call.name == name and some.items() <= call.arguments.items()
            result = await session.call_tool(call.name, call.arguments)
            assert result.structured_content == answered(call.name, call.arguments)
        weather = await session.call_tool("get_weather", {"city": "Oslo"})
        said = sg.generate(None, f"In Oslo: {weather.content[0].text}", schema=tools[0].output_schema).value
        jsonschema.validate(said, LISTED[0]["outputSchema"])

    in_session(use)


def test_every_call_and_the_command_take_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from structgen.cli import main

    how: dict[str, Any] = {
        "tools": {"tools": LISTED},
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    prompt = "What is the weather in Paris?"
    whole = sg.generate(None, prompt, **how)
    assert whole.value.calls[0].name == "get_weather"
    assert asyncio.run(sg.agenerate(None, prompt, **how)).text == whole.text
    assert [one.text for one in sg.generate_many(None, [prompt] * 2, **how)] == [whole.text] * 2
    assert "".join(event.text for event in sg.stream(None, prompt, **how)) == whole.text
    assert sg.sample(None, prompt, n=2, seed=1, **how)[0].value.calls
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(how["tools"]))
    once = ["generate", "--prompt", prompt, "--tools", str(file), "--tool-choice", "get_weather"]
    assert main(once) == 0
    assert json.loads(capsys.readouterr().out)["city"] == "Paris"


NAMES = [
    "a", "a.b", "fs/read-file", "github:create_issue", "with blank", 'q"uote', "back\\slash", "line\nbreak",
    "größe", "日本", "a>b", "{name}", "{index}", "[ARGS]", "x" * 300, "a\x7fb", "</tool_call>",
]  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_a_style_carries_a_name_or_says_that_it_cannot(style: str) -> None:
    """A style of tool calls can write a tool's name, which is then read back, also beside a name with the
    same beginning. Otherwise the compile names the tool."""
    row, carried = STYLES[style], 0
    for name in NAMES:
        tools = [{"name": n, "inputSchema": {"type": "object", "properties": {}}} for n in (name, name + "x")]
        try:
            grammar = bytes_compiler().tools(tools, "required", style=style, parallel=False)
        except sg.GrammarError as error:
            assert not row.quotes and ("tool 0" in str(error) or "no name of Python" in str(error))
            continue
        carried += 1
        text = grammar.matcher().shortest_completion().decode()
        (call,) = sg.parse_tool_calls(text, style=style, tools=tools).calls
        assert call.name == name
        if row.quotes:  # the host reads the call with a JSON reader
            begin = text.index("{")
            read = json.JSONDecoder().raw_decode(text, begin)[0]
            assert name in (*read, *read.values())
    assert carried == len(NAMES) if row.quotes else carried >= 3


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ([{"name": "f", "inputSchema": {}}, {"name": "g"}, {"name": "f"}], "tools 0 and 2 have the same"),
        ([{"inputSchema": {}}], "tool 0 has no function with a name"),
        ([{"name": "f", "inputSchema": {}}, {"name": "g\ud800"}],
         "the name of tool 1: \\ud800 is half a surrogate"),
        ([{"name": "f", "inputSchema": {}, "parameters": {}}], "and 'inputSchema': leave one out"),
        ({"tool": LISTED}, "what an MCP client lists"),
        ([{"name": "f", "inputschema": {}}], "did you mean 'parameters'?"),
        ([{"name": "f", "inputSchema": []}], "the parameters of tool 0, 'f', are no JSON Schema"),
        ([{"name": "f", "inputSchema": {"type": "string"}}], "tool 0 has arguments of type 'string'"),
        ([*LISTED, {"name": "g", "inputSchema": {"properties": {"x": {"type": "intger"}}}}],
         "tool 'g': unknown type 'intger'"),
        ([*LISTED, {"name": "g", "inputSchema": {"$ref": "#/nope"}}], "tool 'g': reference '#/nope'"),
        ([*LISTED, {"name": "g", "inputSchema": {"required": ["x"], "properties": {"x": False}}}],
         "tool 'g': no value satisfies this schema"),
    ],
)  # fmt: skip
def test_mistakes_name_the_tool(tools: Any, words: str) -> None:
    for take in (
        lambda: bytes_compiler().tools(tools, "required"),
        lambda: sg.generate(None, "x", tools=tools, tool_choice="required"),
        lambda: sg.stream(None, "x", tools=tools, tool_choice="required"),
    ):
        with pytest.raises(sg.GrammarError) as found:
            take()
        assert words in str(found.value)


def test_the_same_list_is_compiled_once() -> None:
    compiler = sg.Compiler(bytes_compiler().vocabulary)
    first = compiler.tools(LISTED, "required")
    assert compiler.tools(copy.deepcopy(LISTED), "required") is first
    changed = copy.deepcopy(LISTED)
    changed[1]["inputSchema"]["properties"]["minutes"]["maximum"] = 600.0
    for other in (
        compiler.tools(LISTED),
        compiler.tools(LISTED, "required", parallel=False),
        compiler.tools(LISTED, "required", style="json"),
        compiler.tools(LISTED, "required", extra_keys="allow"),
        compiler.tools(LISTED, "required", whitespace="compact"),
        compiler.tools(LISTED, "required", reasoning="qwen3"),
        compiler.tools(LISTED[::-1], "required"),
        compiler.tools(changed, "required"),
    ):
        assert other is not first


def _wild() -> dict[str, Any]:
    """Schemas as they occur in practice, which other engines want rewritten first."""
    text: Any = {"type": "string"}
    absent = {"anyOf": [text, {"type": "null"}], "default": None}
    query = {
        "type": "object",
        "properties": {
            "all": {"type": "array", "items": {"$ref": "#/$defs/Query"}},
            "field": {"$ref": "#/$defs/Field"},
        },
        "required": ["field"],
    }
    field = {
        "type": "object",
        "properties": {"name": text, "of": {"$ref": "#/$defs/Query"}},
        "required": ["name"],
    }
    about = {"type": "string", "description": "what it is " * 30}
    large = {f"field_{i}": {**about, "enum": [f"v{i}_{j}" for j in range(40)]} for i in range(640)}
    old = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "id": {"oneOf": [{"type": "integer"}, {"pattern": "^[a-f0-9]{8}$", "type": "string"}]},
            "at": {"type": "string", "format": "date-time"},
        },
        "required": ["id", "at"],
    }
    data = {"type": "object", "additionalProperties": {}}
    return {
        "optional": {"type": "object", "properties": {f"option_{i}": absent for i in range(60)}},
        "loop": {"$ref": "#/$defs/Query", "$defs": {"Query": query, "Field": field}},
        "open": {"type": "object", "properties": {"data": data}, "required": ["data"]},
        "large": {"type": "object", "properties": large, "required": ["field_7"]},
        "empty": {},
        "old": old,
    }


AT = "2027-03-05T10:00:00Z"
CALLS: list[tuple[str, Any, Any]] = [
    ("optional", {"option_3": None, "option_59": "x"}, {"option_3": 4}),
    (
        "loop",
        {"all": [{"field": {"name": "a"}}], "field": {"name": "b", "of": {"field": {"name": "c"}}}},
        {"field": {"name": "b", "of": {}}},
    ),
    ("open", {"data": {"k": [1, {"deep": None}]}}, {"data": []}),
    ("large", {"field_7": "v7_39", "field_599": "v599_0"}, {"field_7": "v8_0"}),
    ("empty", {}, None),
    ("old", {"id": "0123abcd", "at": AT}, {"id": "0123abcg", "at": AT}),
]


@pytest.mark.parametrize("style", ["hermes", "qwen3-coder", "llama3", "glm"])
def test_no_schema_has_to_be_sanitised(style: str) -> None:
    """The engine takes each schema unchanged. jsonschema judges a right and a wrong call, too."""
    schemas = _wild()
    assert len(json.dumps(schemas["large"])) > 500_000
    tools = {"tools": [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]}
    grammar = bytes_compiler().tools(tools, "required", style=style, parallel=False)
    for name, right, wrong in CALLS:
        judge = jsonschema.Draft202012Validator(schemas[name])
        assert judge.is_valid(right)
        row = STYLES[style]
        if row.parameters != "json":
            continue
        for value in (right, wrong):
            text = row.begin.replace("{name}", name) + json.dumps(value) + row.end
            matcher = grammar.matcher()
            taken = matcher.accept_bytes(text) and matcher.is_accepting()
            assert taken == (value is right), (name, value)
    text = grammar.matcher().shortest_completion().decode()
    (call,) = sg.parse_tool_calls(text, style=style, tools=tools).calls
    assert jsonschema.Draft202012Validator(schemas[call.name]).is_valid(call.arguments)


# ---- structgen serve --mcp ----


def _served(model: Any = None, **settings: Any) -> Any:
    """Returns a client of a server that has the tools of oracles/mcp_server.py under the label "town"."""
    for name in ("mcp", "fastapi", "sse_starlette"):
        pytest.importorskip(name, reason=f"{name} is not installed (the extras `mcp` and `serve`)")
    from starlette.testclient import TestClient

    from structgen.serve.app import create_app

    servers = {label: {"command": sys.executable, "args": [str(SERVER)]} for label in ("town", "twin")}
    return TestClient(create_app(model, mcp=servers, **settings), raise_server_exceptions=False)


TOWN = {"type": "mcp", "server_label": "town"}
TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "town"}
ASK = [{"role": "user", "content": "What is the weather in Paris?"}]


def test_a_request_that_asks_gets_the_tools_and_its_client_the_calls() -> None:
    with _served() as client:
        chat = {"messages": ASK, "tools": [TOWN], "tool_choice": "required", "parallel_tool_calls": False}
        message = client.post("/v1/chat/completions", json=chat).json()["choices"][0]["message"]
        assert message["tool_calls"][0]["function"]["name"] == "get_weather"
        own = {
            "type": "function",
            "function": {"name": "get_weather", "parameters": LISTED[0]["inputSchema"]},
        }
        for tools, name in (
            ([TOWN, own], "town__get_weather"),
            ([TOWN, TOWN | {"server_label": "twin"}], "twin__get_weather"),
        ):
            choice = {"type": "function", "function": {"name": name}}
            found = client.post(
                "/v1/chat/completions", json=chat | {"tools": tools, "tool_choice": choice}
            ).json()
            assert found["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == name
        listed = client.post("/v1/chat/completions", json=chat | {"tools": {"tools": LISTED}}).json()
        assert listed["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"
        few = {"input": "Set a timer for 20 minutes", "tools": [TOWN | {"allowed_tools": ["timers/set"]}]}
        (item,) = client.post(
            "/v1/responses", json=few | {"tool_choice": "required", "parallel_tool_calls": False}
        ).json()["output"]
        assert (item["type"], item["name"], json.loads(item["arguments"])["minutes"]) == (
            "function_call",
            "timers/set",
            20,
        )
        only = TOOLSET | {"default_config": {"enabled": False}, "configs": {"get_weather": {"enabled": True}}}
        body = {"messages": ASK, "max_tokens": 100, "tools": [only], "tool_choice": {"type": "any"}}
        assert client.post("/v1/messages", json=body).json()["content"][0]["name"] == "get_weather"
        for tool, param in (
            (TOWN | {"server_label": "tonw"}, "tools[0].server_label"),
            ({"type": "mcp", "server_url": "http://127.0.0.1"}, "tools[0].server_label"),
            (TOWN | {"allowed_tools": ["nothing"]}, "tools[0].allowed_tools"),
            (TOOLSET | {"mcp_server_name": None}, "tools[0].mcp_server_name"),
        ):
            error = client.post("/v1/chat/completions", json=chat | {"tools": [tool]}).json()["error"]
            assert error["param"] == param, error


def _agent(prompt: str) -> str:
    """Returns a model that asks for the weather of the city, and repeats the answer."""
    heard = prompt.rpartition("tool: ")[2] if "tool: " in prompt else ""
    if "again" in prompt or not heard:
        return '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    return f"I heard {json.loads(heard.splitlines()[0])['degrees']} degrees."


def test_with_call_the_server_calls_and_the_model_says_what_it_heard() -> None:
    from oracles.serving import Chats

    with _served(Chats(_agent), call=True, temperature=0.0) as client:
        for more in ({}, {"stream": True}):
            text = client.post(
                "/v1/chat/completions", json={"messages": ASK, "tools": [TOWN], "max_tokens": 200, **more}
            ).text
            assert "degrees" in text and "tool_calls" not in text
        found = client.post(
            "/v1/chat/completions", json={"messages": ASK, "tools": [TOWN], "max_tokens": 200}
        ).json()
        (choice,) = found["choices"]
        assert (choice["message"]["content"], choice["finish_reason"]) == ("I heard 12 degrees.", "stop")
        (call,) = found["structgen"]["calls"]
        assert (call["label"], call["name"], call["error"]) == ("town", "get_weather", False)
        alone = client.post("/v1/chat/completions", json={"messages": ASK, "max_tokens": 200}).json()["usage"]
        assert found["usage"]["prompt_tokens"] > 2 * alone["prompt_tokens"]  # the usage sums both rounds
        assert found["usage"]["completion_tokens"] > len("I heard 12 degrees.") + 60
        response = client.post("/v1/responses", json={"input": ASK[0]["content"], "tools": [TOWN]}).json()
        assert [item["type"] for item in response["output"]] == ["mcp_call", "message"]
        again = [*ASK, *response["output"], {"role": "user", "content": "Thanks"}]
        assert client.post("/v1/responses", json={"input": again}).json()["status"] == "completed"
        events = client.post(
            "/v1/responses", json={"input": ASK[0]["content"], "tools": [TOWN], "stream": True}
        ).text
        assert events.index('"type":"mcp_call"') < events.index("response.output_text.delta")
        body = {"messages": ASK, "max_tokens": 200, "tools": [TOOLSET]}
        message = client.post("/v1/messages", json=body).json()
        assert [block["type"] for block in message["content"]] == ["mcp_tool_use", "mcp_tool_result", "text"]
        turns = [
            *ASK,
            {"role": "assistant", "content": message["content"]},
            {"role": "user", "content": "Thanks"},
        ]
        assert client.post("/v1/messages", json=body | {"messages": turns}).json()["content"]


def test_a_model_that_repeats_a_call_is_stopped() -> None:
    from oracles.serving import Chats

    with _served(Chats(_agent), call=True, temperature=0.0) as client:
        ask = [{"role": "user", "content": "again and again"}]
        found = client.post(
            "/v1/chat/completions", json={"messages": ask, "tools": [TOWN], "max_tokens": 90}
        ).json()
        assert len(found["structgen"]["calls"]) == 1
        assert "tool_calls" not in found["choices"][0]["message"]


def test_the_command_reads_the_usual_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from structgen.cli import main
    from structgen.serve.options import ServerOptions, mcp_servers

    file = tmp_path / "mcp.json"
    file.write_text(
        json.dumps({"mcpServers": {"town": {"command": "x"}, "far": {"url": "http://127.0.0.1:9/mcp"}}})
    )
    assert list(mcp_servers(str(file))) == ["town", "far"]
    broken = {
        "[]": "'mcpServers'",
        "{": "'mcpServers'",
        '{"mcpServers": {}}': "no 'mcpServers'",
        '{"mcpServers": {"a": {}}}': "neither a 'command' nor a 'url'",
    }
    for text, words in broken.items():
        file.write_text(text)
        with pytest.raises(ValueError, match=words):
            mcp_servers(str(file))
    with pytest.raises(ValueError, match="--call needs --mcp"):
        ServerOptions(call=True)
    for arguments, words in (
        (["--mcp", str(tmp_path / "none.json")], "cannot read"),
        (["--mcp", str(file)], "neither a 'command' nor a 'url'"),
        (["--call"], "--call needs --mcp"),
    ):
        assert main(["serve", *arguments]) == 2
        assert words in capsys.readouterr().err


def test_a_server_that_does_not_answer_is_named() -> None:
    pytest.importorskip("mcp", reason="mcp is not installed (the extra `mcp`)")
    pytest.importorskip("pydantic", reason="pydantic is not installed (the extra `serve`)")
    from structgen.serve.mcp import ToolServers

    async def run() -> None:
        async with ToolServers(
            {"gone": {"command": sys.executable, "args": ["-c", "raise SystemExit(1)"]}}
        ).open():
            pass

    with pytest.raises(RuntimeError, match="the MCP server 'gone' does not answer"):
        asyncio.run(run())


def test_a_call_that_fails_is_a_result() -> None:
    pytest.importorskip("pydantic", reason="pydantic is not installed (the extra `serve`)")
    from structgen.serve.mcp import ToolServers

    class Gone:
        async def call_tool(self, name: str, arguments: Any) -> Any:
            raise ConnectionError(f"nobody hears {name}")

    servers = ToolServers({})
    servers._sessions["town"] = Gone()
    called = asyncio.run(servers.call("town", "walk", "{}"))
    assert called.error and "ConnectionError: nobody hears walk" in called.output


def test_a_tool_that_refuses_is_told_to_the_model() -> None:
    async def use() -> None:
        from structgen.serve.mcp import ToolServers

        servers = ToolServers({"town": {"command": sys.executable, "args": [str(SERVER)]}})
        async with servers.open():
            called = await servers.call("town", "other", "{}")
            assert called.error and "no tool other" in called.output

    pytest.importorskip("mcp", reason="mcp is not installed (the extra `mcp`)")
    asyncio.run(use())
