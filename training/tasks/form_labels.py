"""What forms write before a value and no schema calls it.

Enters: nothing. Leaves: `LABELS`: domain -> slot -> labels with "; " between them. Cost: none.
"""

# ruff: noqa: E501 - a template is one line of data

from __future__ import annotations

LABELS: dict[str, dict[str, str]] = {
    "people": {"name": "full name; employee; contact", "email": "e-mail", "phone": "tel; tel.; mobile no.", "company": "works at", "city": "lives in", "birthday": "date of birth; DOB"},
    "addresses": {"name": "attn; attn.; to; deliver to; ship to; recipient name", "street": "street; street and number; address", "zip": "ZIP; PLZ; post code", "company": "deliver to; c/o; firm", "unit": "apt no."},
    "orders": {"customer": "ordered by; sold to; customer name", "order_id": "order no.; order #; no.", "amount": "qty; pcs; number", "unit_price": "price each; unit price", "city": "ship to; deliver to", "date": "needed by; order date", "total": "total due; sum"},
    "invoices": {"number": "invoice no.; invoice no; invoice #; no.; inv. no.", "customer": "bill to; billed to; attn", "client": "bill to; sold to", "vendor": "from; supplier; issued by", "total": "total due; amount due; grand total; balance due", "tax": "VAT; sales tax", "subtotal": "net; sub-total", "date": "invoice date; date of issue", "due": "due; payable by; pay by", "terms": "payable within; payment within"},
    "events": {"title": "event; what; topic", "place": "where; venue", "date": "when", "time": "from; begins; start", "end": "to; ends", "guests": "with; who; attendees", "host": "led by; with", "duration": "length; takes"},
    "bugs": {"title": "title; summary; problem", "reporter": "reported by; found by", "version": "found in; affects version", "os": "OS; operating system", "assignee": "assigned to", "date": "date; reported on", "steps": "to reproduce"},
    "measurements": {"sensor": "sensor no.; taken with", "place": "where", "operator": "measured by"},
    "weather": {"city": "place; where", "wind": "wind speed", "rain": "chance of rain"},
    "flights": {"origin": "from; leaving from", "destination": "to; going to", "time": "departs", "arrival": "arrives", "number": "flight no.; flight", "name": "passenger; name", "cabin": "class", "date": "outbound; date", "return": "return"},
    "dates": {"start": "from; starts on", "end": "to; until", "name": "employee; who", "lead": "led by"},
}  # fmt: skip
