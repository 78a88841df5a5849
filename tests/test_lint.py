"""Lint: findings on schemas, enumeration as proof of each finding, and no finding on good schemas."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import random
import re
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import structgen as sg
from oracles.speculative import TableModel
from structgen.cli import main
from structgen.linting import _Lint, lint, warn
from structgen.lm.doubt import MESSAGE

jsonschema = pytest.importorskip("jsonschema")
ROOT = Path(__file__).resolve().parents[1]

TOLD: list[tuple[Any, str]] = [
    ({"propertees": {}}, "warning: #: `propertees`: unknown keyword; did you mean `properties`?"),
    (
        {"properties": {"a": {"minimun": 3}}},
        "warning: #/properties/a: `minimun`: unknown keyword; did you mean `minimum`",
    ),
    ({"colour": 3}, "hint: #: `colour`: unknown keyword"),
    ({"type": "integer", "minimum": "3"}, "warning: #: `minimum`: ignored: not a number"),
    ({"anyOf": []}, "warning: #: `anyOf`: ignored: an empty array"),
    ({"required": "a"}, "warning: #: `required`: ignored"),
    (
        {"type": "array", "dependencies": {"a": ["b"]}},
        'warning: #: `dependencies`: never applies: it is about objects, and the type is "array"',
    ),
    (
        {"type": "string", "minimum": 3},
        'warning: #: `minimum`: never applies: it is about numbers, and the type is "string"',
    ),
    ({"type": ["array", "null"], "properties": {}}, "warning: #: `properties`: never applies"),
    ({"then": {"type": "string"}}, "warning: #: `then`: never applies: there is no `if`"),
    ({"minContains": 2}, "warning: #: `minContains`: never applies: there is no `contains`"),
    ({"type": "string", "nullable": True}, "warning: #: `nullable`: is OpenAPI's"),
    ({"type": "objekt"}, "error: #: `type`: unknown type 'objekt'; did you mean 'object'?"),
    ({"format": "emial"}, "warning: #: `format`: unknown format 'emial'; did you mean 'email'?"),
    ({"format": "phone"}, "hint: #: `format`: unknown format 'phone'"),
    ({"pattern": r"\Aab\Z"}, "is an anchor of another dialect, read as what it means there: write ^ or $"),
    ({"pattern": "^[[:alpha:]]$"}, "a POSIX class"),
    ({"pattern": "^(?P<x>a)$"}, "write (?<name>...)"),
    ({"pattern": r"^\p{Graph}$"}, "write [!-~] or a Unicode property"),
    ({"pattern": "[0-9]+"}, "hint: #: `pattern`: matches anywhere"),
    ({"type": "string", "enum": ["a", 3]}, 'warning: #: `enum`: 3 is excluded by the type "string"'),
    ({"properties": {"name": {}}, "required": ["nmae"]}, "'nmae' is no property; did you mean 'name'?"),
    ({"properties": {"name": {}}, "required": ["other"]}, "hint: #: `required`: 'other' is not listed"),
    (
        {"properties": {"answer": {}, "reasoning": {}}},
        "hint: #: `properties`: 'answer' comes before 'reasoning'",
    ),
    ({"type": "string", "minLength": 3000}, "the shortest text has 3002 bytes"),
    ({"$ref": "#/nope"}, "error: #: `$ref`: reference '#/nope' cannot be resolved"),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}], "type": "string"}, "#/anyOf/1: unreachable"),
    ({"anyOf": [{"const": 1}, {"const": 2}, {"const": 1}]}, "#/anyOf/2: is branch 0 again"),
    (
        {"properties": {"a": {"minimum": 5, "maximum": 3, "type": "number"}}},
        "#/properties/a: no value satisfies it",
    ),
    ({"minimum": 5, "maximum": 3, "type": "integer"}, "#/minimum: 5 and #/maximum: 3 exclude each other"),
    (
        {"$defs": {"n": {"maximum": 3}}, "allOf": [{"$ref": "#/$defs/n"}], "minimum": 5, "type": "integer"},
        '#/$defs/n/maximum: 3 and #/allOf/0/$ref: "#/$defs/n" and #/minimum: 5 exclude each other',
    ),
    (
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        'with #/properties/a/$ref: "#" and #/required: ["a"], every value would hold another value of #, '
        "without an end",
    ),
    (
        {
            "$ref": "#/$defs/n",
            "$defs": {
                "n": {"type": "array", "items": {"$ref": "#/$defs/m~1"}, "minItems": 1},
                "m/": {"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 1},
            },
        },
        "every value would hold another value of #/$defs/m~1, without an end",
    ),
    (  # the reference leads back to itself, and the bounds exclude every value
        {
            "$ref": "#/$defs/n/properties/a",
            "$defs": {
                "n": {
                    "maximum": 3,
                    "properties": {"a": {"$ref": "#/$defs/n", "minimum": 5, "type": "integer"}},
                }
            },
        },
        "exclude each other",
    ),
    (  # a chain of references that ends
        {"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/z"},
                                        "z": {"type": "integer", "minimum": 3, "maximum": 1}}},
        "exclude each other",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "words"), TOLD, ids=range(len(TOLD)))
def test_what_is_told(schema: Any, words: str) -> None:
    found = list(map(str, lint(schema)))
    assert any(words in line for line in found), found
    assert found == list(map(str, lint(json.dumps(schema))))
    assert all("\n" not in line for line in found)


GOOD: list[Any] = [
    True,
    {},
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]},
    {"type": ["number", "null"], "minimum": 3},
    {"type": "number", "enum": [1, 2.5]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string", "pattern": "^a$"}}},
    {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "integer"}]},
    {"if": {"type": "string"}, "then": {"minLength": 3}, "else": {"minimum": 3}},
    {"type": "object", "properties": {"reasoning": {}, "answer": {}}},
    {"x-internal": 3, "type": "string", "format": "date"},
    {"type": "object", "additionalProperties": {"$ref": "#"}},
]


def test_keys_that_are_no_text() -> None:
    """A compile turns such keys into text, as `json.dumps` does."""
    assert [f.keyword for f in lint({1: 2, "properties": {1: {}, "a": {}}})] == ["1"]
    assert [f.keyword for f in lint({None: 2})] == ["null"] and [f.keyword for f in lint({True: 2})] == [
        "true"
    ]


def test_the_schema_false() -> None:
    assert [f.message for f in lint(False)] == ["no value satisfies the schema"]


@pytest.mark.parametrize("schema", GOOD, ids=range(len(GOOD)))
def test_good_schemas_are_left_alone(schema: Any) -> None:
    assert lint(schema) == []


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.schema.json")), ids=lambda p: p.name)
def test_the_examples_have_no_warnings(path: Path) -> None:
    assert [f for f in lint(path.read_text()) if f.level != "hint"] == []


# ---- compared with enumeration ----

VALUES = [None, True, 0, 1, 2, 3, 1.5, "", "a", "bb", [], [1], {}, {"a": 1}]
PARTS: list[dict[str, Any]] = [
    {"type": "string"}, {"type": "integer"}, {"type": ["array", "object"]}, {"minimum": 2}, {"maximum": 1},
    {"minLength": 1}, {"maxLength": 1}, {"const": 1}, {"enum": ["a", 2]}, {"not": {"type": "string"}},
    {"required": ["a"]}, {"maxItems": 0}, {"enum": VALUES},
]  # fmt: skip


def has_value(schema: Any) -> bool:
    validator = jsonschema.Draft202012Validator(schema)
    return any(validator.is_valid(value) for value in VALUES)


def schemas() -> list[dict[str, Any]]:
    """Schemas over the listed values only, so the enumeration is exact."""
    draws = random.Random(7)
    made = []
    for _ in range(120):
        inner: dict[str, Any] = {"enum": VALUES}
        for part in draws.sample(PARTS[:-1], draws.randint(0, 2)):
            inner |= {k: v for k, v in part.items() if k != "enum"}
        inner["anyOf"] = [dict(x) for x in draws.sample(PARTS, draws.randint(1, 3))]
        if draws.random() < 0.5:
            inner["allOf"] = [dict(draws.choice(PARTS))]
        made.append(inner)
    return made


def test_branches_and_contradictions_by_enumeration() -> None:
    branches = contradictions = 0
    for schema in schemas():
        found = lint(schema)
        if not has_value(schema):
            (error,) = [f for f in found if f.level == "error"]
            assert "no value satisfies the schema: " in error.message, schema
            contradictions += 1
            continue
        assert not [f for f in found if f.level == "error"], schema
        told = {f.pointer for f in found if "unreachable" in f.message}
        want = set()
        for i, branch in enumerate(schema["anyOf"]):
            if not has_value({**schema, "anyOf": [branch]}):
                want.add(f"/anyOf/{i}")
        assert told == want, (schema, told)
        branches += len(want)
    assert branches > 10 and contradictions > 10


def test_a_contradiction_is_one_and_is_smallest() -> None:
    """The places that a finding names together allow no value. Without any one of the places, some value is
    allowed."""
    count = 0
    for schema in schemas():
        looked = _Lint(schema, None, None, None)
        causes = looked.smallest()
        assert bool(causes) == (not has_value(schema)), schema
        assert not causes or not has_value(looked.core)
        for place in looked.kept:
            less = copy.deepcopy(looked.core)
            holder: Any = less
            for step in place[:-1]:
                holder = holder[step]
            if isinstance(holder, list):
                holder[int(place[-1])] = True
            else:
                del holder[place[-1]]
            # Without `enum`, values beyond the listed ones exist.
            assert has_value(less) or place == ["enum"], (schema, causes, place)
            count += 1
    assert count > 20


def test_parts_of_objects() -> None:
    empties = [
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"$ref": "#/$defs/none"},
        {"enum": [1], "const": 2},
    ]
    fine = [{"type": "integer"}, {"$ref": "#/$defs/some"}, {"enum": [1], "const": 1}]
    defs = {"none": {"const": 1, "type": "string"}, "some": {"const": 1}}
    for n in range(1, 4):
        for keys in itertools.combinations(range(3), n):
            properties = {f"k{i}": (empties if i in keys else fine)[i] for i in range(3)}
            found = lint({"type": "object", "properties": properties, "$defs": defs})
            told = {f.pointer for f in found if "can never be there" in f.message}
            assert told == {f"/properties/k{i}" for i in keys}


# ---- cost ----


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"const": i} for i in range(3000)]},
        {"properties": {f"p{i}": {"anyOf": [{"const": i}, {"type": "string"}]} for i in range(2000)}},
        {"allOf": [{"not": {"const": i}} for i in range(500)], "enum": list(range(500))},
    ],
    ids=["branches", "properties", "contradiction"],
)
def test_large_schemas_end(schema: Any) -> None:
    begin = time.process_time()
    lint(schema)
    assert time.process_time() - begin < 20


def test_a_call_looks_at_hostile_schemas_for_a_moment() -> None:
    hostile: list[Any] = [
        {"properties": {f"a{i}": {} for i in range(3000)}, "required": [f"b{i}" for i in range(3000)]},
        {f"minimum{i}": i for i in range(5000)},
        {"properties": {f"p{i}": {"type": "string", f"zz{i}": 1} for i in range(20_000)}},
        {"pattern": "[" * 200_000},
        {"x" * 500_000: 1, "format": "y" * 500_000},
    ]
    for schema in hostile:
        begin = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn(schema)
        assert time.process_time() - begin < 2 and len(caught) <= 10
        begin = time.process_time()
        with contextlib.suppress(sg.GrammarError):
            lint(schema)
        assert time.process_time() - begin < 20


def test_deep_schemas_end() -> None:
    deep: Any = {"type": "integer"}
    for _ in range(3000):
        deep = {"properties": {"a": deep}}
    with contextlib.suppress(sg.GrammarError, RecursionError):
        lint(deep)
    warn('{"not":' * 100_000 + "{}" + "}" * 100_000)
    with pytest.raises(sg.GrammarError):
        lint("[" * 100_000)


# ---- warnings of calls, and the command line ----


def test_calls_warn() -> None:
    lm = TableModel()
    with pytest.warns(sg.SchemaWarning, match="did you mean `minimum`") as caught:
        sg.generate(lm, "go", {"type": "integer", "minimun": 3, "maximum": 5})
    assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sg.generate(lm, "go", {"type": "integer", "maximum": 5})
        sg.generate(lm, "go", '{"type": "integer", "colour": 3}')
        with pytest.raises(sg.SchemaWarning):
            sg.sample(lm, "go", {"type": "integer", "minimun": 3}, method="local")


def test_every_call_names_what_lint_knows() -> None:
    """Every call warns of the mistakes that lint finds: in a schema, in an OpenAI object and in the
    parameters of tools."""
    empty = {"type": "integer", "minimum": 5, "maximum": 3}
    for schema, words in (
        (empty, "#/minimum: 5 and #/maximum: 3 exclude each other"),
        ({"type": "strin"}, "did you mean 'string'?"),
        ({"type": "object", "properties": {"a": {"type": "nubmer"}}}, "did you mean 'number'?"),
    ):
        with pytest.raises(sg.GrammarError, match=re.escape(words)):
            sg.generate(TableModel(), "go", schema)
        with pytest.raises(sg.GrammarError, match=re.escape(words)):
            wrapped = {"type": "json_schema", "json_schema": {"schema": schema}}
            sg.generate(TableModel(), "go", response_format=wrapped)
    has_none = {"type": "object", "properties": {"a": empty}, "required": ["a"]}
    tool = {"name": "f", "parameters": has_none}
    with pytest.raises(sg.UnsatisfiableSchema, match="a/minimum: 5 and #/properties/a/maximum: 3 and"):
        sg.generate(TableModel(), "go", tools=[tool], tool_choice="f")
    tool["parameters"] = {"type": "object", "properties": {"a": {"type": "integer", "minimun": 3}}}
    with pytest.warns(sg.SchemaWarning, match="did you mean `minimum`"):
        sg.generate(None, "a is 3", tools=[tool], tool_choice="f", max_tokens=60)


def test_a_place_deep_inside_is_shown_in_part() -> None:
    """The error keeps the whole pointer; the message once had 19,554 characters."""
    deep: Any = {"type": "nothing"}
    for _ in range(300):
        deep = {"properties": {"a": deep}}
    with pytest.raises(sg.GrammarError) as caught:
        sg.check("json_schema", deep)
    assert len(str(caught.value)) < 400 and len(caught.value.pointer or "") > 3000
    assert "#/properties/a/" in str(caught.value) and "/a)" in str(caught.value)


WRONG_KINDS: list[tuple[dict[str, Any], str]] = [
    ({"items": {"type": "null"}, "type": "array", "maxItems": 1, "minItems": "3"}, "minItems"),
    ({"additionalProperties": False, "type": "object", "required": "a"}, "required"),
    ({"type": "boolean", "enum": "abc"}, "enum"),
    ({"type": "string", "maxLength": 3, "pattern": 5}, "pattern"),
    ({"additionalProperties": False, "properties": {"a": {"uniqueItems": "yes"}}}, "uniqueItems"),
    ({"maxProperties": 0, "patternProperties": {"^a": 3}}, "patternProperties"),
]


@pytest.mark.parametrize("schema,keyword", WRONG_KINDS)
def test_a_keyword_of_a_wrong_kind_is_told(schema: dict[str, Any], keyword: str) -> None:
    """A keyword with a value of a wrong kind is named by the compiled grammar, also in `grammar & condition`,
    and by every call that compiles."""
    grammar = sg.Compiler(TableModel().vocabulary).json_schema(schema)
    assert keyword in [entry.keyword for entry in grammar.dropped]
    assert (grammar & sg.without("#")).dropped == grammar.dropped
    lm = TableModel()
    for asked in ({"schema": schema}, {"response_format": {"type": "json_schema", "schema": schema}}):
        with pytest.warns(sg.SchemaWarning, match=f"`{keyword}`: ignored"):
            sg.generate(lm, "go", **asked, max_tokens=40)
        with pytest.warns(sg.SchemaWarning, match=f"`{keyword}`: ignored"):
            next(iter(sg.stream(lm, "go", **asked, max_tokens=40)))
    with pytest.warns(sg.SchemaWarning, match=f"`{keyword}`: ignored"):
        sg.sample(lm, "go", schema, method="local", max_tokens=40)


def test_a_keyword_that_says_nothing_by_design_is_no_dropped_one() -> None:
    schema = {"type": "string", "title": "a", "contentEncoding": "base64", "colour": 3, "minLength": -1}
    assert not sg.Compiler(TableModel().vocabulary).json_schema(schema).dropped


def test_a_schema_without_a_value_says_why() -> None:
    with pytest.raises(sg.UnsatisfiableSchema, match=r"#/minimum: 5 and #/maximum: 3 exclude each other"):
        sg.generate(TableModel(), "go", {"type": "integer", "minimum": 5, "maximum": 3})
    with pytest.raises(
        sg.UnsatisfiableSchema, match=r"every value would hold another value of #, without an end"
    ):
        sg.generate(TableModel(), "go", {"type": "array", "items": {"$ref": "#"}, "minItems": 1})


@pytest.mark.parametrize("wrong", [3, None, [1], object()])
def test_what_lint_does_not_take(wrong: Any) -> None:
    with pytest.raises(TypeError, match="lint takes a JSON Schema"):
        lint(wrong)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            status = main(list(arguments))
        except SystemExit as stop:
            status = int(stop.code or 0)
        found = capsys.readouterr()
        return status, found.out, found.err

    return call


def test_the_command(run: Any, tmp_path: Path) -> None:
    good, bad, worse = (tmp_path / f"{n}.json" for n in ("good", "bad", "worse"))
    good.write_text('{"type": "integer"}')
    bad.write_text('{"type": "integer", "minimun": 3, "colour": 1}')
    worse.write_text('{"type": "objekt"}')
    assert run("lint", str(good)) == (0, "", "0 errors, 0 warnings, 0 hints\n")
    status, out, err = run("lint", str(good), str(bad))
    assert status == 0 and f"{bad}: warning: #: `minimun`" in out and "1 warning, 1 hint" in err
    assert run("lint", "--strict", str(bad))[0] == 1 and run("lint", str(worse), str(bad))[0] == 2
    assert "hint" not in run("lint", "--no-hints", str(bad))[1]
    (tmp_path / "broken.json").write_text("{")
    assert "invalid JSON" in run("lint", str(tmp_path / "broken.json"))[1]


@pytest.mark.parametrize("command", ["compile", "check", "mask", "generate"])
def test_commands_warn_and_can_be_strict(run: Any, tmp_path: Path, command: str) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"type": "integer", "minimun": 3, "maximum": 5}')
    more = ["--prompt", "x"] if command == "generate" else []
    status, _, err = run(command, "--schema", str(bad), *more)
    warned = [line for line in err.splitlines() if "structgen: warning: " in line and MESSAGE not in line]
    assert status == 0 and len(warned) == 1 and f"{bad}: #: `minimun`" in err
    status, _, err = run(command, "--schema", str(bad), "--strict", *more)
    assert status == 2 and "did you mean `minimum`" in err and "warning: " not in err


# ---- documents beside the schema ----


def test_references_to_files_beside_the_schema(run: Any, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "order.json").write_text(
        '{"type":"object","properties":{"c":{"$ref":"parts/city.json#/$defs/c"}},"required":["c"]}'
    )
    (tmp_path / "parts" / "city.json").write_text('{"$defs": {"c": {"$ref": "name.json"}}}')
    (tmp_path / "parts" / "name.json").write_text('{"enum": ["Oslo"]}')
    path = tmp_path / "order.json"
    found = sg.generate(TableModel(), "go", path, max_tokens=60, complete=True)
    assert found.value["c"] == "Oslo"
    assert run("check", str(path))[0] == 0 and run("lint", str(path))[0] == 0
    status, out, _ = run("mask", str(path), "--after", '{"c":"O', "--tokenizer", "bytes")
    assert status == 0 and "`s`" in out
    lines = tmp_path / "in.jsonl"
    lines.write_text('{"prompt": "x", "schema": "order.json"}\n')
    status, out, err = run("generate", "--prompts", str(lines))
    assert status == 0 and json.loads(out)["c"] == "Oslo", err


def test_files_outside_the_folder_are_not_read(run: Any, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"const": "secret"}')
    (tmp_path / "schemas").mkdir()
    (tmp_path / "link.json").write_text("{}")
    for reference in ("../secret.json", str(tmp_path / "secret.json"), "http://localhost/x.json"):
        path = tmp_path / "schemas" / "a.json"
        path.write_text(json.dumps({"$ref": reference}))
        with pytest.raises(sg.UnsupportedSchema):
            sg.generate(TableModel(), "go", path)
        assert run("check", str(path))[0] == 2
    path.write_text('{"$ref": "../secret.json"}')
    # the user names the folder, so the command reads it
    assert run("check", str(path), "--registry", str(tmp_path))[0] == 0
    (tmp_path / "schemas" / "b.json").write_text('{"$ref": "secret.json"}')
    assert (
        run("check", str(tmp_path / "schemas" / "b.json"), "--registry", str(tmp_path / "secret.json"))[0]
        == 0
    )


def test_a_registry_by_id(run: Any, tmp_path: Path) -> None:
    (tmp_path / "reg").mkdir()
    (tmp_path / "reg" / "x.json").write_text('{"$id": "https://example.com/x", "const": 5}')
    status, out, err = run(
        "check", "--schema", '{"$ref": "https://example.com/x"}', "--registry", str(tmp_path / "reg")
    )
    assert status == 0 and "compiled" in out, err
    status, _, err = run("check", "--schema", "true", "--registry", str(tmp_path / "none"))
    assert status == 2 and "cannot read the registry" in err
    (tmp_path / "reg" / "bad.json").write_text("{")
    status, _, err = run("check", "--schema", "true", "--registry", str(tmp_path / "reg"))
    assert status == 2 and "bad.json: invalid JSON" in err and err.count("\n") == 1
