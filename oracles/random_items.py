"""Random schemas whose items are compared (uniqueItems). Texts with holes are compared with enumeration.
Random walks through objects and arrays of unbounded size are compared with `JsonOracle` (`check_walk`).

The schemas with holes have finitely many texts: arrays of a few values and objects, up to two levels deep.
The plain matcher decides which are instances. The law of `infill` is checked on all of them: a middle belongs
to it exactly if prefix, middle and suffix form one of these texts, and each live byte begins a middle. If an
answer says that something was too hard (`mask_exact`, an error of a limit), it may miss middles, but all that
it allows begins a middle.

`python -m oracles.random_items FIRST COUNT [walk]` checks seeds and prints one line per failure.
"""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

import structgen as sg
from oracles import closed
from oracles.oracle import JsonOracle
from oracles.random_grammars import Mismatch, run
from oracles.random_holes import json_compiler
from oracles.strategies import Seeded, Source
from structgen import errors

NAMES = ("k", "kk")
ATOMS: tuple[Any, ...] = (1, 11, 2, True, False, "a", "aa")
HOW = {"whitespace": "compact", "numbers": "canonical", "strings": "plain"}
MOST = 3  # the most items of an array
HOLES = 10  # holes per schema


def values(source: Source, depth: int) -> list[Any]:
    """Returns a few values, arrays among them."""
    some = [source.pick(ATOMS) for _ in range(source.integer(1, 3))]
    if depth:
        some += [values(source, 0)[: source.integer(0, 2)] for _ in range(source.integer(0, 2))]
    return [v for i, v in enumerate(some) if repr(v) not in {repr(w) for w in some[:i]}]


def items(source: Source, depth: int) -> Any:
    """Returns a schema with few values."""
    if depth and source.chance(40):
        return array(source, depth - 1)
    if source.chance(15):
        return {"type": "boolean"}
    if source.chance(25):
        return members(source)
    return {"enum": values(source, depth)}


def members(source: Source) -> dict[str, Any]:
    """Returns a schema of objects with few instances."""
    names = NAMES[: source.integer(1, len(NAMES))]
    out: dict[str, Any] = closed({n: {"enum": values(source, 0)[:2]} for n in names}, ())
    if source.chance(40):
        out["required"] = [source.pick(names)]
    return out


def objects(properties: dict[str, Any]) -> set[str]:
    """Returns the texts of objects with a subset of the members, in the members' order."""
    ways = [[None, *part["enum"]] for part in properties.values()]
    return {
        json.dumps(
            {k: v for k, v in zip(properties, row, strict=True) if v is not None}, separators=(",", ":")
        )
        for row in itertools.product(*ways)
    }


def array(source: Source, depth: int) -> dict[str, Any]:
    """Returns a schema of arrays with few instances."""
    out: dict[str, Any] = {
        "type": "array",
        "items": items(source, depth),
        "maxItems": source.integer(1, MOST),
    }
    if source.chance(75):
        out["uniqueItems"] = True
    if source.chance(25):
        out["minItems"] = source.integer(1, 2)
    if source.chance(20):
        out["prefixItems"] = [items(source, depth) for _ in range(source.integer(1, 2))]
    if source.chance(30):
        kind = source.pick(("oneOf", "anyOf", "not", "oneOf"))
        if kind == "not":
            out["not"] = {"uniqueItems": True, "maxItems": source.integer(1, MOST)}
        else:
            return {kind: [out, array(source, depth)]}
    return out


def instances(schema: Any, inside: Any) -> list[bytes]:
    """Returns every text of a schema: the arrays of the schema's values that the matcher accepts."""
    atoms: list[Any] = []
    arrays: list[Any] = []
    written: set[str] = set()

    def look(part: Any) -> None:
        if isinstance(part, dict):
            for key, value in part.items():
                if key == "enum":
                    for v in value:
                        (arrays if isinstance(v, list) else atoms).append(v)
                elif key == "type" and value == "boolean":
                    atoms.extend((True, False))
                elif key == "properties":
                    written.update(objects(value))
                else:
                    look(value)
        elif isinstance(part, list):
            for p in part:
                look(p)

    look(schema)
    leaves = sorted({json.dumps(a) for a in atoms})
    leaves = sorted({*leaves, *written})
    inner = set(leaves) | {json.dumps(a, separators=(",", ":")) for a in arrays} | {"[]"}
    if depth_of(schema) > 1:
        for n in range(1, MOST + 1):
            inner |= {"[" + ",".join(p) + "]" for p in itertools.product(leaves, repeat=n)}
    texts, level = {"[]"}, [""]
    for _ in range(MOST):
        level = [f"{t},{i}" if t else i for t in level for i in sorted(inner)]
        level = [t for t in level if inside(f"[{t}".encode(), whole=False)]
        if len(level) * len(inner) > 20_000:
            raise OverflowError
        texts |= {f"[{t}]" for t in level}
    return sorted(t.encode() for t in texts if inside(t.encode(), whole=True))


def depth_of(schema: Any) -> int:
    """Returns how deep arrays are nested."""
    if isinstance(schema, dict):
        below = max((depth_of(v) for v in schema.values()), default=0)
        return below + (schema.get("type") == "array")
    return max((depth_of(v) for v in schema), default=0) if isinstance(schema, list) else 0


def check(seed: int, compiler: sg.Compiler) -> tuple[int, int, int]:
    """Returns (holes with middles, holes without, unknown answers) of one schema."""
    source = Seeded(seed)
    schema = array(source, source.integer(0, 1))
    try:
        grammar = compiler.json_schema(schema, **HOW)
    except errors.GrammarError:
        return 0, 0, 0

    try:
        texts = instances(schema, lambda text, whole: taken(grammar, text, whole))
    except OverflowError:
        return 0, 0, 0
    if not texts:
        return 0, 0, 0
    fit = empty = unknown = 0
    for _ in range(HOLES):
        one, other = source.pick(texts), source.pick(texts)
        begin = source.integer(0, len(one))
        prefix, suffix = one[:begin], other[source.integer(0, len(other)) :]
        if source.chance(60):
            suffix = one[source.integer(begin, len(one)) :]
        least = len(prefix) + len(suffix)
        right = {
            t[len(prefix) : len(t) - len(suffix)]
            for t in texts
            if len(t) >= least and t.startswith(prefix) and t.endswith(suffix)
        }
        exact = check_hole(grammar, prefix, suffix, right, f"{json.dumps(schema)}: {prefix!r} | {suffix!r}")
        fit, empty, unknown = fit + bool(right), empty + (not right), unknown + (not exact)
    return fit, empty, unknown


CONDITIONS = (
    (sg.containing(","), lambda t: b"," in t),
    (sg.containing("1", "aa"), lambda t: b"1" in t or b"aa" in t),
    (sg.without("a"), lambda t: b"a" not in t),
    (sg.without("11") & sg.min_bytes(6), lambda t: b"11" not in t and len(t) >= 6),
    (sg.Regex(r".*1,.*"), lambda t: b"1," in t),
)


def check_conditions(seed: int, compiler: sg.Compiler) -> tuple[int, int]:
    """Returns (conditions decided, conditions refused as too complex) for one schema. Each live byte begins a
    text that meets the condition, and such a text is accepted."""
    source = Seeded(seed)
    schema = array(source, source.integer(0, 1))
    try:
        grammar = compiler.json_schema(schema, **HOW)
        texts = instances(schema, lambda text, whole: taken(grammar, text, whole))
    except (errors.GrammarError, OverflowError):
        return 0, 0
    decided = refused = 0
    for condition, meets in CONDITIONS:
        right = {t for t in texts if meets(t)}
        where = f"{json.dumps(schema)} & {condition}"
        try:
            both = grammar & condition
        except errors.UnsatisfiableCondition:
            if right:
                raise Mismatch("refused", f"{where}: {min(right)!r} fits") from None
            decided += 1
            continue
        except errors.SchemaTooComplex:
            refused += 1
            continue
        try:
            check_texts(both, right, where)
        except (errors.SchemaTooComplex, errors.BudgetExceeded):
            refused += 1
            continue
        decided += 1
    return decided, refused


def taken(grammar: sg.CompiledGrammar, text: bytes, whole: bool) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(text) and (not whole or matcher.is_accepting())


def check_texts(grammar: sg.CompiledGrammar, right: set[bytes], where: str) -> None:
    """Checks that the grammar has exactly these texts, and that every live byte leads to one."""
    todo = [b""]
    while todo:
        text = todo.pop()
        matcher = grammar.matcher()
        matcher.accept_bytes(text)
        if matcher.is_accepting() != (text in right):
            raise Mismatch("ends", f"{where}: {text!r}")
        after = {t[len(text)] for t in right if t.startswith(text) and len(t) > len(text)}
        live = {b for b in range(256) if matcher.validate_bytes(bytes([b]))}
        if live != after:
            raise Mismatch("live", f"{where}: {text!r}, {bytes(sorted(live ^ after))!r}")
        todo += [text + bytes([b]) for b in after]


# Keys and texts of walks. Earlier values often repeat by chance.
WALKED = b'"{}[]:,abc12txn0'
SIMPLE: tuple[Any, ...] = (
    {"enum": [1, 2]}, {"type": "boolean"}, {"const": 1}, {"enum": ["a", "b", None]}, {"type": "string"},
    {"enum": [1, "1", True]}, {"type": "integer", "maximum": 999}, {"type": "string", "maxLength": 1},
    {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.5},
)  # fmt: skip


def any_item(source: Source, depth: int = 0) -> Any:
    """Returns a schema of values, most of them objects or arrays."""
    if depth > 1 or source.chance(15):
        return source.pick(SIMPLE)

    def part() -> Any:
        return any_item(source, depth + 1) if source.chance(25) else source.pick(SIMPLE)

    if source.chance(30):
        out: dict[str, Any] = {"type": "array", "items": part()}
        out |= {"maxItems": source.integer(0, 3)} if source.chance(50) else {}
        out |= {"minItems": source.integer(0, 2)} if source.chance(30) else {}
        out |= {"uniqueItems": True} if source.chance(40) else {}
        return out | ({"prefixItems": [source.pick(SIMPLE)]} if source.chance(30) else {})
    names = [n for n in "abc" if source.chance(50)]
    out = {"type": "object", "properties": {n: part() for n in names}}
    out["required"] = [n for n in names if source.chance(50)]
    if source.chance(50):
        out["additionalProperties"] = False
    elif source.chance(30):
        out["additionalProperties"] = source.pick(({"const": 1}, {"enum": [1, 2]}, {"type": "integer"}))
    elif source.chance(30):
        out |= {"patternProperties": {"^[bc]$": source.pick(SIMPLE)}, "additionalProperties": False}
    out |= {"maxProperties": source.integer(0, 3)} if source.chance(30) else {}
    out |= {"minProperties": source.integer(0, 2)} if source.chance(20) else {}
    out |= {"dependentRequired": {"a": ["b"]}} if source.chance(15) else {}
    return {"anyOf": [out, any_item(source, depth + 1)]} if source.chance(15) else out


def check_walk(seed: int, compiler: sg.Compiler) -> tuple[int]:
    """Returns the bytes walked in one schema. Live bytes can be completed, and completions are instances."""
    source = Seeded(seed)
    schema = {"type": "array", "items": any_item(source), "uniqueItems": True}
    schema["minItems"] = source.integer(0, 4)
    how = {**HOW, "property_order": source.pick(("schema", "any"))}
    try:
        grammar = compiler.json_schema(schema, **how)
    except (errors.UnsatisfiableSchema, errors.SchemaTooComplex):
        return (0,)
    judge, steps = JsonOracle(schema), 0
    for _ in range(3):
        matcher, text = grammar.matcher(), b""
        for _ in range(source.integer(5, 60)):
            live = matcher.live_bytes()
            if not live and not matcher.is_accepting():
                raise Mismatch("dead end", f"{json.dumps(schema)} {how}: {text!r}")
            chosen = [b for b in live if b in WALKED] or list(live)
            if not chosen:
                break
            text += bytes([source.pick(chosen)])
            if not matcher.accept_bytes(text[-1:]):
                raise Mismatch("live", f"{json.dumps(schema)} {how}: {text!r} is live and refused")
            steps += 1
        whole = text + matcher.shortest_completion()
        if not judge.accepts(whole.decode()) or not taken(grammar, whole, True):
            raise Mismatch("completion", f"{json.dumps(schema)} {how}: {text!r} became {whole!r}")
    return (steps,)


def check_hole(
    grammar: sg.CompiledGrammar, prefix: bytes, suffix: bytes, right: set[bytes], where: str
) -> bool:
    """Checks one hole with the middles `right`. Returns whether the engine decided everything."""
    answer = grammar.can_complete([prefix, sg.Gap(), suffix])
    if answer.verdict is (not right):
        raise Mismatch("parts", f"{where}: {answer}, {sorted(right)[:3]}")
    try:
        hole = grammar.infill(prefix, suffix)
    except errors.UnsatisfiableInfill as error:
        if right:
            raise Mismatch("refused", f"{where}: {min(right, key=len)!r} fits: {error}") from None
        return True
    except (errors.SchemaTooComplex, errors.BudgetExceeded):
        return False
    begun = {m[:n] for m in right for n in range(len(m) + 1)}
    exact, todo, seen = True, [b""], set[bytes]()
    while todo:
        text = todo.pop()
        seen.add(text)
        matcher = hole.matcher()
        if not matcher.accept_bytes(text):
            raise Mismatch("live", f"{where}: {text!r} is live and refused")
        if text not in begun:
            raise Mismatch("dead end", f"{where}: {text!r} is live, and no middle begins so")
        live = matcher.live_bytes()
        exact = exact and matcher.mask_exact
        if matcher.is_accepting() > (text in right) or (exact and matcher.is_accepting() < (text in right)):
            raise Mismatch("middle", f"{where}: {text!r} is {'missed' if text in right else 'taken'}")
        todo += [text + bytes([b]) for b in live]
    if hole.matcher().mask_exact and seen != begun:
        raise Mismatch("missed", f"{where}: {sorted(begun - seen)[:5]}")
    return hole.matcher().mask_exact


def main() -> None:
    first, count = map(int, sys.argv[1:3])
    compiler = json_compiler()
    how = check_walk if sys.argv[3:] else check
    run(first, count, lambda seed: how(seed, compiler))


if __name__ == "__main__":
    main()
