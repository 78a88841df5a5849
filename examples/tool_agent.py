"""A tool agent: the model chooses a function and its arguments, Python calls it.

python examples/tool_agent.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import structgen as sg


def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """The weather of a city."""
    return f"It is sunny in {city}, 21 degrees {unit}."


def set_timer(minutes: int) -> str:
    """Start a timer."""
    return f"The timer runs for {minutes} minutes."


TOOLS: list[Callable[..., Any]] = [get_weather, set_timer]


def run(request: str) -> str:
    reply = sg.generate(None, request, tools=TOOLS, tool_choice="required", parallel_tool_calls=False).value
    by_name = {tool.__name__: tool for tool in TOOLS}
    answers = [by_name[call.name](**call.arguments) for call in reply.calls]
    return " ".join(answers)


def main() -> None:
    for request in ("What is the weather in Lisbon?", "Start a timer for 12 minutes"):
        print(f"{request}\n  {run(request)}")


if __name__ == "__main__":
    main()
