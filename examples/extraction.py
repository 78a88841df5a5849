"""Extraction: values of a Python type from a text, with a rule that no grammar can know.

python examples/extraction.py
"""

from __future__ import annotations

from pydantic import BaseModel, field_validator

import structgen as sg


class Item(BaseModel):
    product: str
    quantity: int


class Order(BaseModel):
    customer: str
    items: list[Item]
    city: str | None = None

    @field_validator("items")
    @classmethod
    def something(cls, items: list[Item]) -> list[Item]:
        if not items:
            raise ValueError("an order has items")
        return items


TEXT = "Maria Lopez ordered 3 oak chairs and 2 desk lamps, ship to Lisbon"


def main() -> None:
    # `retries` forbids a value that the validator refuses, and asks again.
    result = sg.generate(None, TEXT, Order, retries=3)
    order = result.value
    print(f"{order.customer}, {order.city}")
    for item in order.items:
        print(f"  {item.quantity} x {item.product}")


if __name__ == "__main__":
    main()
