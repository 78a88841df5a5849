"""Constraints of a call: every kind, files and Python types. Each mistake gives a message of one line. The
line names the given value and the kinds of values that the call takes."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import json
import random
import re
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pytest

import structgen as sg
from oracles import closed
from oracles.harness import compiler, verdict
from oracles.speculative import TableModel
from oracles.strategies import Features, Seeded, schema
from structgen import errors
from structgen._tokenizers.hub import hub_options
from structgen.checking import bytes_compiler
from structgen.constraints import constraint_of
from structgen.generation.options import Options, Settings
from structgen.kinds import ARGUMENTS
from structgen.sampling.methods import METHODS, Method
from structgen.sampling.request import Request, SampleOptions, TargetOptions, TargetRequest

TEXT = "Maria ordered 3 oak chairs"


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


@dataclasses.dataclass
class Order:
    product: str
    quantity: int


def weather(city: str, days: int = 1) -> str:
    """Returns the weather of a city."""
    return f"{city} {days}"


def value(**given: Any) -> Any:
    return sg.generate(None, given.pop("prompt", TEXT), **given).value


@pytest.mark.parametrize("call", ["generate", "sample"])
def test_every_kind_gives_its_value(call: str, tmp_path: Path) -> None:
    pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")
    pytest.importorskip("lark")

    def made(**given: Any) -> Any:
        if call == "sample":
            (one,) = sg.sample(None, TEXT, method="local", seed=1, **given)
            return one.value
        return value(**given)

    for name, text in (
        ("s.json", '{"enum": [[1, 2]]}'),
        ("g.gbnf", 'root ::= "ab"'),
        ("l.lark", 'start: "cd"'),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / "bom.json").write_bytes(b'\xef\xbb\xbf{"const": 4}')
    assert isinstance(made(schema=Order), Order)
    assert made(schema={"const": {"a": 1}}) == {"a": 1}
    assert made(schema='{"const": "x"}') == "x"
    assert made(schema=tmp_path / "s.json") == [1, 2]
    assert made(schema=tmp_path / "bom.json") == 4
    assert re.fullmatch("[0-9]{3}", made(regex="[0-9]{3}"))
    assert re.fullmatch("[abc]{2}", made(regex=re.compile("[ABC]{2}", re.IGNORECASE)).lower())
    assert re.fullmatch("(?i)ab", made(regex=re.compile("(?i)AB")))
    assert made(choice=["yes", "no"]) in ("yes", "no")
    assert made(schema=["yes", "no"]) in ("yes", "no") and made(schema=("yes",)) == "yes"
    assert made(choice=Size) in Size
    assert made(choice=Literal["red", "blue"]) in ("red", "blue")
    assert (
        made(gbnf='root ::= "ab"') == made(gbnf=tmp_path / "g.gbnf") == made(grammar='root ::= "ab"') == "ab"
    )
    assert (
        made(lark='start: "cd"')
        == made(lark=tmp_path / "l.lark")
        == made(grammar=tmp_path / "l.lark")
        == "cd"
    )
    assert made(response_format={"type": "json_schema", "json_schema": {"schema": {"const": 5}}}) == 5
    assert isinstance(made(response_format=Order), Order)
    assert made(response_format={"type": "regex", "regex": "ab"}) == "ab"
    reply = made(tools=[weather], tool_choice="required")
    assert isinstance(reply, sg.ToolReply) and reply.text == ""
    assert reply.calls[0].name == "weather" and isinstance(reply.calls[0].arguments["city"], str)


DIGIT, ARABIC = r"\d", "\u0663"  # the digit three
UNICODE: list[tuple[Any, str, bool]] = [  # a pattern, a text, whether it matches
    *((rf"{DIGIT}{{2}}", text, text == "33") for text in ("33", ARABIC * 2, "3" + ARABIC)),
    (rf"(?u){DIGIT}+", ARABIC, True),
    (rf"(?i){DIGIT}+", ARABIC, False),
    (rf"(?u:{DIGIT}){DIGIT}", ARABIC + "3", True),
    (rf"(?u:{DIGIT}){DIGIT}", ARABIC * 2, False),
    (r"\w+", "\u00e9", False),
    (r"\W", "\u00e9", True),
    (r"\s", "\u00a0", False),
    (r"[^\s]", "\u00a0", True),
    (r"a\b.b", "a\u00e9b", True),
    (r"(?u)a\b.b", "a\u00e9b", False),
    # Each compiled pattern is tried with a text that Python does not match.
    (re.compile(DIGIT), ARABIC, False),
    (re.compile(DIGIT), "3", True),
    (re.compile(r"\W"), "\u00e9", False),
    (re.compile(r"\W", re.ASCII), "\u00e9", True),
    (re.compile(rf"(?!{DIGIT})."), ARABIC, False),
]


@pytest.mark.parametrize(("pattern", "text", "taken"), UNICODE)
def test_classes_of_patterns_are_ascii(pattern: Any, text: str, taken: bool) -> None:
    """Classes are ASCII in every regex of a user or a host. Lark's terminals use Python's classes
    (tests/test_lark.py)."""
    compiler = bytes_compiler()
    constraint = constraint_of({"regex": pattern})
    assert constraint is not None
    plain = constraint.value
    grammars = [
        constraint.compile(compiler),
        compiler.compile("regex", plain),
        compiler.regex("(?s:.*)") & sg.Regex(plain),
        compiler.structural_tag({"type": "structural_tag", "format": {"type": "regex", "pattern": plain}}),
        compiler.gbnf(f"root ::= Regex({json.dumps(plain)})"),
        sg.template("{a}", a=sg.gen(regex=plain)).compile(compiler),
    ]
    for grammar in grammars:
        assert verdict(grammar, text) == taken, grammar
    if isinstance(pattern, re.Pattern):
        assert not taken or pattern.fullmatch(text)


@pytest.mark.parametrize("style", ["hermes", "llama3", "mistral", "qwen3-coder", "deepseek-v3"])
def test_calls_are_read_back_in_every_style(style: str) -> None:
    """A call of a function is read back from every style with the types of the function's signature. The
    function described in OpenAI's form gives an equal call."""
    pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")
    found = value(tools=[weather], tool_choice=weather, tool_style=style, prompt="the weather in Oslo")
    (call,) = found.calls
    assert call.name == "weather" and weather(**call.arguments)
    assert isinstance(call.arguments["city"], str) and isinstance(call.arguments.get("days", 1), int)
    schema = closed({"city": {"type": "string"}, "days": {"type": "integer", "default": 1}}, ["city"])
    tool = {"type": "function", "function": {"name": "weather", "parameters": schema}}
    again = value(tools=[tool], tool_choice="weather", tool_style=style, prompt="the weather in Oslo")
    assert again.calls[0].name == "weather"


def test_tools_may_be_left_alone() -> None:
    reply = value(tools=[weather], tool_choice="none", max_tokens=6)
    assert reply.calls == [] and reply.text


def test_a_python_type_tells_the_model_what_is_wanted() -> None:
    """The prompt of the embedded model holds the schema, however the caller states the constraint."""
    pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")
    want = sg.generate(None, TEXT, Order).tokens
    assert sg.generate(None, TEXT, response_format=Order).tokens == want
    grammar = sg.Compiler(sg.Vocabulary.from_file(_target())).json_schema(Order, whitespace="compact")
    assert sg.generate(None, TEXT, grammar=grammar).tokens == want
    assert sg.generate(None, TEXT, grammar).tokens == want
    assert sg.generate(None, [{"role": "user", "content": TEXT}], Order).tokens == want


def _target() -> Path:
    from structgen.lm import embedded

    return embedded.path()


def test_n_gives_a_list() -> None:
    one = sg.generate(None, TEXT, {"enum": [1, 2]})
    assert isinstance(one, sg.Result)
    several = sg.generate(None, TEXT, {"enum": [1, 2]}, n=3, seed=1)
    assert isinstance(several, list) and len(several) == 3 and several[0].sampling.temperature == 1.0
    assert isinstance(sg.generate(None, TEXT, {"enum": [1, 2]}, n=1), list)


MISTAKES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"regex": 3}, TypeError, r"regex= takes a pattern, a text: r'\[0-9\]\+', not 3"),
    ({"regex": b"a"}, TypeError, "regex= takes a pattern"),
    ({"regex": re.compile(b"a")}, TypeError, "not one of bytes"),
    ({"regex": re.compile("a", re.VERBOSE)}, ValueError, "VERBOSE"),
    ({"choice": "yes"}, TypeError, r'choice= takes a list of texts: \["yes", "no"\], not \'yes\''),
    ({"choice": [1, 2]}, TypeError, 'schema={"enum"'),
    ({"choice": 3}, TypeError, "choice= takes"),
    ({"choice": enum.Enum("Odd", {"A": 1})}, TypeError, "use schema="),
    ({"choice": (x for x in "ab")}, TypeError, "list"),
    ({"choice": []}, ValueError, "at least one text"),
    ({"gbnf": 3}, TypeError, "gbnf= takes the text of a grammar"),
    ({"lark": ["a"]}, TypeError, "lark= takes the text of a Lark grammar"),
    ({"grammar": {"type": "object"}}, TypeError, "grammar= takes a compiled grammar"),
    ({"schema": 3}, ValueError, "a schema is an object"),
    ({"schema": ["yes", 3]}, ValueError, "choice="),
    ({"schema": [1, 2]}, ValueError, r'values to choose from are \{"enum": \[...\]\}, texts are choice='),
    ({"schema": []}, ValueError, "an empty list is no schema"),
    ({"schema": "order.json"}, ValueError, r"give (schema=)?pathlib.Path\('order.json'\)"),
    ({"schema": 'root ::= "a"'}, ValueError, "gbnf= or grammar="),
    ({"schema": re.compile("a")}, TypeError, "give regex="),
    ({"schema": '{"type":'}, ValueError, "invalid JSON"),
    ({"schema": Order, "regex": "a"}, ValueError, "one constraint, not schema= and regex="),
    ({"tools": weather}, TypeError, "put it into a list"),
    ({"tools": {"name": "weather"}}, TypeError, "put it into a list"),
    ({"tools": []}, ValueError, "empty"),
    ({"tools": [3]}, ValueError, "tool 0"),
    ({"tools": [weather], "tool_style": "hermez"}, ValueError, "did you mean 'hermes'"),
    ({"tools": [weather], "tool_strictness": "functions"}, ValueError, "did you mean 'function'"),
    ({"regex": "a", "tool_strictness": "auto"}, ValueError, "tool_strictness= goes with tools="),
    ({"tools": [weather], "tool_choice": "wether"}, ValueError, "did you mean 'weather'"),
    ({"tool_choice": "required"}, ValueError, "tool_choice= goes with tools="),
    ({"regex": "a", "tool_style": "hermes"}, ValueError, "tool_style= goes with tools="),
    ({"response_format": {"type": "integer"}}, ValueError, "A JSON Schema by itself is schema="),
    ({"response_format": "json"}, TypeError, "response_format= takes"),
    ({"schemas": Order}, TypeError, "did you mean schema="),
    ({"temprature": 1}, TypeError, "did you mean temperature="),
    ({"max_tokens": "3"}, TypeError, "max_tokens is a whole number, not '3'"),
    ({"max_tokens": True}, TypeError, "max_tokens is a whole number"),
    ({"max_tokens": None}, TypeError, "max_tokens is a whole number, not None"),
    ({"top_k": 1.5}, TypeError, "top_k is a whole number"),
    ({"temperature": "hot"}, TypeError, "temperature is a number"),
    ({"stop": 3}, TypeError, "stop is a text or a list of texts"),
    ({"stop": ["a", 3]}, TypeError, "3 is none"),
    ({"stop": ""}, ValueError, "must not be empty"),
    ({"logit_bias": {"a": 1}}, TypeError, "vocabulary.encode"),
    ({"logit_bias": {10**9: 1}}, ValueError, "ids end at"),
    ({"logit_bias": [1]}, TypeError, "dict of token id"),
    ({"prompt": ["a", "b"]}, TypeError, "generate_many takes a list of prompts"),
    ({"prompt": Path("x")}, TypeError, "read_text"),
    ({"prompt": b"x"}, TypeError, "a prompt is a text"),
    ({"prompt": [{"content": "x"}]}, TypeError, "message 0"),
]


@pytest.mark.parametrize(
    ("given", "kind", "message"), MISTAKES, ids=["-".join(m[0]) + str(i) for i, m in enumerate(MISTAKES)]
)
def test_a_mistake_is_one_clear_line(given: dict[str, Any], kind: type[Exception], message: str) -> None:
    pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")
    with pytest.raises(kind, match=message) as caught:
        value(**given)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("name", "text", "given", "place"),
    [
        ("s.json", '{"type": "object",}', "schema", ":1:19: invalid JSON"),
        ("s.json", '{"type": "objekt"}', "schema", ": "),
        ("g.gbnf", 'root ::= "a"\n  | rot', "gbnf", ":2:5: rule 'rot' is not defined"),
        ("g.lark", 'start: "a"\n  | rot', "lark", ":2:"),
    ],
)
def test_errors_begin_with_the_files_name(
    tmp_path: Path, name: str, text: str, given: str, place: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(sg.GrammarError) as caught:
        value(**{given: path})
    assert str(caught.value).startswith(f"{path}{place}")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.json"):
        value(schema=tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b'{"const": "\xe9"}')
    with pytest.raises(ValueError, match="not UTF-8"):
        value(schema=tmp_path / "latin.json")


def test_type_checkers_and_the_call_know_the_same_options() -> None:
    fields = {f.name for f in dataclasses.fields(Settings) if f.init}
    assert (fields - {"n"}) | {"condition"} == Options.__annotations__.keys()
    given = {"model", "prompt", "schema"}
    for runs, read in ((TargetRequest, TargetOptions), (Request, SampleOptions)):
        assert {f.name for f in dataclasses.fields(runs)} - given == read.__annotations__.keys()
    documented = sg.generate.__doc__ or ""
    for name in (*fields, *ARGUMENTS):
        assert re.search(rf"\b{name}\b", documented), f"{name} is not documented"


def test_methods_of_sampling_are_one_list() -> None:
    assert set(get_args(Method)) == METHODS.keys()
    assert METHODS["gcd"] is METHODS["local"] and METHODS["awrs"].name == "awrs"
    # The tests of laws choose their methods by these fields, so the fields are compared with a list here.
    assert {name for name, row in METHODS.items() if not row.corrected} == {"local", "gcd"}
    assert {name for name, row in METHODS.items() if not row.stops} == {"smc", "awrs", "mcmc"}
    with pytest.raises(ValueError, match="method is one of auto, cars, .* not 'cors'"):
        sg.sample(None, TEXT, {}, method="cors")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no option temprature=; did you mean temperature="):
        sg.sample(None, TEXT, {}, temprature=0.5)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="smc does not stop at a bracket"):
        sg.sample(None, TEXT, {}, method="smc", until_tv=0.5)


def test_a_schema_of_json_text_nested_deeply_ends() -> None:
    for text in ("[" * 100_000, '{"a":' * 50_000):
        with pytest.raises((sg.GrammarError, ValueError)):
            sg.generate(TableModel(), "go", text)


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("generation", "Sampling", "Drawing"),
        ("serve.options", "Options", "ServerOptions"),
        ("sampling.smc", "Options", "SmcOptions"),
    ],
)
def test_an_old_name_gives_what_has_the_new_one(module: str, old: str, new: str) -> None:
    found = importlib.import_module(f"structgen.{module}")
    with pytest.warns(DeprecationWarning, match=f"{old} is {new} now"):
        assert getattr(found, old) is getattr(found, new)
    assert not hasattr(found, "Nothing")


def test_a_constraint_passes_through() -> None:
    made = constraint_of({"choice": ["a"]})
    assert constraint_of({"schema": made}) is made
    assert constraint_of({"response_format": {"type": "text"}}) is None
    assert constraint_of({}) is None


@pytest.mark.parametrize("seed", range(12))
def test_a_choice_of_many_texts_is_exactly_those(seed: int) -> None:
    """The texts become a tree. Random texts share beginnings, begin each other, or share a part of a
    character."""
    rng = random.Random(seed)
    letters = rng.choice(("ab", "aé", "日本a", "0123456789"))
    texts = ["".join(rng.choices(letters, k=rng.randint(0, 7))) for _ in range(rng.choice((3, 80, 5_000)))]
    texts += rng.choice(([], [letters[0] * i for i in range(300)]))
    grammar = compiler().choice(texts)

    def accepted(text: str) -> bool:
        return verdict(grammar, text.encode())

    known = set(texts)
    others = ["".join(rng.choices(letters, k=rng.randint(0, 9))) for _ in range(500)]
    others += [letters[0] * i for i in range(290, 310)]
    for text in [*rng.sample(texts, min(len(texts), 500)), *others]:
        assert accepted(text) == (text in known), text


def test_a_hundred_thousand_choices() -> None:
    grammar = compiler().choice(f"k{i}" for i in range(100_000))
    assert grammar.matcher().accept_bytes(b"k99999") and not grammar.matcher().accept_bytes(b"k100000")


def test_a_validator_may_raise_what_it_likes() -> None:
    """The exception counts as an invalid value, so another value can be drawn."""
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")

    class Coded(pydantic.BaseModel):
        code: Literal["a", "b"]

        @pydantic.field_validator("code")
        @classmethod
        def known(cls, code: str) -> str:
            return {"b": "B"}[code]

    class Never(Coded):
        code: Literal["a"]

    assert sg.generate(TableModel(3), "go", Coded, retries=5, seed=1, temperature=1.0).value.code == "B"
    with pytest.raises(sg.InvalidValue, match="its validator raised KeyError: 'a' in") as caught:
        sg.generate(TableModel(3), "go", Never)
    assert isinstance(caught.value.error, KeyError)
    with pytest.raises(sg.InvalidValue, match="KeyError"):  # the language has no second value to try
        sg.generate(TableModel(3), "go", Never, retries=3)


def test_what_is_no_schema_is_told_with_its_place() -> None:
    with pytest.raises(sg.GrammarError, match=r"no JSON Schema for Literal"):
        sg.generate(TableModel(3), "go", Literal[()])
    for options in ({}, {"whitespace": "compact"}):
        with pytest.raises(sg.GrammarError, match=r"invalid JSON.*\(line 2, column 11\)"):
            sg.generate(TableModel(3), "go", '{"type":\n "string",,}', **options)


def test_a_pair_that_is_swapped() -> None:
    class Tokenizer:
        convert_ids_to_tokens = None

    class Model:
        forward = None

    with pytest.raises(TypeError, match="the tokenizer first: swap them"):
        sg.generate((Tokenizer(), Model()), "go")


def test_messages_for_a_model_without_a_template() -> None:
    messages = [{"role": "user", "content": "go"}]
    for format in ("auto", "chat", "plain"):
        with pytest.raises(ValueError, match="give the prompt as one text"):
            sg.generate(TableModel(), messages, {"enum": [1]}, format=format)
    with pytest.raises(ValueError, match="use format='plain'"):
        sg.generate(TableModel(), "go", {"enum": [1]}, format="chat")


def test_a_hub_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure the hub is asked again only a minute later. A folder, a proxy and offline mode ask no
    hub."""
    constants = pytest.importorskip("huggingface_hub.constants")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    asked: list[Any] = []

    def refuse(address: Any, timeout: float) -> None:
        asked.append(address)
        raise OSError("no network")

    monkeypatch.setattr("socket.create_connection", refuse)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "https://hub.invalid")
    assert hub_options("some/model") == {"local_files_only": True} and asked == [("hub.invalid", 443)]
    assert hub_options(str(Path(__file__).parent)) == {} and len(asked) == 1
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert hub_options("some/model") == {} and len(asked) == 1
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.invalid")
    assert hub_options("some/model") == {} and len(asked) == 1


@pytest.mark.parametrize("seed", range(60))
def test_a_kind_and_its_method_make_one_grammar(seed: int) -> None:
    """`Compiler.compile` equals `Compiler.json_schema` for random schemas and options, except for the
    defaults."""
    source = Seeded(seed)
    document = schema(source, Features(depth=2))
    options: dict[str, Any] = {
        "whitespace": source.pick(["flexible", "compact", "one-blank", "spaced", "pretty"]),
        "property_order": source.pick(["schema", "any"]),
        "formats": source.pick(["enforce", "annotate"]),
    }
    spelled = {
        "numbers": source.pick(["any", "plain", "canonical"]),
        "strings": source.pick(["any", "plain"]),
    }
    own = compiler()
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({**options, **spelled}, {**options, **spelled}),
        (options, {**options, "numbers": "plain", "strings": "plain"}),
        ({}, {"whitespace": "one-blank", "numbers": "plain", "strings": "plain"}),
    ]
    for by_kind, by_method in pairs:
        try:
            grammars = [
                own.compile("json_schema", document, **by_kind),
                own.json_schema(document, **by_method),
            ]
        except errors.GrammarError:
            continue
        matchers = [grammar.matcher() for grammar in grammars]
        rows = sg.allocate_bitmask(2, own.vocabulary.vocab_size)
        for _ in range(12):
            for i, matcher in enumerate(matchers):
                matcher.fill_bitmask(rows, i)
            assert np.array_equal(rows[0], rows[1]), (by_kind, by_method, document)
            allowed = np.flatnonzero(np.unpackbits(rows[0].view(np.uint8), bitorder="little"))
            token = int(source.pick(list(allowed)))
            taken = [matcher.accept_token(token) for matcher in matchers]
            if not all(taken) or matchers[0].is_terminated():
                break
