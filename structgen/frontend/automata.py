"""Automata that users bring: a table of transitions, or an FSM of the package interegular.

Enters: states, characters, transitions. Leaves: a grammar with one rule for each state; the engine turns it
into an automaton again. Cost: linear in the transitions. States that no text passes are left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from .. import _core
from ..errors import GrammarError

Table = Mapping[Hashable, Mapping[Any, Hashable]]
_MOST = 100_000  # the most transitions


def of_interegular(fsm: Any) -> tuple[Hashable, list[Hashable], dict[Hashable, dict[Any, Hashable]]]:
    """Returns initial state, finals and transitions of an `interegular.fsm.FSM`; the key None is any other
    character.

    Raises:
        TypeError: the object is no FSM.
    """
    if not all(hasattr(fsm, name) for name in ("alphabet", "initial", "finals", "map")):
        raise TypeError(
            "an automaton is an interegular FSM, or initial=, finals= and transitions={state: {char: to}}, "
            f"not {fsm!r:.60}"
        )
    symbols: dict[Any, list[str | None]] = {}
    for symbol, key in fsm.alphabet.items():
        symbols.setdefault(key, []).append(symbol if isinstance(symbol, str) else None)
    table: dict[Hashable, dict[Any, Hashable]] = {}
    for state, moves in fsm.map.items():
        row = table.setdefault(state, {})
        for key, target in moves.items():
            for symbol in symbols.get(key, ()):
                row[symbol] = target
    # "Any other" is relative to the whole alphabet: a state without a transition for a symbol refuses it.
    known = [symbol for listed in symbols.values() for symbol in listed if symbol is not None]
    for row in table.values():
        if None in row:
            row.update({symbol: _NOWHERE for symbol in known if symbol not in row})
    return fsm.initial, list(fsm.finals), table


_NOWHERE = object()


def build(
    initial: Hashable, finals: Iterable[Hashable], transitions: Table
) -> tuple[_core.GrammarBuilder, int]:
    """Returns the grammar's nodes and the number of its first rule.

    Raises:
        TypeError: the transitions are no table. GrammarError: a character has two transitions, or a state is
        missing.
    """
    if not isinstance(transitions, Mapping) or not all(
        isinstance(row, Mapping) for row in transitions.values()
    ):
        raise TypeError(f"transitions is a dict {{state: {{characters: state}}}}, not {transitions!r:.60}")
    if isinstance(finals, str | bytes) or not isinstance(finals, Iterable):
        raise TypeError(f"finals is a list of states, not {finals!r:.60}")
    ends = set(finals)
    states = {initial, *transitions, *ends}
    if sum(map(len, transitions.values())) > _MOST:
        raise GrammarError(f"the automaton has more than {_MOST} transitions")
    live = _live(initial, ends, transitions)
    if initial not in live:
        raise GrammarError("no path of the automaton leads from its initial state to a final one")
    b = _core.GrammarBuilder()
    order = sorted(live, key=lambda state: (state != initial, str(state)))
    rules = {state: b.rule(f"state {state}") for state in order}
    for state in order:
        ways = [b.literal(b"")] if state in ends else []
        targets: dict[Hashable, list[str]] = {}
        taken: set[str] = set()
        other: Hashable = _NOWHERE
        for key, target in transitions.get(state, {}).items():
            if target is not _NOWHERE and target not in states:
                raise GrammarError(
                    f"the state {target!r} is not in the automaton; a state without transitions is {{}}"
                )
            if key is None:
                other = target
                continue
            if not isinstance(key, str) or not key:
                raise TypeError(
                    f"a transition's key is a text of characters, or None for any other, not {key!r:.40}"
                )
            for char in key:
                if char in taken:
                    raise GrammarError(f"the state {state!r} has two transitions for {char!r}")
                taken.add(char)
                targets.setdefault(target, []).append(char)
        for target, chars in targets.items():
            if target in live:
                ways.append(b.sequence([b.chars(_ranges(chars)), b.call(rules[target])]))
        if other in live:
            ways.append(b.sequence([b.chars(_ranges(taken), True), b.call(rules[other])]))
        b.define(rules[state], b.choice(ways))
    return b, rules[initial]


def _live(initial: Hashable, ends: set[Hashable], transitions: Table) -> set[Hashable]:
    """Returns the states on paths from the initial state to a final one."""
    reached, todo = {initial}, [initial]
    back: dict[Hashable, set[Hashable]] = {}
    while todo:
        state = todo.pop()
        for target in transitions.get(state, {}).values():
            back.setdefault(target, set()).add(state)
            if target not in reached:
                reached.add(target)
                todo.append(target)
    found = ends & reached
    todo = list(found)
    while todo:
        for state in back.get(todo.pop(), ()):
            if state not in found:
                found.add(state)
                todo.append(state)
    return found


def _ranges(chars: Iterable[str]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for code in sorted(map(ord, chars)):
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return found
