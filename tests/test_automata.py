"""Automata from users: the grammar matches the texts that the table and the original pattern match."""

from __future__ import annotations

import itertools
import pickle
import random
import re
from typing import Any

import pytest

import structgen as sg
from oracles.harness import verdict

COMPILER = sg.Compiler(sg.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], eos_token_ids=256))


def walk(initial: Any, finals: Any, table: Any, text: str) -> bool:
    state = initial
    for char in text:
        row = table.get(state, {})
        key = next((k for k in row if k is not None and char in k), None)
        if key is None and None not in row:
            return False
        state = row[key]
    return state in finals


def test_random_tables_are_walked() -> None:
    draws = random.Random(3)
    texts = ["".join(t) for n in range(5) for t in itertools.product("abé", repeat=n)]
    empty = 0
    for _ in range(80):
        states = range(draws.randint(1, 5))
        table: dict[Any, dict[str | None, Any]] = {}
        for state in states:
            row: dict[str | None, Any] = {}
            letters = draws.sample("abé", draws.randint(0, 3))
            if len(letters) > 1 and draws.random() < 0.3:
                row["".join(letters)] = draws.choice(states)
            else:
                row = {letter: draws.choice(states) for letter in letters}
            if draws.random() < 0.2:
                row[None] = draws.choice(states)
            table[state] = row
        finals = [s for s in states if draws.random() < 0.4]
        want = {t for t in texts if walk(0, finals, table, t)}
        try:
            grammar = COMPILER.automaton(initial=0, finals=finals, transitions=table)
        except sg.GrammarError as error:
            assert "no path" in str(error) and not want
            empty += 1
            continue
        assert {t for t in texts if verdict(grammar, t)} == want, (table, finals)
        # Every allowed byte can be completed to a text.
        matcher = grammar.matcher()
        for _ in range(6):
            live = matcher.live_bytes()
            if not live:
                break
            matcher.accept_bytes(bytes([draws.choice(live)]))
            assert matcher.fork().accept_bytes(matcher.shortest_completion())
    assert empty < 40


@pytest.mark.parametrize("pattern", ["a*b", "(ab|c)+", "[a-c]{2,3}", "a[^b]c", ".b", "(a|b)*abb", "x?[é-ü]"])
def test_an_fsm_of_interegular(pattern: str) -> None:
    interegular = pytest.importorskip("interegular")
    grammar = COMPILER.automaton(interegular.parse_pattern(pattern).to_fsm())
    for n in range(5):
        for letters in itertools.product("abcxéz", repeat=n):
            text = "".join(letters)
            assert verdict(grammar, text) == (re.fullmatch(pattern, text) is not None), text


def test_a_model_follows_an_automaton() -> None:
    grammar = sg.Compiler(sg.Vocabulary.from_file(_target())).automaton(
        initial="start",
        finals={"end"},
        transitions={"start": {"yn": "more"}, "more": {"!": "end"}, "end": {"!": "end"}},
    )
    result = sg.generate(None, "x", grammar=grammar, max_tokens=6)
    assert re.fullmatch("[yn]!+", result.text) and result.value == result.text
    again = pickle.loads(pickle.dumps(grammar))
    assert verdict(again, "y!") and not verdict(again, "y")


def _target() -> Any:
    from structgen.lm import embedded

    return embedded.path()


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({}, TypeError, "automaton takes an interegular FSM, or"),
        ({"fsm": 3}, TypeError, "not 3"),
        ({"fsm": 3, "transitions": {}}, ValueError, "not both"),
        ({"transitions": [1]}, TypeError, "transitions is a dict"),
        ({"transitions": {0: ["a"]}}, TypeError, "transitions is a dict"),
        ({"transitions": {0: {"a": 1}}, "finals": "1"}, TypeError, "finals is a list"),
        (
            {"transitions": {0: {"a": 1}}, "finals": [0]},
            sg.GrammarError,
            "the state 1 is not in the automaton",
        ),
        ({"transitions": {0: {"a": 0, "ba": 0}}, "finals": [0]}, sg.GrammarError, "two transitions for 'a'"),
        ({"transitions": {0: {3: 0}}, "finals": [0]}, TypeError, "key is a text of characters"),
        ({"transitions": {0: {"a": 0}}}, sg.GrammarError, "no path"),
    ],
)
def test_mistakes(given: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        COMPILER.automaton(**given)
    assert "\n" not in str(caught.value)
