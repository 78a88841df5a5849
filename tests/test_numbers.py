"""Numeric keywords as languages of lexemes, compared with exact rationals (fractions.Fraction)."""

from __future__ import annotations

import json
import random
import re
from fractions import Fraction

import pytest

import structgen
from oracles.harness import WORDS, compiler, verdict, vocabulary
from structgen import _core, errors

LEXEME = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
CANONICAL = re.compile(r"-?(0|[1-9]\d*)(\.\d*[1-9])?")
PLAIN = re.compile(r"-?(0|[1-9]\d*)(\.(\d*[1-9]|\d{1,6}))?")
NEGATIVE_ZERO = re.compile(r"-0(\.0*)?")
SPELLINGS = ["any", "plain", "canonical"]
ONE_DIGIT = re.compile(r"-?\d(\.0+)?[eE][+-]?\d+")
MANTISSA = re.compile(r"-?[1-9]\.(\d*?)0*[eE]([+-]?\d+)")

BOUNDS = [
    *("0", "1", "-1", "10", "65535", "0.5", "-0.5", "0.01", "123.456", "-123.456", "1e16"),
    *("9223372036854775807", "-9223372036854775808", "1.5e300", "2.5e-7", "99", "-100", "0.05", "5e-324"),
    "3.14159",
]
DIVISORS = [
    *("1", "0.01", "0.1", "2", "5", "10", "100", "0.5", "2.5", "0.25", "4", "8", "3", "7", "9", "11", "6"),
    *("12", "33", "77", "1.5", "6.5", "1e-8", "1e3", "24", "0.3", "19", "6.75", "0.123456789"),
]
HOLDS = {
    "minimum": lambda v, b: v >= b,
    "exclusiveMinimum": lambda v, b: v > b,
    "maximum": lambda v, b: v <= b,
    "exclusiveMaximum": lambda v, b: v < b,
    "const": lambda v, b: v == b,
    "multipleOf": lambda v, b: (v / b).denominator == 1,
    "integer": lambda v, b: v.denominator == 1,
    "any": lambda v, b: True,
}


def is_hard(condition: str, argument: str) -> bool:
    """Returns whether a divisor is no power 10^-k. Its multiples then have a fraction in their mantissa only
    with large exponents."""
    return condition == "multipleOf" and not re.fullmatch(r"1|0\.0*1|1e-\d+", argument)


def in_universe(text: str, numbers: str, narrow: bool = False) -> bool:
    """Returns whether a text is a numeral that the tested conditions judge (csrc/numbers/number.h)."""
    found = LEXEME.fullmatch(text)
    if not found:
        return False
    if numbers != "any":
        pattern = CANONICAL if numbers == "canonical" else PLAIN
        return bool(pattern.fullmatch(text)) and not NEGATIVE_ZERO.fullmatch(text)
    if not found[3] or ONE_DIGIT.fullmatch(text):
        return True
    mantissa = MANTISSA.fullmatch(text)
    return bool(mantissa) and len(mantissa[1]) <= 16 and not (narrow and -5 < int(mantissa[2]) < 16)


def value(text: str) -> Fraction:
    digits, _, exponent = text.lower().partition("e")
    return Fraction(digits) * Fraction(10) ** int(exponent or 0)


def digits(rnd: random.Random, n: int) -> str:
    return "".join(rnd.choice("0123456789") for _ in range(n))


def lexeme(rnd: random.Random, near: Fraction) -> str:
    kind = rnd.random()
    if kind < 0.35:
        close = near + rnd.choice((0, 0, 1, -1, Fraction(1, 10), Fraction(-1, 1000)))
        close *= rnd.choice((1, 1, -1))
        if kind < 0.15 and (close * 10**12).denominator == 1:  # the value is exact in plain digits
            whole = abs(close)
            text = f"{whole.numerator // whole.denominator}.{int(whole % 1 * 10**12):012d}"
            text = rnd.choice((text, text.rstrip("0").rstrip("."), text.rstrip("0") + "0"))
            return ("-" if close < 0 else "") + text
        return rnd.choice((repr(float(close)), str(int(close)), str(int(close)) + ".0"))
    sign = rnd.choice(("", "", "-"))
    if kind < 0.7:
        whole = str(rnd.randint(0, 10 ** rnd.randint(0, 22)))
        return sign + whole + rnd.choice(("", "", ".0", ".50", "." + digits(rnd, 3)))
    exponent = rnd.choice((0, 1, 2, 3, 5, 7, 15, 16, 17, 20, 300))
    mantissa = rnd.choice("1234567890") + rnd.choice(
        ("", ".0", "." + digits(rnd, rnd.randint(1, 17)), ".250")
    )
    return sign + mantissa + rnd.choice("eE") + rnd.choice(("", "+", "-", "0", "-0")) + str(exponent)


CASES = [("any", "0"), ("integer", "0")]
CASES += [(name, bound) for name in list(HOLDS)[:5] for bound in BOUNDS]
CASES += [("multipleOf", divisor) for divisor in DIVISORS]


@pytest.mark.parametrize("numbers", SPELLINGS)
@pytest.mark.parametrize(("condition", "argument"), CASES)
def test_a_condition_holds_for_exactly_its_values(condition, argument, numbers):
    try:
        language = _core.Language.number(condition, argument, numbers=numbers)
    except errors.SchemaTooComplex:
        assert condition == "multipleOf"
        return
    rnd = random.Random(f"{condition} {argument} {numbers}")
    bound = value(argument)
    texts = [lexeme(rnd, bound) for _ in range(120)]
    if condition == "multipleOf":
        texts += [repr(float(bound * rnd.randint(-60, 60))) for _ in range(30)]
        texts += [str(int(bound * rnd.randint(-60, 60) * bound.denominator)) for _ in range(30)]
    for text in [*texts, "0", "-0", "0.0", "-0.0", "00", "+1", ".5", "1.", "1e", "", "-"]:
        want = in_universe(text, numbers, is_hard(condition, argument)) and HOLDS[condition](
            value(text), bound
        )
        assert language.matches(text.encode()) == want, text


def test_scientific_notation_near_a_value():
    """Texts of one value in scientific notation, with the point behind the first digit, and of the values
    that differ in the last digit."""
    rnd = random.Random(7)
    wrong = []
    for condition, argument in CASES:
        try:
            language = _core.Language.number(condition, argument)
        except errors.SchemaTooComplex:
            continue
        bound = value(argument)
        for _ in range(40):
            near = bound * rnd.randint(1, 30) if condition == "multipleOf" else bound
            near = near or Fraction(rnd.randint(1, 2000))
            mantissa, _, exponent = f"{float(near):.{rnd.randint(0, 7)}e}".partition("e")
            zero = rnd.choice(("", "0")) if "." in mantissa else ""
            text = f"{mantissa}{zero}e{int(exponent) + rnd.choice((0, 0, 1, -1))}"
            want = in_universe(text, "any", is_hard(condition, argument)) and HOLDS[condition](
                value(text), bound
            )
            if language.matches(text.encode()) != want:
                wrong.append((condition, argument, text))
    assert not wrong


COMMON = [  # (divisors, one divisor with the same multiples)
    (("integer", "0.123456789"), "123456789"),
    (("6", "4"), "12"),
    (("0.01", "integer"), "1"),
    (("0.25", "0.1"), "0.5"),
    (("1e-8", "7", "2.5"), "35"),
    (("0.3", "0.45"), "0.9"),
    (("0.5", "0.2"), "1"),
    (("97", "1000000007"), "97000000679"),
]


@pytest.mark.parametrize(("parts", "divisor"), COMMON)
def test_several_divisors(parts, divisor):
    schema = {
        "allOf": [{"type": "integer"} if p == "integer" else {"multipleOf": json.loads(p)} for p in parts]
    }
    bytes_only = structgen.Vocabulary.from_bytes(
        [bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256]
    )
    grammar = structgen.Compiler(bytes_only).json_schema(schema)
    rnd = random.Random(divisor)
    bound = value(divisor)
    for _ in range(60):
        number = rnd.choice(
            (bound * rnd.randint(-50, 50), Fraction(rnd.randint(-900, 900), rnd.choice((1, 10, 100))))
        )
        text = rnd.choice((str(float(number)), f"{float(number):.6e}", f"{float(number):.0e}"))
        matcher = grammar.matcher()
        took = matcher.accept_bytes(text.encode()) and matcher.is_accepting()
        hard = any(is_hard("multipleOf", p) for p in parts if p != "integer")
        assert took == (in_universe(text, "any", hard) and (value(text) / bound).denominator == 1), text


def test_the_common_multiple_of_large_divisors_is_arithmetic() -> None:
    """The engine computes the common multiple of large divisors. With an automaton for each divisor it would
    search for the number."""
    own = structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(mask=20_000), on_limit="subset")
    matcher = own.json_schema({"allOf": [{"multipleOf": 97}, {"multipleOf": 1000000007}]}).matcher()
    mask = structgen.allocate_bitmask(1, own.vocabulary.vocab_size)
    for text in ["1", "2", "4", "3", ""]:
        matcher.fill_bitmask(mask)
        assert matcher.mask_exact
        assert matcher.accept_bytes(text.encode())
    assert int(b"1243" + matcher.shortest_completion()) % (97 * 1000000007) == 0


MANY_DIGITS = ["3e-40", "7.5e-39", "123456789012345678e-40", "6e-31", "999999999999999999e-20", "7e19"]
MANY_DIGITS += ["4e300", "25e-19", "75e-2"]


@pytest.mark.parametrize("numbers", ["plain", "canonical"])
@pytest.mark.parametrize("divisor", MANY_DIGITS)
def test_divisors_of_many_digits(divisor, numbers):
    """Multiples and their neighbours get different verdicts, and every beginning of a multiple has a
    completion."""
    bytes_only = structgen.Vocabulary.from_bytes(
        [bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256]
    )
    grammar = structgen.Compiler(bytes_only).json_schema(f'{{"multipleOf": {divisor}}}', numbers=numbers)
    rnd = random.Random(divisor)
    step = value(divisor)
    for _ in range(40):
        number = abs(step * rnd.randint(0, 10 ** rnd.choice((0, 1, 3, 12, 25))))
        number += rnd.choice((0, 0, step / 10, Fraction(1, 10**6)))
        whole, rest = divmod(number, 1)
        places = 0
        while (rest * 10**places).denominator != 1 and places < 60:
            places += 1
        text = str(whole) + (f".{int(rest * 10**places):0{places}d}" if places else "")
        matcher = grammar.matcher()
        took = matcher.accept_bytes(text.encode()) and matcher.is_accepting()
        fits = in_universe(text, numbers) and len(str(whole)) <= 308 and (value(text) / step).denominator == 1
        assert took == fits, text
        matcher = grammar.matcher()
        for end, byte in enumerate(text.encode(), 1):
            if not matcher.accept_bytes(bytes([byte])):
                break
            whole_text = text[:end] + matcher.shortest_completion().decode()
            assert (value(whole_text) / step).denominator == 1, whole_text
    # Zero has no sign, so behind a sign a multiple other than zero follows.
    matcher = grammar.matcher()
    assert matcher.accept_bytes(b"-")
    least = value("-" + matcher.shortest_completion().decode())
    assert (least / step).denominator == 1
    assert least != 0


def scientific(number: Fraction) -> str:
    """Returns the number with one digit before the point; "0" if it has too many digits."""
    shift = 0
    while number.denominator != 1 and shift < 40:
        number, shift = number * 10, shift + 1
    text = str(abs(number.numerator)).rstrip("0")
    if not text or len(text) > 17 or number.denominator != 1:
        return "0"
    exponent = len(str(abs(number.numerator))) - 1 - shift
    return f"{'-' * (number < 0)}{text[0]}.{text[1:] or '0'}e{exponent}"


INT64 = "9223372036854775807"
BETWEEN = [  # a divisor and bounds
    ("86400", {"minimum": "0"}),
    ("86400", {"exclusiveMinimum": "0", "maximum": INT64}),
    ("1000003", {"type": "integer", "minimum": "-2000006", "exclusiveMaximum": "2000006"}),
    ("97", {"minimum": "1000000007", "maximum": "5000000000000"}),
    ("0.07", {"minimum": "0.5", "maximum": "1e6"}),
    ("99991", {"exclusiveMinimum": "-1e18", "maximum": "-5"}),
    ("12345", {"minimum": "1e16", "exclusiveMaximum": "3.7035e20"}),
    ("0.12345", {"exclusiveMinimum": "-0.4938", "maximum": "0.2469"}),
    ("1e-7", {"minimum": "2e-7", "exclusiveMaximum": "5e-5"}),
    ("3e-7", {"minimum": "2e-7", "exclusiveMaximum": "5e-5"}),
    ("6", {"multipleOf": "0.75", "minimum": "25", "not": {"minimum": "60"}}),
]


@pytest.mark.parametrize("numbers", SPELLINGS)
@pytest.mark.parametrize(("divisor", "bounds"), BETWEEN)
def test_multiples_between_bounds(divisor, bounds, numbers):
    flat = {k: v for k, v in bounds.items() if k != "not"}
    schema = {"allOf": [{"multipleOf": divisor}, *({k: v} for k, v in bounds.items())]}
    text = re.sub(r'"(-?[0-9][0-9.e-]*)"', r"\1", json.dumps(schema))
    below = [value(v) for v in bounds.get("not", {}).values()]
    bytes_only = structgen.Vocabulary.from_bytes(
        [bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256]
    )
    grammar = structgen.Compiler(bytes_only).json_schema(text, numbers=numbers)
    rnd = random.Random(divisor)
    step = value(divisor)
    near = [value(v) for k, v in flat.items() if k != "type"] + [Fraction(0)]
    found = [(b // step + rnd.randint(-3, 3)) * step for b in near * 12]
    found += [(b // step + rnd.randint(-(10**9), 10**9)) * step for b in near * 6]
    found += [
        rnd.randint(1, 10**12 // step.numerator + 1) * step * 10 ** rnd.randint(0, 9) for _ in range(30)
    ]
    found += [b + Fraction(rnd.randint(-3, 3), rnd.choice((1, 10, 10**7))) for b in near * 4]
    texts = [f"{float(x):.9f}".rstrip("0") for x in found]
    texts += [scientific(x) for x in found] + [f"{int(x)}" for x in found] + [repr(float(x)) for x in found]
    verdicts = set()
    for lexeme in [*texts, "0", "-0", "0.0", "0e3", "", "-"]:
        holds = in_universe(lexeme, numbers, is_hard("multipleOf", divisor))
        if holds:
            x = value(lexeme)
            holds = all(
                HOLDS["integer"](x, 0) if k == "type" else HOLDS[k](x, value(v))
                for k, v in [("multipleOf", divisor), *flat.items()]
            )
            holds = holds and all(x < b for b in below)
            if numbers == "plain" and "type" in flat:  # a number that must be whole has no point
                holds = holds and "." not in lexeme
        assert verdict(grammar, lexeme.encode()) == holds, lexeme
        verdicts.add(holds)
    assert verdicts == {True, False}


@pytest.mark.parametrize("numbers", SPELLINGS)
def test_no_multiple_between_bounds(numbers):
    compiler = structgen.Compiler(structgen.Vocabulary.from_bytes([b"0", b""], eos_token_ids=[1]))
    for divisor, low, high in (("104729", "1", "104728"), ("0.3", "0.31", "0.59"), ("7", "-6", "-1")):
        with pytest.raises(errors.UnsatisfiableSchema):
            compiler.json_schema(
                f'{{"type": "number", "multipleOf": {divisor}, "minimum": {low}, "maximum": {high}}}',
                numbers=numbers,
            )


@pytest.mark.parametrize(
    "number", [0, 1, -1, 10**30, 1e16, 1.5e-07, 1e300, 5e-324, 1.7976931348623157e308, 0.1, -2.5]
)
def test_what_python_writes_is_in_the_universe(number):
    assert _core.Language.number("any").matches(repr(number).encode())


def test_a_divisor_must_be_positive():
    for bad in ("0", "-1"):
        with pytest.raises(errors.GrammarError):
            _core.Language.number("multipleOf", bad)


def decide(condition: dict, x: Fraction) -> bool:
    for keyword, value in condition.items():
        if keyword in ("anyOf", "oneOf", "allOf"):
            held = sum(decide(part, x) for part in value)
            if not {"anyOf": held > 0, "oneOf": held == 1, "allOf": held == len(value)}[keyword]:
                return False
        elif keyword == "not":
            if decide(value, x):
                return False
        else:
            bound = Fraction(value)
            held = {
                "multipleOf": (x / bound).denominator == 1 if bound else False,
                "minimum": x >= bound, "maximum": x <= bound,
                "exclusiveMinimum": x > bound, "exclusiveMaximum": x < bound,
            }[keyword]  # fmt: skip
            if not held:
                return False
    return True


@pytest.mark.parametrize("seed", range(60))
def test_divisors_between_bounds(seed):
    """The engine tries the few multiples between two bounds one by one. Python's fractions try all of
    them."""
    chance = random.Random(seed)
    divisors = ["2", "3", "7", "13", "0.5", "0.25", "1.5", "6.75", "2.125"]

    def part(depth: int) -> dict:
        kind = chance.choice(["multipleOf", "not", "anyOf", "oneOf", "allOf"])
        if depth == 0 or kind == "multipleOf":
            return {"multipleOf": chance.choice(divisors)}
        parts = [part(depth - 1) for _ in range(chance.randint(1, 3))]
        return {kind: parts[0] if kind == "not" else parts}

    low = chance.randint(-60, 40)
    schema = {
        "allOf": [part(2), part(1), {"multipleOf": chance.choice(divisors)}],
        chance.choice(["minimum", "exclusiveMinimum"]): str(low),
        chance.choice(["maximum", "exclusiveMaximum"]): str(low + chance.randint(0, 60)),
    }
    values = {Fraction(n, 8) for n in range(8 * (low - 3), 8 * (low + 64))}
    right = {x for x in values if decide(schema, x)}
    text = re.sub(r'"(-?[\d.]+)"', r"\1", json.dumps({"type": "number", **schema}))
    try:
        grammar = compiler().json_schema(text)
    except errors.UnsatisfiableSchema:
        assert not right
        return
    for x in values:
        spelled = str(float(x)) if x.denominator > 1 else str(x.numerator)
        matcher = grammar.matcher()
        taken = matcher.accept_bytes(spelled.encode()) and matcher.is_accepting()
        assert taken == (x in right), (text, spelled)


def test_a_multiple_is_completed_with_the_fewest_digits() -> None:
    """A multiple is completed with the fewest digits, also if the divisor is so large that a search among
    remainders would take too long."""
    bytes_only = structgen.Vocabulary.from_bytes([bytes([b]) for b in range(256)] + [b""], eos_token_ids=256)
    of = structgen.Compiler(bytes_only).json_schema
    for divisor in (100_000, 86_400, 99_991, 1_000_003, 12.5, 0.0125):
        for bounds in ({}, {"minimum": 3}, {"minimum": 3, "maximum": 10**15}, {"maximum": 10**6}):
            grammar = of({"multipleOf": divisor, "type": "number", **bounds}, numbers="canonical")
            step = Fraction(str(divisor))
            for begun in ("", "1", "17", "40000", "0", "1."):
                matcher = grammar.matcher()
                if not matcher.accept_bytes(begun):
                    continue
                rest = matcher.shortest_completion().decode()
                assert (Fraction(begun + rest) / step).denominator == 1
                if begun.isdigit() and begun[0] != "0" and step.denominator == 1:
                    # no multiple with fewer digits begins so
                    for n in range(len(rest)):
                        first = int(begun) * 10**n
                        found = -(-first // int(step)) * int(step)
                        assert found >= first + 10**n or found > bounds.get("maximum", found)  # type: ignore[operator]


@pytest.mark.parametrize("draft", ["04", "06"])
def test_a_whole_multiple_of_a_long_fraction_is_decided(draft: str) -> None:
    """The engine computes the next whole multiple of a long fraction. It once searched a billion texts for
    the multiple, in the middle of a text."""
    where = {"$schema": f"http://json-schema.org/draft-{draft}/schema#"}
    schema = where | {"type": "integer", "multipleOf": 0.123456789}
    for spelling in ("any", "plain", "canonical"):
        grammar = compiler().json_schema(schema, numbers=spelling)
        assert not verdict(grammar, "1e308")
        assert verdict(grammar, "246913578")
        assert not verdict(grammar, "246913579")


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("first", ["1e99999", "8.6e5286124", "-1e528612", "1e-99999"])
def test_what_may_stand_beside_a_number_that_does_not_repeat(kind: str, first: str) -> None:
    """The engine looks for an item that differs from a number and ends within the string. The search once
    went through all zeros of the number, and the mask failed with "too large to decide"."""
    grammar = compiler().json_schema(
        {"type": "array", "uniqueItems": True, "items": {"type": kind}}, whitespace="compact"
    )
    vocabulary = grammar.vocabulary
    row = structgen.allocate_bitmask(1, len(vocabulary))
    matcher = grammar.matcher()
    if kind == "integer" and "e-" in first:
        assert not matcher.accept_bytes(f"[{first},".encode())
        return
    assert matcher.accept_bytes(f"[{first},".encode())
    matcher.fill_bitmask(row)
    for token in range(len(vocabulary)):
        allowed = bool(row[0, token // 32] >> (token % 32) & 1)
        assert allowed == matcher.fork().accept_token(token), token


@pytest.mark.parametrize(
    ("divisor", "other"), [("1000", "2000000"), ("1000", "2e10"), ("3", "300"), ("25", "100")]
)
def test_a_multiple_that_is_no_multiple_of_another_number_is_decided_quickly(
    divisor: str, other: str
) -> None:
    """A multiple of one number that is no multiple of another is decided quickly. One automaton for mantissas
    of all lengths once took more than five million units of work for `9.9`."""
    schema = f'{{"type": "number", "multipleOf": {divisor}, "not": {{"multipleOf": {other}}}}}'
    limits = structgen.Limits(mask=1_000_000)
    for numbers in ("any", "canonical"):
        grammar = structgen.Compiler(vocabulary(WORDS), limits=limits).json_schema(schema, numbers=numbers)
        for text in (b"9.9", b"12300", b"9.12345678912345e2", b"75000", b"3000"):
            value = Fraction(text.decode())
            fits = value % Fraction(divisor) == 0 and value % Fraction(other) != 0
            if numbers == "canonical" and b"e" in text:
                continue
            assert verdict(grammar, text) == fits, (numbers, text)
