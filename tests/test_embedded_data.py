"""The training data of the embedded models: one seed gives equal data, and train and test are disjoint."""

from __future__ import annotations

import hashlib
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("faker")

from training import data, words  # noqa: E402
from training import values as v  # noqa: E402
from training.outside import sets as outside  # noqa: E402
from training.tasks import keyed, plain, tools  # noqa: E402
from training.tasks.domains import DOMAINS, ListSlot  # noqa: E402
from training.tasks.records import cased  # noqa: E402

COUNT = 400
ROOT = Path(__file__).resolve().parent.parent
POOLS = [
    *("first", "last", "city", "country", "street", "word", "job", "good", "material", "component"),
    *("symptom", "event", "topic", "venue", "quantity", "company_end", "airline", "condition"),
]


def _some(split: str, task: str | None = None, count: int = COUNT) -> list[data.Example]:
    weights = None if task is None else {task: 1.0}
    return [data.example(split, 3, index, weights) for index in range(count)]


def test_same_seed_same_examples() -> None:
    assert _some("train") == _some("train")
    assert data.example("train", 4, 0) != data.example("train", 3, 0)


def test_the_examples_of_a_seed_are_the_recorded_ones() -> None:
    """Moving code keeps the examples. A change of the training data must write the new hash here."""
    made = hashlib.sha256()
    for split in ("train", "test"):
        for index in range(300):
            made.update(repr(data.example(split, 5, index)).encode())
    assert made.hexdigest() == "a1aa92ea3842eaa7cebc24b0866e3549578c6fc18dc2309d6752771db43603a0"


def test_known_example_does_not_change_between_processes() -> None:
    # Each process orders a set of strings differently; the examples must not depend on that order.
    code = "from training import data; print([data.example('test', 5, i).answer_text() for i in range(60)])"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            cwd=ROOT,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1


@pytest.mark.parametrize("name", POOLS)
def test_word_lists_are_disjoint(name: str) -> None:
    train, test = words.pool(name, "train"), words.pool(name, "test")
    assert train and test
    assert not {w.lower() for w in train} & {w.lower() for w in test}


def test_names_and_cities_share_no_word() -> None:
    for name in ("first", "last", "city", "good", "word"):
        train = {part.lower() for w in words.pool(name, "train") for part in w.split()}
        test = {part.lower() for w in words.pool(name, "test") for part in w.split()}
        assert not train & test


def test_templates_are_disjoint() -> None:
    for domain in DOMAINS.values():
        assert not set(domain.train) & set(domain.test)
        for train, test in domain.clauses.values():
            assert not set(train) & set(test)
    for tool in tools.TOOLS:
        assert not set(tool.train) & set(tool.test)
    assert not {t for t, _ in plain._SQL["train"]} & {t for t, _ in plain._SQL["test"]}
    assert set(keyed._OPENINGS["test"]) & set(keyed._OPENINGS["train"]) <= {""}


def test_field_names_kept_for_the_test_do_not_occur_in_training() -> None:
    kept: dict[str, set[str]] = {}
    for task, domain in DOMAINS.items():
        slots = [*domain.slots.values()]
        slots += [
            inner for s in domain.slots.values() if isinstance(s, ListSlot) for inner in s.inner.values()
        ]
        used = {n for s in slots for n in s.names}
        kept[task] = {
            cased(n, style) for s in slots for n in s.test_names for style in ("snake", "camel", "kebab")
        }
        assert not used & {n for s in slots for n in s.test_names}
    for task, names in kept.items():
        seen = {n for one in _some("train", task, 100) for n in _field_names(one.schema)}
        assert not seen & {n for n in names if "_" in n or "-" in n}


def test_no_prompt_of_the_test_is_a_prompt_of_training() -> None:
    train = {one.text for one in _some("train", count=4000)}
    assert not train & {one.text for one in _some("test", count=1000) if one.task != "arithmetic"}


def test_values_are_disjoint() -> None:
    train, test = _values(_some("train", count=3000)), _values(_some("test", count=1000))
    for kind in ("people_name", "number", "date"):
        assert len(train[kind]) > 5 and len(test[kind]) > 5
        assert not train[kind] & test[kind]


@pytest.mark.parametrize("task", data.TASKS)
def test_answers_fit_their_schemas(task: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for split in words.SPLITS:
        for one in _some(split, task, 40):
            assert one.text and one.answer_text()
            if one.schema is not None:
                jsonschema.validate(one.answer, one.schema)
                assert json.loads(one.answer_text()) == one.answer


def _field_names(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        own = set(schema.get("properties", {}))
        return own.union(*(_field_names(v) for v in schema.values())) if schema else own
    return set().union(*(_field_names(v) for v in schema)) if isinstance(schema, list) and schema else set()


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in _leaves(v)]
    return [leaf for v in value for leaf in _leaves(v)] if isinstance(value, list) else [value]


def _values(examples: list[data.Example]) -> dict[str, set[Any]]:
    found: dict[str, set[Any]] = {"people_name": set(), "number": set(), "date": set()}
    for one in examples:
        if one.schema is None:
            continue
        for leaf in _leaves(one.answer):
            if (
                isinstance(leaf, int)
                and not isinstance(leaf, bool)
                and abs(leaf) >= 100
                and one.task != "keyed"
            ):
                found["number"].add(leaf)
            if isinstance(leaf, str) and len(leaf) == 10 and leaf[4] == leaf[7] == "-" and leaf[:2] == "20":
                found["date"].add(leaf)
        if one.task == "dates":
            name = next((one.answer[k] for k in one.answer if k in ("name", "person", "employee")), None)
            if name:
                found["people_name"].add(name)
    return found


def test_requests_by_hand_fit_their_schemas_and_the_text_says_their_values() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    asked = outside.requests()
    assert len(asked) >= 40 and len({one["prompt"] for one in asked}) == len(asked)
    for one in asked:
        jsonschema.validate(one["answer"], one["schema"])
        for leaf in _leaves(one["answer"]):
            spelled = isinstance(leaf, str) and leaf.lower() not in one["prompt"].lower()
            # Days, times and members of an enum are not copied from the request.
            assert not spelled or re.fullmatch(r"\d{4}-\d\d-\d\d|\d\d:\d\d|[A-Z]{3}|\w+", leaf), leaf


def test_requests_by_hand_are_not_training_text() -> None:
    asked = {one["prompt"].lower() for one in outside.requests()}
    values = {leaf for one in outside.requests() for leaf in _leaves(one["answer"]) if isinstance(leaf, str)}
    rare = {value for value in values if len(value) > 14 and " " in value}
    assert len(rare) > 30
    for one in _some("train", count=3000):
        assert one.text.lower() not in asked
        assert not {leaf for leaf in _leaves(one.answer) if isinstance(leaf, str)} & rare


@pytest.mark.parametrize(
    ("short", "schema"),
    [
        ("int", {"type": "integer"}),
        ("a|b", {"type": "string", "enum": ["a", "b"]}),
        ("num?", {"type": ["number", "null"]}),
        (["date"], {"type": "array", "items": {"type": "string", "format": "date"}}),
    ],
)
def test_short_schemas(short: Any, schema: dict[str, Any]) -> None:
    assert outside.expand(short) == schema


def test_numbers_in_words_and_with_commas() -> None:
    words_of = [v.in_words(n) for n in range(100)]
    assert len(set(words_of)) == 100
    assert (words_of[0], words_of[13], words_of[20], words_of[99]) == (
        "zero",
        "thirteen",
        "twenty",
        "ninety-nine",
    )
    rng = random.Random(3)
    for text in ("1250.5", "999", "-12345", "1000000"):
        shown = {v.grouped(text, rng) for _ in range(50)}
        assert {one.replace(",", "") for one in shown} == {text}
        assert all(re.fullmatch(r"-?\d{1,3}(,\d{3})*(\.\d+)?", one) for one in shown - {text})


def _minutes(text: str) -> float:
    """Reads a duration in minutes with other code than the code that wrote it."""
    plain = {v.in_words(n): n for n in range(100)} | {"a": 1, "an": 1, "half": 0.5, "one": 1}
    text = text.replace("three quarters of an hour", "45 min").replace("a quarter of an hour", "15 min")
    text = text.replace("hour and a quarter", "hour 15 min").replace("half an hour", "30 min")
    text = re.sub(r"([\w.]+) and a half hours", lambda m: f"{plain[m[1]] + 0.5} hours", text)
    text = text.replace("hour and a half", "hour 30 min")
    text = re.sub(r"^(\d+)h(\d\d)$", r"\1 h \2 min", text)
    total = 0.0
    for number, unit in re.findall(r"([\w.-]+?) ?(h|hours?|m|min|minutes?)\b", text):
        total += (60 if unit[0] == "h" else 1) * (float(plain[number]) if number in plain else float(number))
    return total


def test_lengths_of_time_are_what_they_say() -> None:
    rng = random.Random(4)
    for _ in range(500):
        value, text = v.duration("minute")(rng, "train")
        assert _minutes(text) == value, text
    days = [v.duration("day")(rng, "train") for _ in range(300)]
    weeks = [(value, text) for value, text in days if "week" in text]
    assert weeks and all(value % 7 == 0 for value, _ in weeks)
