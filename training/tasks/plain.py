"""Answers that are not JSON: SQL over a stated table, and arithmetic expressions.

Enters: a random generator and the split. Leaves: examples without a schema,
whose answer is one line of SQL or one expression.  Cost: microseconds.
"""

# ruff: noqa: E501 - a template is one line of data

from __future__ import annotations

import random

from training import templates, words
from training import values as v
from training.tasks.example import Example

_SQL = {
    "train": (
        ("(show|list|get|find|select) [the ]{c} of [all ]{t}[ table]", "SELECT {c} FROM {t}"),
        ("(show|list|get|select) (all|everything from) {t}", "SELECT * FROM {t}"),
        ("(show|list|get) [the ]{c} and {d} of {t}", "SELECT {c}, {d} FROM {t}"),
        (
            "(how many {t} are there|count the {t}|count all {t}|the number of {t})",
            "SELECT COUNT(*) FROM {t}",
        ),
        (
            "(show|list|get|find) [the ]{c} of {t} (where|with|whose) {d} (is |equal to |){s}",
            "SELECT {c} FROM {t} WHERE {d} = '{s}'",
        ),
        (
            "(show|list|get|find) [the ]{c} of {t} (where|with|whose) {d} (is |)(over|above|more than|greater than) {n}",
            "SELECT {c} FROM {t} WHERE {d} > {n}",
        ),
        (
            "(show|list|get|find) [the ]{c} of {t} (where|with|whose) {d} (is |)(under|below|less than) {n}",
            "SELECT {c} FROM {t} WHERE {d} < {n}",
        ),
        (
            "(show|list|get|find) [the ]{t} (where|with|whose) {d} (is |)(over|above|more than) {n}",
            "SELECT * FROM {t} WHERE {d} > {n}",
        ),
        (
            "(show|list|get|find) [the ]{t} (where|with|whose) {d} (is |){s}",
            "SELECT * FROM {t} WHERE {d} = '{s}'",
        ),
        (
            "(how many|count) {t} (have|with) {d} (over|above|more than) {n}",
            "SELECT COUNT(*) FROM {t} WHERE {d} > {n}",
        ),
        ("(how many|count) {t} (have|with) {d} {s}", "SELECT COUNT(*) FROM {t} WHERE {d} = '{s}'"),
        ("[the ]average {c} of {t}", "SELECT AVG({c}) FROM {t}"),
        ("(what is |)[the ](highest|maximum|largest) {c} (of|in) {t}", "SELECT MAX({c}) FROM {t}"),
        ("(what is |)[the ](lowest|minimum|smallest) {c} (of|in) {t}", "SELECT MIN({c}) FROM {t}"),
        ("[the ](sum|total) of {c} (of|in) {t}", "SELECT SUM({c}) FROM {t}"),
        ("(show|list) [the ]{c} of {t} (sorted|ordered) by {d}", "SELECT {c} FROM {t} ORDER BY {d}"),
        (
            "(show|list) [the ]{c} of {t} (sorted|ordered) by {d} descending",
            "SELECT {c} FROM {t} ORDER BY {d} DESC",
        ),
        ("(show|list|get) the first {k} {t}", "SELECT * FROM {t} LIMIT {k}"),
        ("(show|list|get) the top {k} {t} by {d}", "SELECT * FROM {t} ORDER BY {d} DESC LIMIT {k}"),
        ("(count|number of) {t} (per|by|for each) {d}", "SELECT {d}, COUNT(*) FROM {t} GROUP BY {d}"),
        ("delete [the ]{t} (where|with|whose) {d} (is |){s}", "DELETE FROM {t} WHERE {d} = '{s}'"),
        (
            "(set|change) {c} to {s} for {t} (where|with) {d} {n}",
            "UPDATE {t} SET {c} = '{s}' WHERE {d} = {n}",
        ),
    ),
    "test": (
        ("give me the {c} of {t} with {d} above {n}", "SELECT {c} FROM {t} WHERE {d} > {n}"),
        ("which {t} have {d} more than {n}", "SELECT * FROM {t} WHERE {d} > {n}"),
        ("please list {c} and {d} of all {t}", "SELECT {c}, {d} FROM {t}"),
        ("how many {t} with {d} {s}", "SELECT COUNT(*) FROM {t} WHERE {d} = '{s}'"),
        ("show me the average of {c} in {t}", "SELECT AVG({c}) FROM {t}"),
        ("list the {t} ordered by {d}", "SELECT * FROM {t} ORDER BY {d}"),
        ("find the {c} of the {t} whose {d} is {s}", "SELECT {c} FROM {t} WHERE {d} = '{s}'"),
    ),
}
_STATED = {
    "train": (
        "table {table}: {ask}",
        "{table}. {ask}",
        "SQL for {table}: {ask}",
        "given the table {table}, {ask}",
        "{ask} from {table}",
    ),
    "test": ("table {table}. {ask}", "SQL: {ask}, table {table}"),
}


def sql(rng: random.Random, split: str) -> Example:
    names: list[str] = []
    while len(names) < rng.randint(3, 6):
        base = v.pick(rng, "word", split)
        if base not in names:
            names.append(base)
    columns = [n if rng.random() < 0.8 else f"{n}_{v.pick(rng, 'word', split)}" for n in names[1:]]
    table = v.pluralised(names[0]) if rng.random() < 0.6 else names[0]
    one, two = rng.sample(columns, 2)
    ask, query = rng.choice(_SQL[split])
    given = {
        "t": table,
        "c": one,
        "d": two,
        "n": str(v.quantity(rng, split)[0]),
        "k": str(rng.randint(2, 50)),
        "s": rng.choice((v.city, v.person, v.phrase, v.country))(rng, split)[0],
    }
    ask = templates.choose(ask, rng)
    spoken = (
        {**given, "c": one.replace("_", " "), "d": two.replace("_", " ")} if rng.random() < 0.3 else given
    )
    for key in given:
        ask = ask.replace("{" + key + "}", spoken[key])
        query = query.replace("{" + key + "}", given[key])
    stated = (
        rng.choice(_STATED[split]).replace("{table}", f"{table}({', '.join(columns)})").replace("{ask}", ask)
    )
    return Example("sql", stated[:1].upper() + stated[1:], None, query)


_NUMBER_WORDS = {
    "+": ("plus", "plus", "added to"),
    "-": ("minus", "less"),
    "*": ("times", "multiplied by"),
    "/": ("divided by", "over"),
}
_OPENING = {
    "train": (
        "write as an expression: ",
        "expression: ",
        "formula: ",
        "as a formula: ",
        "calculate ",
        "compute ",
        "what is ",
    ),
    "test": ("give the expression: ", "expression for ", "write the formula: "),
}


def arithmetic(rng: random.Random, split: str) -> Example:
    spoken, written = _expression(rng, split, rng.choice((1, 1, 2, 2, 3)))
    return Example(
        "arithmetic",
        (rng.choice(_OPENING[split]) + spoken).capitalize()
        if rng.random() < 0.4
        else rng.choice(_OPENING[split]) + spoken,
        None,
        written,
    )


def _atom(rng: random.Random, split: str) -> tuple[str, str]:
    if rng.random() < 0.25:
        name = rng.choice("abcxyzn") if rng.random() < 0.6 else words.made_up_word(rng, split)
        return name, name
    value, text = (v.quantity if rng.random() < 0.5 else v.money)(rng, split)
    return text, str(value)


def _whole(written: str) -> str:
    """In parentheses unless it already is one thing."""
    if written.startswith("(") and written.endswith(")") or not any(c in written for c in "+-*/^"):
        return written
    return f"({written})"


def _expression(rng: random.Random, split: str, depth: int) -> tuple[str, str]:
    """Spoken and written form; `the sum of` and its like are written in parentheses."""
    left = _atom(rng, split)
    for _ in range(depth):
        right = _atom(rng, split)
        sign = rng.choice("+-*/")
        roll = rng.random()
        if roll < 0.3:
            named = {"+": "sum", "-": "difference", "*": "product", "/": "quotient"}[sign]
            left = (f"the {named} of {left[0]} and {right[0]}", f"({_whole(left[1])}{sign}{right[1]})")
        elif roll < 0.4:
            left = (f"the square of {left[0]}", f"{_whole(left[1])}^2")
        elif roll < 0.45 and depth == 1:
            left = (f"the square root of {left[0]}", f"sqrt({left[1]})")
        else:
            left = (f"{left[0]} {rng.choice(_NUMBER_WORDS[sign])} {right[0]}", f"{left[1]}{sign}{right[1]}")
    return left
