"""Real clients of the server's interfaces: each call of each client is tried at a running server.

Input: the packages of the clients, in an environment of their own (`make test-clients`). Output: a table with
one row per client; the exit status is 1 if a call failed. Time: one minute. The table names every client that
is not installed.

The server runs the embedded model in another process, so the packages of this environment do not affect the
server.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel

ROOT = Path(__file__).resolve().parents[1]
TEXT = "Maria Lopez ordered 3 oak chairs and 2 desk lamps, ship to Lisbon by 5 March 2027"
MESSAGES: list[Any] = [{"role": "user", "content": TEXT}]
KEY = "sk-test"
PYTHON = sys.executable  # the interpreter that runs the servers


class Item(BaseModel):
    product: str
    quantity: int


class Order(BaseModel):
    customer: str
    items: list[Item]
    city: str | None


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
ASK = [{"role": "user", "content": "What is the weather in Paris?"}]


def right(order: Order) -> None:
    assert order.customer == "Maria Lopez", order
    assert [i.quantity for i in order.items] == [3, 2], order


# ---- openai ----


def openai_sync(base: str) -> None:
    from openai import OpenAI

    client = OpenAI(base_url=base, api_key=KEY)
    assert [m.id for m in client.models.list()] == ["embedded"]
    schema = {"name": "order", "schema": Order.model_json_schema()}
    done = client.chat.completions.create(
        model="embedded",
        messages=MESSAGES,
        response_format={"type": "json_schema", "json_schema": schema},
        seed=1,
    )
    right(Order.model_validate_json(done.choices[0].message.content))
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens


def openai_parse(base: str) -> None:
    from openai import OpenAI

    client = OpenAI(base_url=base, api_key=KEY)
    done = client.chat.completions.parse(model="embedded", messages=MESSAGES, response_format=Order)
    right(done.choices[0].message.parsed)


def openai_stream(base: str) -> None:
    from openai import OpenAI

    client = OpenAI(base_url=base, api_key=KEY)
    with client.chat.completions.stream(
        model="embedded", messages=MESSAGES, response_format=Order, stream_options={"include_usage": True}
    ) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    right(final.choices[0].message.parsed)
    assert {"chunk", "content.delta", "content.done"} <= kinds, kinds
    assert final.usage.completion_tokens > 5


def openai_tools(base: str) -> None:
    from openai import OpenAI

    client = OpenAI(base_url=base, api_key=KEY)
    done = client.chat.completions.create(
        model="embedded", messages=ASK, tools=[WEATHER], tool_choice="required"
    )
    (call,) = done.choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"city": "Paris"}
    assert done.choices[0].finish_reason == "tool_calls"
    chunks = client.chat.completions.create(
        model="embedded", messages=ASK, tools=[WEATHER], tool_choice="auto", stream=True
    )
    found = [c for chunk in chunks for c in chunk.choices[0].delta.tool_calls or []]
    assert found[0].function.name == "get_weather"
    again = [
        *ASK,
        done.choices[0].message,
        {"role": "tool", "tool_call_id": call.id, "content": "12 degrees"},
    ]
    client.chat.completions.create(model="embedded", messages=again, tools=[WEATHER], max_tokens=40)


def openai_async(base: str) -> None:
    from openai import AsyncOpenAI

    async def run() -> None:
        client = AsyncOpenAI(base_url=base, api_key=KEY)
        many = [
            client.chat.completions.parse(model="embedded", messages=MESSAGES, response_format=Order)
            for _ in range(8)
        ]
        for done in await asyncio.gather(*many):
            right(done.choices[0].message.parsed)
        stream = await client.chat.completions.create(
            model="embedded", messages=MESSAGES, stream=True, extra_body={"guided_choice": ["yes", "no"]}
        )
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        assert text in ("yes", "no")

    asyncio.run(run())


def openai_completions(base: str) -> None:
    from openai import OpenAI

    client = OpenAI(base_url=base, api_key=KEY)
    done = client.completions.create(
        model="embedded", prompt=TEXT, logprobs=2, echo=True, extra_body={"guided_regex": "[a-z]{4}"}
    )
    assert re.fullmatch("[a-z]{4}", done.choices[0].text.removeprefix(TEXT))
    assert len(done.choices[0].logprobs.tokens) == len(done.choices[0].logprobs.token_logprobs)
    chat = client.chat.completions.create(
        model="embedded", messages=MESSAGES, logprobs=True, top_logprobs=2, max_tokens=5, n=2, temperature=1
    )
    assert len(chat.choices) == 2 and len(chat.choices[0].logprobs.content[0].top_logprobs) == 2


def openai_responses(base: str) -> None:
    from openai import OpenAI

    client = OpenAI(base_url=base, api_key=KEY)
    done = client.responses.parse(model="embedded", input=TEXT, text_format=Order)
    right(done.output_parsed)
    with client.responses.stream(model="embedded", input=TEXT, text_format=Order) as stream:
        kinds = [event.type for event in stream]
        right(stream.get_final_response().output_parsed)
    assert "response.output_text.delta" in kinds and kinds[-1] == "response.completed"
    flat = {"type": "function", **WEATHER["function"], "strict": True}
    called = client.responses.create(model="embedded", input=ASK, tools=[flat], tool_choice="required")
    (item,) = called.output
    assert (item.type, item.name, json.loads(item.arguments)) == (
        "function_call",
        "get_weather",
        {"city": "Paris"},
    )
    output = {"type": "function_call_output", "call_id": item.call_id, "output": "12 degrees"}
    client.responses.create(model="embedded", input=[*ASK, item.model_dump(), output], max_output_tokens=40)
    with client.responses.stream(model="embedded", input=ASK, tools=[flat], tool_choice="required") as stream:
        kinds = [event.type for event in stream]
    assert "response.function_call_arguments.done" in kinds


def openai_errors(base: str) -> None:
    import openai

    client = openai.OpenAI(base_url=base, api_key=KEY, max_retries=0)

    def fails(kind: type[Exception], **fields: Any) -> Any:
        try:
            client.chat.completions.create(**{"model": "embedded", "messages": MESSAGES, **fields})
        except kind as error:
            return error
        raise AssertionError(f"{fields} was answered")

    error = fails(openai.BadRequestError, extra_body={"guided_json": {"type": "objct"}})
    assert error.code == "invalid_grammar" and error.param == "guided_json"
    schema = {"type": "json_schema", "json_schema": {"name": "o", "schema": Order.model_json_schema()}}
    error = fails(openai.BadRequestError, response_format=schema, max_tokens=3)
    assert error.body["least_tokens"] > 3
    fails(openai.NotFoundError, model="gpt-4o")
    client.api_key = "wrong"
    fails(openai.AuthenticationError)


def openai_custom_tools(base: str) -> None:
    from openai import OpenAI

    client = OpenAI(base_url=base, api_key=KEY)
    words = {"syntax": "lark", "definition": 'start: "go" (" " WORD)+\nWORD: /[a-z]+/'}
    tool = {"type": "custom", "custom": {"name": "walk", "format": {"type": "grammar", "grammar": words}}}
    asked: dict[str, Any] = {"model": "embedded", "messages": ASK, "tools": [tool], "tool_choice": "required"}
    done = client.chat.completions.create(**asked, max_tokens=60, parallel_tool_calls=False)
    (call,) = done.choices[0].message.tool_calls
    assert call.type == "custom" and re.fullmatch("go( [a-z]+)+", call.custom.input), call
    flat = {"type": "custom", "name": "walk", "format": {"type": "grammar", **words}}
    how: dict[str, Any] = {"tools": [flat], "tool_choice": "required", "max_output_tokens": 60}
    how["parallel_tool_calls"] = False
    (item,) = client.responses.create(model="embedded", input=ASK, **how).output
    assert item.type == "custom_tool_call" and re.fullmatch("go( [a-z]+)+", item.input), item
    with client.responses.stream(model="embedded", input=ASK, **how) as stream:
        kinds = [event.type for event in stream]
    assert "response.custom_tool_call_input.done" in kinds


# ---- anthropic ----

WEATHER_BLOCK = {"name": "get_weather", "input_schema": WEATHER["function"]["parameters"]}


def _anthropic(base: str, **more: Any) -> Any:
    from anthropic import Anthropic

    return Anthropic(base_url=base.removesuffix("/v1"), api_key=KEY, **more)


def anthropic_messages(base: str) -> None:
    client = _anthropic(base)
    form = {"type": "json_schema", "schema": Order.model_json_schema()}
    asked: dict[str, Any] = {"model": "embedded", "max_tokens": 300, "messages": MESSAGES}
    done = client.messages.create(**asked, output_config={"format": form})
    right(Order.model_validate_json(done.content[0].text))
    assert (done.stop_reason, done.role) == ("end_turn", "assistant") and done.usage.output_tokens > 5
    with client.messages.stream(**asked, output_config={"format": form}) as stream:
        kinds = {event.type for event in stream}
        right(Order.model_validate_json(stream.get_final_message().content[0].text))
    assert {"message_start", "content_block_delta", "message_stop"} <= kinds, kinds
    right(client.messages.parse(**asked, output_format=Order).parsed_output)
    assert client.messages.count_tokens(model="embedded", messages=MESSAGES).input_tokens > 5
    assert [m.id for m in client.models.list()] == ["embedded"]


def anthropic_tools(base: str) -> None:
    client = _anthropic(base)
    choice = {"type": "any", "disable_parallel_tool_use": True}
    asked: dict[str, Any] = {"model": "embedded", "max_tokens": 300, "tools": [WEATHER_BLOCK]}
    done = client.messages.create(**asked, messages=ASK, tool_choice=choice)
    (call,) = done.content
    assert (call.type, call.name, call.input) == ("tool_use", "get_weather", {"city": "Paris"})
    with client.messages.stream(**asked, messages=ASK, tool_choice=choice) as stream:
        assert stream.get_final_message().content[0].input == {"city": "Paris"}
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "12 degrees"}
    turns = [*ASK, {"role": "assistant", "content": done.content}, {"role": "user", "content": [result]}]
    client.messages.create(**asked | {"max_tokens": 40}, messages=turns)


def anthropic_thinking(base: str) -> None:
    budget = {"type": "enabled", "budget_tokens": 1024}
    with server(PYTHON, "embedded-thinking") as there:
        client = _anthropic(there)
        asked: dict[str, Any] = {"model": "embedded-thinking", "max_tokens": 2000, "messages": ASK}
        asked |= {"tools": [WEATHER_BLOCK], "tool_choice": {"type": "any"}, "thinking": budget}
        done = client.messages.create(**asked)
        assert [block.type for block in done.content][:2] == ["thinking", "tool_use"], done
        with client.messages.stream(**asked) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_message()
        assert "thinking" in kinds and final.content[0].thinking == done.content[0].thinking


def anthropic_errors(base: str) -> None:
    import anthropic

    client = _anthropic(base, max_retries=0)

    def fails(kind: type[Exception], **fields: Any) -> Any:
        try:
            client.messages.create(**{"model": "embedded", "max_tokens": 30, "messages": MESSAGES, **fields})
        except kind as error:
            return error
        raise AssertionError(f"{fields} was answered")

    twice = fails(anthropic.BadRequestError, tools=[WEATHER_BLOCK, WEATHER_BLOCK])
    assert twice.body["error"]["param"] == "tools[1].name", twice.body
    fails(anthropic.NotFoundError, model="other")
    client.api_key = "wrong"
    fails(anthropic.AuthenticationError)


# ---- MCP ----

TOOLS = [str(ROOT / "oracles" / "mcp_server.py")]  # arguments of the MCP server; the interpreter is `PYTHON`


def mcp_session(base: str) -> None:
    """Lists tools, lets the model choose one through each interface, and calls the chosen tool."""
    from mcp import ClientSession, StdioServerParameters, stdio_client
    from openai import OpenAI

    async def run() -> None:
        with_tools = stdio_client(StdioServerParameters(command=PYTHON, args=TOOLS))
        async with with_tools as streams, ClientSession(*streams) as session:
            await session.initialize()
            listed = (await session.list_tools()).model_dump(mode="json", by_alias=True)
            how: dict[str, Any] = {"tools": listed["tools"], "tool_choice": "required"}
            client = OpenAI(base_url=base, api_key=KEY)
            done = client.chat.completions.create(
                model="embedded", messages=ASK, **how, parallel_tool_calls=False
            )
            (call,) = done.choices[0].message.tool_calls
            result = await session.call_tool(call.function.name, json.loads(call.function.arguments))
            assert json.loads(result.content[0].text)["degrees"] == 12

    asyncio.run(run())


def agents_with_mcp(base: str) -> None:
    """The model calls a tool of an MCP server and a tool in Python. The agent's answer is the answer of the
    tool."""
    from agents import (
        Agent,
        ModelSettings,
        OpenAIChatCompletionsModel,
        OpenAIResponsesModel,
        Runner,
        function_tool,
        set_tracing_disabled,
    )
    from agents.mcp import MCPServerStdio
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=base, api_key=KEY)
    settings = ModelSettings(tool_choice="required", parallel_tool_calls=False)

    @function_tool
    def get_weather(city: str) -> str:
        return f"12 degrees in {city}"

    async def run() -> None:
        for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
            how: dict[str, Any] = {"model": kind("embedded", client), "model_settings": settings}
            how |= {"name": "town", "tool_use_behavior": "stop_on_first_tool"}
            agent = Agent(**how, tools=[get_weather])
            assert (await Runner.run(agent, ASK[0]["content"])).final_output == "12 degrees in Paris"
            async with MCPServerStdio(params={"command": PYTHON, "args": TOOLS}) as town:
                agent = Agent(**how, mcp_servers=[town])
                found = await Runner.run(agent, ASK[0]["content"])
                assert "degrees" in str(found.final_output), found.final_output
                streamed = Runner.run_streamed(agent, ASK[0]["content"])
                assert [event async for event in streamed.stream_events()] and streamed.final_output

    asyncio.run(run())


def agents_outputs(base: str) -> None:
    from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    model = OpenAIResponsesModel("embedded", AsyncOpenAI(base_url=base, api_key=KEY))
    right(Runner.run_sync(Agent(name="orders", model=model, output_type=Order), TEXT).final_output)


def pydantic_ai_mcp(base: str) -> None:
    """The model calls a tool of an MCP server. The next message holds the tool's answer."""
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset, StdioTransport
    from pydantic_ai.messages import ToolReturnPart
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def run() -> None:
        model = OpenAIChatModel("embedded", provider=OpenAIProvider(base_url=base, api_key=KEY))
        tools = MCPToolset(StdioTransport(command=PYTHON, args=TOOLS))
        # pydantic_ai asks for a tool call if the output type is a tool
        agent = Agent(model, toolsets=[tools], output_type=int)
        async with agent, agent.iter(ASK[0]["content"]) as steps:
            async for step in steps:
                parts = getattr(getattr(step, "request", None), "parts", [])
                if any(isinstance(part, ToolReturnPart) and "12" in str(part.content) for part in parts):
                    return
        raise AssertionError("no tool of the MCP server was called")

    asyncio.run(run())


def served_mcp(base: str) -> None:
    """`structgen serve --mcp`: a request names the label of an MCP server and gets calls of the server's
    tools."""
    from openai import OpenAI

    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"mcpServers": {"town": {"command": PYTHON, "args": TOOLS}}}, file)
        file.flush()
        for call in ((), ("--call",)):
            with server(PYTHON, "--mcp", file.name, *call) as there:
                client = OpenAI(base_url=there, api_key=KEY)
                tool: Any = {"type": "mcp", "server_label": "town", "server_url": "http://127.0.0.1"}
                done = client.responses.create(
                    model="embedded",
                    input=ASK,
                    tools=[tool],
                    tool_choice="required",
                    max_output_tokens=100,
                    parallel_tool_calls=False,
                )
                first = done.output[0]
                assert first.type == ("mcp_call" if call else "function_call"), done.output
                assert first.name == "get_weather" and json.loads(first.arguments)["city"] == "Paris"


# ---- frameworks ----


def instructor_modes(base: str) -> None:
    import instructor
    from openai import AsyncOpenAI, OpenAI

    for name in ("TOOLS", "JSON_SCHEMA", "TOOLS_STRICT"):
        mode = getattr(instructor.Mode, name, None)
        if mode is None:
            continue
        client = instructor.from_openai(OpenAI(base_url=base, api_key=KEY), mode=mode)
        order = client.chat.completions.create(
            model="embedded", messages=list(MESSAGES), response_model=Order, max_retries=1, max_tokens=200
        )
        # the test checks the type alone; a small model may fill in poor values
        assert isinstance(order, Order)
    partial = instructor.from_openai(OpenAI(base_url=base, api_key=KEY), mode=instructor.Mode.TOOLS)
    parts = list(
        partial.chat.completions.create_partial(
            model="embedded", messages=list(MESSAGES), response_model=Order, max_tokens=200
        )
    )
    assert parts and parts[-1].items is not None

    async def run() -> None:
        client = instructor.from_openai(AsyncOpenAI(base_url=base, api_key=KEY))
        order = await client.chat.completions.create(
            model="embedded", messages=list(MESSAGES), response_model=Order
        )
        assert isinstance(order, Order)

    asyncio.run(run())


def pydantic_ai_outputs(base: str) -> None:
    from pydantic_ai import Agent, NativeOutput, ToolOutput
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=base, api_key=KEY)
    for kind in (OpenAIChatModel, OpenAIResponsesModel):
        for output in (ToolOutput(Order), NativeOutput(Order)):
            agent = Agent(kind("embedded", provider=provider), output_type=output)
            right(agent.run_sync(TEXT).output)

    async def run() -> None:
        agent = Agent(OpenAIChatModel("embedded", provider=provider), output_type=NativeOutput(Order))
        async with agent.run_stream(TEXT) as result:
            right(await result.get_output())

    asyncio.run(run())


def langchain_outputs(base: str) -> None:
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="embedded", base_url=base, api_key=KEY)
    for method in ("json_schema", "function_calling"):
        right(model.with_structured_output(Order, method=method).invoke(TEXT))
    right(asyncio.run(model.with_structured_output(Order).ainvoke(TEXT)))
    called = model.bind_tools([WEATHER], tool_choice="required").invoke("What is the weather in Paris?")
    assert called.tool_calls[0]["args"] == {"city": "Paris"}
    streamed = list(model.bind(response_format={"type": "json_object"}, max_tokens=60).stream(TEXT))
    assert isinstance(json.loads("".join(chunk.content for chunk in streamed)), dict)
    right(
        ChatOpenAI(model="embedded", base_url=base, api_key=KEY, use_responses_api=True)
        .with_structured_output(Order)
        .invoke(TEXT)
    )


def litellm_calls(base: str) -> None:
    import litellm

    litellm.telemetry = False
    common: dict[str, Any] = {"model": "openai/embedded", "api_base": base, "api_key": KEY}
    done = litellm.completion(messages=MESSAGES, response_format=Order, **common)
    right(Order.model_validate_json(done.choices[0].message.content))
    pieces = litellm.completion(messages=MESSAGES, stream=True, max_tokens=20, **common)
    assert "".join(p.choices[0].delta.content or "" for p in pieces)
    called = litellm.completion(messages=ASK, tools=[WEATHER], tool_choice="required", **common)
    assert json.loads(called.choices[0].message.tool_calls[0].function.arguments) == {"city": "Paris"}
    hosted = {**common, "model": "hosted_vllm/embedded"}
    done = litellm.completion(messages=MESSAGES, extra_body={"guided_choice": ["yes", "no"]}, **hosted)
    assert done.choices[0].message.content in ("yes", "no")
    text = litellm.text_completion(
        model="text-completion-openai/embedded", prompt=TEXT, api_base=base, api_key=KEY, max_tokens=4
    )
    assert text.usage.completion_tokens == 4


def outlines_openai(base: str) -> None:
    import openai
    import outlines

    model = outlines.from_openai(openai.OpenAI(base_url=base, api_key=KEY), "embedded")
    right(Order.model_validate_json(model(TEXT, Order)))
    pieces = list(model.stream(TEXT, Order))
    right(Order.model_validate_json("".join(pieces)))
    if hasattr(outlines, "from_vllm"):
        from outlines.types import Regex

        vllm = outlines.from_vllm(openai.OpenAI(base_url=base, api_key=KEY), "embedded")
        assert re.fullmatch("[0-9]{3}", vllm(TEXT, Regex("[0-9]{3}")))


def curl(base: str) -> None:
    request = ROOT / "examples" / "server" / "chat.json"
    command = [
        "curl", "-sS", "--fail-with-body", f"{base}/chat/completions", "-H", "Content-Type: application/json",
        "-H", f"Authorization: Bearer {KEY}", "-d", f"@{request}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    json.loads(json.loads(done.stdout)["choices"][0]["message"]["content"])


CALLS: list[tuple[str, str, Callable[[str], None]]] = [
    ("openai", "models, chat with json_schema, usage", openai_sync),
    ("openai", "chat.completions.parse with pydantic", openai_parse),
    ("openai", "chat.completions.stream, usage in the stream", openai_stream),
    ("openai", "tools, streamed tools, the tool's answer", openai_tools),
    ("openai", "AsyncOpenAI: 8 at once, async stream, guided_choice", openai_async),
    ("openai", "completions: echo, logprobs; chat: n, top_logprobs", openai_completions),
    ("openai", "responses: parse, stream, function calls and outputs", openai_responses),
    ("openai", "custom tools with a grammar: chat, responses, stream", openai_custom_tools),
    ("openai", "400, 401 and 404 as its exceptions", openai_errors),
    ("anthropic", "messages: schema, stream, parse, count_tokens, models", anthropic_messages),
    ("anthropic", "tools, streamed tools, the tool's answer", anthropic_tools),
    ("anthropic", "thinking and its budget, streamed", anthropic_thinking),
    ("anthropic", "400, 401 and 404 as its exceptions", anthropic_errors),
    ("mcp", "session: list_tools, the model's choice, call_tool", mcp_session),
    ("mcp", "serve --mcp, with and without --call", served_mcp),
    ("openai-agents", "tools of Python and of MCP, chat and responses, streamed", agents_with_mcp),
    ("openai-agents", "output_type", agents_outputs),
    ("pydantic-ai-slim", "MCPToolset", pydantic_ai_mcp),
    ("instructor", "tools, JSON schema, strict tools, partial, async", instructor_modes),
    ("pydantic-ai-slim", "tool and native output, chat and responses, run_stream", pydantic_ai_outputs),
    ("langchain-openai", "json_schema, function_calling, async, tools, stream, responses", langchain_outputs),
    ("litellm", "completion, stream, tools, hosted_vllm, text_completion", litellm_calls),
    ("outlines", "from_openai: type and stream; from_vllm: regex", outlines_openai),
    ("curl", "examples/server/chat.json", curl),
]


@contextmanager
def server(python: str, *more: str) -> Iterator[str]:
    """Starts a server that asks for a key, in a process of the given interpreter, and yields the server's
    address.

    `more` holds further arguments of the command.
    """
    command = [python, "-m", "structgen", "serve", *more, "--port", "0"]
    environment = {**os.environ, "STRUCTGEN_API_KEY": KEY, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            found = re.search(r"served at (\S+)", line)
            if found:
                break
        else:
            raise SystemExit("the server did not start")
        yield found[1]
    finally:
        process.terminate()
        process.wait(30)


def version(package: str) -> str:
    if package == "curl":
        done = subprocess.run(["curl", "--version"], capture_output=True, text=True)
        return done.stdout.split()[1]
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="runs the server (default: this one)")
    parser.add_argument("--only", default="", help="a client's name")
    options = parser.parse_args()
    os.environ.setdefault("no_proxy", "127.0.0.1")
    # otherwise litellm downloads a price list at import
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    failed = 0
    global PYTHON
    PYTHON = options.python
    with server(options.python) as base:
        print(f"{'client':18} {'version':10} {'s':>5}  {'result':8} what")
        for package, what, call in CALLS:
            if options.only and options.only != package.replace("curl", "openai"):
                continue
            number = version(package)
            if not number:
                print(f"{package:18} {'-':10} {'':>5}  {'absent':8} {what}")
                failed += 1
                continue
            begin = time.perf_counter()
            try:
                call(base)
                result = "ok"
            except Exception:
                traceback.print_exc(limit=-1)
                result, failed = "FAILED", failed + 1
            print(
                f"{package:18} {number:10} {time.perf_counter() - begin:5.1f}  {result:8} {what}", flush=True
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
