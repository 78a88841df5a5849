"""Look-behinds that contain look-aheads, compared with Python's ``re``: random patterns, all texts up to a
length."""

from __future__ import annotations

import itertools
import re

import pytest

import structgen
from oracles import harness
from oracles.strategies import Source
from structgen import errors

BYTES = structgen.Compiler(structgen.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], 256))
TEXTS = ["".join(t) for n in range(6) for t in itertools.product("ab-", repeat=n)]
AHEAD = (r"\b", r"\B", "$", "(?=a)", "(?=b)", "(?!a)", "(?=ab)", "(?!-|$)", r"(?=b\b)", r"(?=a(?!b))")


def behind(source: Source) -> str:
    """Returns a look-behind of fixed width; ``re`` takes no other."""

    def branch(width: int) -> str:
        parts = []
        for _ in range(width):
            if source.chance(25):
                parts.append(source.pick(AHEAD))
            parts.append(source.pick(("a", "b", "-", "[ab]", ".", "[^-]")))
        if source.chance(60):
            parts.append(source.pick(AHEAD))
        return "".join(parts)

    width = source.integer(0, 2)
    body = "|".join(branch(width) for _ in range(source.integer(1, 2)))
    if source.chance(15):
        body = f"(?:{body})(?<={source.pick(('a', 'b$', '[ab](?=a)'))})" if width else body
    return f"(?<{source.pick('=!')}{body})"


def pattern(source: Source) -> str:
    parts = []
    for _ in range(source.integer(1, 3)):
        parts.append(source.pick(("a", "b", "-", "[ab]*", ".*", "(?:a|b-)", "(?:ab)?")))
        if source.chance(60):
            parts.append(behind(source))
    return behind(source) * source.chance(20) + "".join(parts) + ".*" * source.chance(40)


refused = 0


def same_texts(source: Source) -> None:
    global refused
    written = pattern(source)
    try:
        found = BYTES.regex(written)
    except errors.UnsupportedSchema as error:
        assert "looks ahead past its end" in str(error), written
        refused += 1
        return
    except errors.GrammarError as error:
        assert "no text" in error.message, written
        found = None
    for text in TEXTS:
        wanted = re.fullmatch(written, text) is not None
        assert (found is not None and harness.verdict(found, text)) == wanted, (written, text)


def test_look_behinds_that_look_ahead() -> None:
    harness.seeded(same_texts, 150)
    assert refused < harness.cases(60)


@pytest.mark.parametrize(
    "schema, inside, outside",
    [
        ({"pattern": "(?<=a(?=b))"}, ['"ab"', '"xab"'], ['"a"', '"ba"']),
        ({"pattern": "(?<=a$)"}, ['"a"', '"ba"'], ['"ab"']),
        ({"pattern": r"^x*(?<=x\b)-"}, ['"x-"'], ['"-"']),
        ({"pattern": "(?<!a$)$"}, ['"b"', '""'], ['"a"']),
        ({"pattern": "(?<=a+(?=b)|c+$)"}, ['"aab"', '"xcc"'], ['"a"', '"ca"']),
    ],
)
def test_patterns_of_schemas(schema, inside, outside) -> None:
    found = BYTES.json_schema({"type": "string", **schema})
    assert [t for t in inside if not harness.verdict(found, t)] == []
    assert [t for t in outside if harness.verdict(found, t)] == []


def test_what_stays_out_is_unsupported() -> None:
    with pytest.raises(errors.UnsupportedSchema, match="looks ahead past its end"):
        BYTES.json_schema({"type": "string", "pattern": "(?<=a(?=bc)b)"})
