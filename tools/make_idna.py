"""Write csrc/strings/idna_tables.inc: characters of internationalised host names, as classes of a pattern.

In: the tables of RFC 5892 that the `idna` package holds (PVALID, CONTEXTJ, CONTEXTO), and bidirectional
classes, joining types and viramas from the `regex` module. Out: C++ string literals that go between the
brackets of a class; ASCII is left out. Run: python tools/make_idna.py
"""

from collections.abc import Iterable
from pathlib import Path

import regex
from idna import idnadata

OUT = Path(__file__).parent.parent / "csrc" / "schema" / "idna_tables.inc"


def packed(ranges: Iterable[int]) -> set[int]:
    """Returns the members of ranges as `idna` keeps them: first << 32 | end."""
    return {c for r in ranges for c in range(r >> 32, r & 0xFFFFFFFF) if c > 0x7F}


ALLOWED = {c for name in ("PVALID", "CONTEXTJ", "CONTEXTO") for c in packed(idnadata.codepoint_classes[name])}


def having(test: str) -> set[int]:
    found = regex.compile(test)
    return {c for c in ALLOWED if found.fullmatch(chr(c))}


def ranges(points: set[int]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1] = out[-1][0], c
        else:
            out.append((c, c))
    return out


def escape(c: int) -> str:
    return f"\\\\u{c:04X}" if c < 0x10000 else f"\\\\u{{{c:X}}}"


def literal(name: str, about: str, points: set[int]) -> str:
    parts = [escape(a) if a == b else escape(a) + "-" * (b > a + 1) + escape(b) for a, b in ranges(points)]
    lines, line = [], ""
    for part in parts:
        if len(line) + len(part) > 104:
            lines.append(line)
            line = ""
        line += part
    body = "\n".join(f'    "{text}"' for text in [*lines, line])
    return f"// {about}\nconstexpr const char k{name}[] =\n{body};\n"


def main() -> None:
    right, arabic = having(r"\p{bc=R}|\p{bc=AL}"), having(r"\p{bc=AN}")
    european, marks = having(r"\p{bc=EN}"), having(r"\p{bc=NSM}")
    neutral = ALLOWED - right - arabic - european - marks - having(r"\p{bc=L}")
    dual = having(r"\p{jt=D}")
    text = (
        f"// Written by tools/make_idna.py from Unicode {idnadata.__version__}; do not edit.\n"
        + literal("Allowed", "PVALID, CONTEXTJ and CONTEXTO", ALLOWED)
        + literal("Right", "bidirectional classes R and AL", right)
        + literal("ArabicNumber", "AN", arabic)
        + literal("EuropeanNumber", "EN", european)
        + literal("Nonspacing", "NSM", marks)
        + literal("Neutral", "ES, CS, ET, ON, BN", neutral)
        + literal("Virama", "canonical combining class 9", having(r"\p{ccc=9}"))
        + literal("JoinsNext", "joining types L and D", dual | having(r"\p{jt=L}"))
        + literal("JoinsPrevious", "joining types R and D", dual | having(r"\p{jt=R}"))
        + literal("Transparent", "joining type T", having(r"\p{jt=T}"))
    )
    OUT.write_text(text)
    print(f"{OUT.name}: {len(text)} bytes, {len(ranges(ALLOWED))} ranges of {len(ALLOWED)} code points")


if __name__ == "__main__":
    main()
