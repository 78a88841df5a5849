"""Records: a text about people, orders, flights, ... to the fields a schema asks for.

Enters: a random generator, the split, a domain name. Leaves: (text, schema,
answer, whether a field name was kept for the test). Cost: microseconds.

What varies: template, extra clauses and their order, key names and their
casing, key order, nesting, which fields are asked for, and which of them the
text does not state (null).
"""

from __future__ import annotations

import random
import re
from typing import Any

from training import templates, words
from training import values as v
from training.tasks.distractors import distractor
from training.tasks.domain import PERSON
from training.tasks.domains import DOMAINS, WIDENED, Domain, ListSlot, Slot
from training.tasks.example import Example, object_schema
from training.tasks.form_labels import LABELS

_AMOUNT = re.compile(r"(\d[\d.,]*) (EUR|euros?|USD|US dollars|dollars|GBP|pounds)\b")
_SIGNS = {"eu": "\u20ac", "us": "$", "do": "$", "gb": "\u00a3", "po": "\u00a3"}


def joined(parts: list[str], rng: random.Random) -> str:
    if len(parts) == 1:
        return parts[0]
    last = rng.choice((" and ", " and ", ", and ", ", "))
    return ", ".join(parts[:-1]) + last + parts[-1]


def cased(name: str, style: str) -> str:
    if style == "camel":
        head, *rest = name.split("_")
        return head + "".join(part.title() for part in rest)
    return name.replace("_", "-") if style == "kebab" else name


def case_style(rng: random.Random) -> str:
    return rng.choices(("snake", "camel", "kebab"), (0.72, 0.24, 0.04))[0]


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if "enum" in schema:
        return {**schema, "type": [schema["type"], "null"], "enum": [*schema["enum"], None]}
    return {**schema, "type": [schema["type"], "null"]}


class _Namer:
    """Gives each slot one key name; remembers whether a name kept for the test came up."""

    def __init__(self, rng: random.Random, split: str) -> None:
        self.rng, self.split, self.style, self.unseen = rng, split, case_style(rng), False
        self.taken: set[str] = set()

    def name(self, slot: Slot | ListSlot) -> str:
        if self.split == "test" and slot.test_names and self.rng.random() < 0.3:
            name = self.rng.choice(slot.test_names)
            self.unseen = True
        else:
            # The plain name leads: it is what schemas use most.
            name = slot.names[0] if self.rng.random() < 0.35 else self.rng.choice(slot.names)
        name = cased(name, self.style)
        if name in self.taken:
            name = cased(slot.names[0], self.style)
        self.taken.add(name)
        return name


def _draw_list(slot: ListSlot, rng: random.Random, split: str) -> tuple[list[dict[str, Any]], str, set[str]]:
    form = rng.choice(slot.forms)
    used = set(templates.slots_of(form))
    rows, parts = [], []
    alike = [one for one in slot.forms if set(templates.slots_of(one)) == used]
    mixed = split == "train" and rng.random() < 0.3
    for _ in range(rng.choices((1, 2, 3, 4), (0.4, 0.33, 0.2, 0.07))[0]):
        form = rng.choice(alike) if mixed else form
        drawn = {key: slot.inner[key].kind.draw(rng, split) for key in sorted(used)}
        if "product" in drawn:
            several = drawn.get("quantity", (1, ""))[0] != 1 and rng.random() < 0.8
            name = v.goods(rng, split, several)
            drawn["product"] = (name, name)
            if drawn.get("quantity", (0, ""))[0] == 1 and "x" not in form and rng.random() < 0.5:
                drawn["quantity"] = (
                    1,
                    "an" if name[0] in "aeiou" and form.startswith("{quantity} {") else "a",
                )
        rows.append({key: value for key, (value, _) in drawn.items()})
        parts.append(_fill(form, drawn))
    return rows, joined(parts, rng), used


def _fill(form: str, drawn: dict[str, tuple[Any, str]]) -> str:
    text = form
    for key, (_, surface) in drawn.items():
        text = text.replace("{" + key + "}", surface)
    return text


def write(rng: random.Random, split: str, domain_name: str) -> Example:
    domain = (WIDENED if split == "train" else DOMAINS)[domain_name]
    if split == "train" and rng.random() < 0.15:
        return _form(domain, domain_name, rng, split)
    sentences = [templates.choose(rng.choice(getattr(domain, split)), rng)]
    stated = set(templates.slots_of(sentences[0]))
    labelled = split == "train" and rng.random() < 0.3
    extras = [k for k in domain.clauses if k not in stated]
    rng.shuffle(extras)
    more = (0.4, 0.33, 0.2, 0.07, 0.0, 0.0) if split == "test" else (0.2, 0.2, 0.25, 0.18, 0.1, 0.07)
    for key in extras[: rng.choices(range(6), more)[0]]:
        clause = templates.choose(rng.choice(domain.clauses[key][0 if split == "train" else 1]), rng)
        if not stated.intersection(templates.slots_of(clause)):
            stated.update(templates.slots_of(clause))
            sentences.append(clause)

    if labelled:
        sentences += _labelled(domain, stated, rng)
    drawn: dict[str, tuple[Any, str]] = {}
    list_keys: dict[str, set[str]] = {}
    lower = rng.random() < 0.06  # some people type no capitals
    # Sorted: sets of strings have no fixed order between processes, and the draw must be repeatable.
    for key in sorted(stated):
        slot = domain.slots[key]
        if isinstance(slot, ListSlot):
            rows, surface, list_keys[key] = _draw_list(slot, rng, split)
            drawn[key] = (rows, surface)
        else:
            drawn[key] = slot.kind.draw(rng, split)
            if lower and drawn[key][0] == drawn[key][1] and "enum" not in slot.kind.schema:
                drawn[key] = (drawn[key][1].lower(), drawn[key][1].lower())
    if split == "train" and rng.random() < 0.35:
        firm = {key for key, (_, surface) in drawn.items() if surface[:1].isupper() or surface[:1].isdigit()}
        sentences = [templates.disturb(x, rng, lambda: _odd_word(rng, split), firm) for x in sentences]
    text = _assemble(sentences, drawn, rng, split)
    schema, answer, unseen = _ask(domain, stated, drawn, list_keys, rng, split)
    return Example(domain_name, text, schema, answer, unseen)


_FORM_JOINS = (", ", "; ", " ", " ", " | ", ". ", " - ", " / ")
_FORM_MARKS = (": ", ": ", ": ", ":", " = ", "=", " - ", " ")


def _form(domain: Domain, domain_name: str, rng: random.Random, split: str) -> Example:
    """A filled form: each value behind a label, which is one of the field's names."""
    keys = [
        k
        for k, slot in domain.slots.items()
        if isinstance(slot, ListSlot) or slot.kind.schema is not v.BOOLEAN
    ]
    stated = set(rng.sample(keys, rng.randint(2, min(7, len(keys)))))
    list_keys: dict[str, set[str]] = {}
    drawn: dict[str, tuple[Any, str]] = {}
    parts = []
    style = rng.choice((str.title, str.capitalize, str.capitalize, str.lower, str.upper))
    join, mark = rng.choice(_FORM_JOINS), rng.choice(_FORM_MARKS)
    if join == " ":  # then the label alone says where a value ends
        style, mark = rng.choice((str.title, str.capitalize)), rng.choice((": ", ": ", ":"))
    order = sorted(stated)
    rng.shuffle(order)
    if rng.random() < 0.6:
        order = [k for k in domain.slots if k in stated]
    for key in order:
        slot = domain.slots[key]
        if isinstance(slot, ListSlot):
            rows, surface, list_keys[key] = _draw_list(slot, rng, split)
            drawn[key] = (rows, surface)
        else:
            drawn[key] = slot.kind.draw(rng, split)
        written = [x.strip() for x in LABELS[domain_name].get(key, "").split(";") if x]
        label = style(rng.choice(slot.names).replace("_", " "))
        if written and rng.random() < 0.4:
            label = rng.choice(written)
            if not label.isupper():
                label = label[:1].upper() + label[1:] if join == " " else style(label)
        parts.append(f"{label}{mark}{drawn[key][1]}")
    text = join.join(parts)
    if rng.random() < 0.2:
        opening = rng.choice(("new entry", "record", "form", domain_name[:-1], "details", "see below"))
        text = f"{opening.capitalize()}{rng.choice((': ', ' - ', '. '))}{text}"
    schema, answer, unseen = _ask(domain, stated, drawn, list_keys, rng, split)
    return Example(domain_name, text + rng.choice(("", "", ".")), schema, answer, unseen)


_LABELS = (
    "{k}: {v}",
    "the {k} is {v}",
    "{k} {v}",
    "{k} is {v}",
    "{v} is the {k}",
    "{k} = {v}",
    "its {k}: {v}",
    "the {k} should be {v}",
    "set {k} to {v}",
    "{k} of {v}",
    "({k}: {v})",
    "with {k} {v}",
)


def _labelled(domain: Domain, stated: set[str], rng: random.Random) -> list[str]:
    """Sentences that give a field by one of its key names, as forms and logs do."""
    plain = [
        k
        for k, slot in domain.slots.items()
        if k not in stated and isinstance(slot, Slot) and slot.kind.schema is not v.BOOLEAN
    ]
    found = []
    for key in rng.sample(plain, min(len(plain), rng.choice((1, 1, 2, 3)))):
        slot = domain.slots[key]
        stated.add(key)
        found.append(
            rng.choice(_LABELS)
            .replace("{k}", rng.choice(slot.names).replace("_", " "))
            .replace("{v}", "{" + key + "}")
        )
    return found


def _odd_word(rng: random.Random, split: str) -> str:
    return v.pick(rng, "word", split) if rng.random() < 0.6 else words.made_up_word(rng, split)


def _assemble(sentences: list[str], drawn: dict[str, tuple[Any, str]], rng: random.Random, split: str) -> str:
    parts = [templates.fill(sentence, lambda key: drawn[key][1]) for sentence in sentences]
    if rng.random() < 0.3:
        parts = [
            part[:1].lower() + part[1:] if part.split(" ")[0] != "I" and sentence[:1] != "{" else part
            for part, sentence in zip(parts, sentences, strict=True)
        ]
    while rng.random() < (0.2 if split == "test" or len(parts) > 6 else 0.35):
        parts.insert(rng.randrange(len(parts) + 1), distractor(rng, split))
    if rng.random() < 0.25 and len(parts) > 1:
        rng.shuffle(parts)
    if split == "train" and rng.random() < 0.25:
        parts = [_AMOUNT.sub(lambda m: _SIGNS[m.group(2)[:2].lower()] + m.group(1), part) for part in parts]
    join = rng.choice((". ", ". ", ", ", "; "))
    return join.join(parts) + rng.choice((".", ".", "", "!" if join == ". " else ""))


def _ask(
    domain: Domain,
    stated: set[str],
    drawn: dict[str, tuple[Any, str]],
    list_keys: dict[str, set[str]],
    rng: random.Random,
    split: str,
) -> tuple[dict[str, Any], dict[str, Any], bool]:
    namer = _Namer(rng, split)
    absent_rate = rng.choice((0.0, 0.0, 0.2, 0.4))
    asked = [k for k in domain.slots if (rng.random() < 0.93 if k in stated else rng.random() < absent_rate)]
    if not asked:
        asked = [next(k for k in domain.slots if k in stated)]
    if rng.random() < 0.4:
        rng.shuffle(asked)
    fields: dict[str, dict[str, Any]] = {}
    answer: dict[str, Any] = {}
    # Often nullable though stated: that null is allowed must not suggest null.
    all_nullable = rng.random() < 0.3
    group = next(
        ((g, m) for g, m in domain.groups.items() if rng.random() < 0.4 and len(set(m) & set(asked)) > 1),
        None,
    )
    inner_fields: dict[str, dict[str, Any]] = {}
    inner_answer: dict[str, Any] = {}
    for key in asked:
        slot = domain.slots[key]
        if _in_two_names(domain, key, drawn.get(key), rng, split):
            two_names = rng.choice(_TWO_NAMES)
            whole = drawn[key][0].split() if key in stated else [None, None]
            for part, word in zip(two_names, whole, strict=True):
                name = cased(part, namer.style)
                if name not in fields:
                    fields[name] = v.STRING if word and not all_nullable else nullable(v.STRING)
                    answer[name] = word
            continue
        grouped = group is not None and key in group[1]
        into_fields, into_answer = (inner_fields, inner_answer) if grouped else (fields, answer)
        if grouped and group is not None and group[0] not in fields:
            fields[group[0]], answer[group[0]] = {}, inner_answer
            namer.taken.add(group[0])
        name = namer.name(slot)
        if isinstance(slot, ListSlot):
            into_fields[name], into_answer[name] = _ask_list(slot, drawn.get(key), list_keys.get(key), namer)
            continue
        if slot.kind.schema is v.BOOLEAN and key == "express":
            into_fields[name], into_answer[name] = v.BOOLEAN, key in stated
            continue
        schema = slot.kind.schema
        if "enum" in schema and rng.random() < 0.5:
            schema = {**schema, "enum": rng.sample(schema["enum"], len(schema["enum"]))}
        into_fields[name] = (
            nullable(schema) if key not in stated or all_nullable or rng.random() < 0.3 else schema
        )
        into_answer[name] = drawn[key][0] if key in stated else None
    if inner_fields and group is not None:
        fields[group[0]] = object_schema(inner_fields)
    return object_schema(fields), answer, namer.unseen


_TWO_NAMES = (
    ("first_name", "last_name"),
    ("given_name", "family_name"),
    ("first_name", "surname"),
    ("forename", "surname"),
)


def _in_two_names(
    domain: Domain, key: str, value: tuple[Any, str] | None, rng: random.Random, split: str
) -> bool:
    """Whether a person is asked for as first and last name: sometimes, where the name is two words."""
    slot = domain.slots[key]
    if split == "test" or isinstance(slot, ListSlot) or slot.kind is not PERSON:
        return False
    if key not in ("name", "customer"):
        return False
    return rng.random() < 0.15 and (value is None or (len(value[0].split()) == 2 and "." not in value[0]))


def _ask_list(
    slot: ListSlot, value: tuple[Any, str] | None, used: set[str] | None, namer: _Namer
) -> tuple[dict[str, Any], Any]:
    """A list the text does not state is empty; a list of one-field records may be plain values."""
    rng = namer.rng
    keys = [k for k in slot.inner if used is None or k in used or rng.random() < 0.35]
    rows = value[0] if value is not None else []
    if len(slot.inner) == 1 or (len(keys) > 1 and rng.random() < 0.06):
        key = next(iter(slot.inner))
        return {"type": "array", "items": slot.inner[key].kind.schema}, [row[key] for row in rows]
    if rng.random() < 0.3:
        rng.shuffle(keys)
    inner = _Namer(rng, namer.split)
    inner.style = namer.style
    names = {k: inner.name(slot.inner[k]) for k in keys}
    namer.unseen |= inner.unseen
    fields = {
        names[k]: slot.inner[k].kind.schema
        if used is not None and k in used
        else nullable(slot.inner[k].kind.schema)
        for k in keys
    }
    answers = [{names[k]: row.get(k) for k in keys} for row in rows]
    return {"type": "array", "items": object_schema(fields)}, answers
