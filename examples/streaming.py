"""A streaming user interface: the form fills up while the model writes.

python examples/streaming.py
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass

import structgen as sg


@dataclass
class Person:
    name: str
    age: int
    city: str


def line(person: Person | None) -> str:
    """The form as far as it is known. A string that goes on ends in three dots."""

    def shown(value: object) -> str:
        return (
            "" if value is None else f"{value}..." if isinstance(value, sg.IncompleteString) else str(value)
        )

    fields = ("name", "age", "city")
    return " | ".join(f"{field}: {shown(getattr(person, field, None)):12}" for field in fields)


async def main() -> None:
    live = sys.stdout.isatty()
    last = ""
    async for event in sg.astream(None, "Ada Byron is 36 years old and lives in London", Person):
        now = line(event.value)
        if now != last:
            print(now, end="\r" if live and event.result is None else "\n", flush=True)
            last = now
    print(event.result.value)  # whole, and validated


if __name__ == "__main__":
    asyncio.run(main())
