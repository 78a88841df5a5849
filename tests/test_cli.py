"""The command line: verdicts with places, exit statuses, and one readable line for every failure."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import structgen
from structgen.cli import main
from structgen.cli.common import place, ranges, visible
from structgen.cli.main import explain
from structgen.lm import embedded

ROOT = Path(__file__).resolve().parents[1]
ORDER = str(ROOT / "examples" / "order.schema.json")
TOOLS = str(ROOT / "examples" / "tools.schema.json")
GOOD = '{"customer":"A","items":[],"city":null,"date":null,"express":true}'


@pytest.fixture
def run(capsys, monkeypatch):
    """A function that runs a command and returns its status, standard output and standard error."""

    def call(*arguments: str, stdin: str | bytes = "") -> tuple[int, str, str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        try:
            status = main(arguments)
        except SystemExit as stop:  # argparse ends a command with this exception
            status = int(stop.code or 0)
        found = capsys.readouterr()
        return status, found.out, found.err

    return call


@pytest.fixture
def file(tmp_path):
    def make(text: str | bytes, name: str = "file.json") -> str:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    return make


def one_error(status: int, err: str, *parts: str) -> None:
    assert status == 2
    assert err.count("\n") == 1 and err.startswith("structgen: "), err
    for part in parts:
        assert part in err, err


def test_version(run) -> None:
    assert run("--version") == (0, f"structgen {structgen.__version__}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [(), ("no-such",), ("generate", "--schema", ORDER), ("mask", ORDER, "--order", "x")],
)
def test_wrong_usage_is_2(run, arguments) -> None:
    status, out, err = run(*arguments)
    assert (status, out, len(err.splitlines())) == (2, "", 2) and "usage:" in err


def test_check_accepts(run, file) -> None:
    path = file(f" \n{GOOD}\n")
    assert run("check", ORDER, path, "-", stdin=GOOD)[:2] == (
        0,
        f"{path}: accepted\nstandard input: accepted\n",
    )


def test_check_says_where_it_stops(run) -> None:
    text = '{\n  "customer": "é",\n  "items": [{"product": "x", "quantity": "two"}]}'
    status, out, _ = run("check", ORDER, "-", stdin=text)
    assert status == 1
    first, inside, after, found, because, allowed = out.splitlines()
    assert inside == "  in       #/items/0/quantity"
    byte = text.encode().index(b'"two"')
    assert first == f"standard input: rejected at line 3, column 42 (byte {byte})"
    assert after.endswith('"quantity": ') and found.strip().startswith('found    "two"')
    assert because.strip() == (
        "because  #/properties/items/items/properties/quantity/type: `type`: must be an integer"
    )
    assert allowed.strip() == "allowed  `-`, `0`-`9`, whitespace"


def test_check_says_why(run, file) -> None:
    schema = file(
        '{"type": "object", "required": ["a"], "anyOf": [{"minProperties": 2}, {"required": ["b"]}]}'
    )
    _, out, _ = run("check", schema, "-", stdin='{"a": 1}')
    assert "because  #/anyOf: none of the 2 branches of `anyOf` allows it" in out
    assert '\n             #/anyOf/1/required: the key "b" is missing' in out
    _, out, _ = run("check", schema, "-", stdin='{"c": 1}')
    assert 'because  #/required: the key "a" is missing' in out
    _, out, _ = run("check", schema, "-", stdin='{"a": 1, "a": 2}')
    assert 'because  the key "a" stands twice in one object' in out


def test_check_names_the_keys_that_could_come(run, file) -> None:
    schema = file('{"type": "object", "properties": {"red": {}, "green": {}}, "additionalProperties": false}')
    _, out, _ = run("check", "--order", "any", schema, "-", stdin='{"blue": 1}')
    assert out.endswith('allowed  `green"`, `red"`\n')
    _, out, _ = run("check", "--order", "any", schema, "-", stdin='{"red": 1, 2}')
    assert out.endswith('allowed  `"green"`, whitespace\n')
    status, out, _ = run("check", schema, os.devnull)
    assert status == 1 and "incomplete: the text ends at line 1, column 1 (byte 0)" in out


def test_check_tells_apart_what_only_the_order_refuses(run) -> None:
    text = '{"items":[],"customer":"A","city":null,"date":null,"express":true}'
    status, _, err = run("check", ORDER, "-", stdin=text)
    assert status == 1 and "accepted with --order any" in err
    assert run("check", "--order", "any", ORDER, "-", stdin=text)[0] == 0


def test_check_options_reach_the_compiler(run, file) -> None:
    schema = file('{"type": "string", "format": "date"}')
    assert run("check", schema, "-", stdin='"no"')[0] == 1
    assert run("check", "--formats", "annotate", schema, "-", stdin='"no"')[0] == 0
    one_error(*run("check", "--draft", "12", schema)[::2], "unknown draft")


def test_check_of_the_schema_alone(run, file) -> None:
    status, out, err = run("check", file('{"x-note": 1}', "s.json"))
    assert status == 0 and "compiled (1 remark)" in out and "#: x-note" in err


def test_unsatisfiable_is_a_rejection(run, file) -> None:
    status, out, err = run("check", file('{"type": "string", "enum": [1]}'), "-", stdin="1")
    assert (status, out) == (1, "") and "no value satisfies" in err and err.count("\n") == 1


def test_compile_reports(run, file) -> None:
    status, out, err = run("compile", file('{"format": "no-such", "minimum": 2}', "s.json"), ORDER)
    assert (status, err) == (0, "")
    assert "compiled in" in out and "first mask" in out
    assert "every keyword but these:\n    #: format: unknown format" in out


def test_compile_goes_on_after_an_error(run, file) -> None:
    bad = file('{"properties": {"a": {"pattern": "("}}}', "bad.json")
    status, out, err = run("compile", bad, ORDER)
    assert status == 2 and ORDER in out and err.count("\n") == 1
    assert "bad.json" in err and "#/properties/a" in err


def test_mask_lists_tokens(run) -> None:
    status, out, err = run("mask", ORDER, "--after", GOOD[:-5], "--tokenizer", "bytes")
    assert (status, out) == (0, "9\t`\\t`\n10\t`\\n`\n13\t`\\r`\n32\t` `\n102\t`f`\n116\t`t`\n")
    assert "6 of 257 ids allowed" in err


def test_mask_with_the_embedded_tokenizer(run) -> None:
    status, out, err = run("mask", ORDER, "--after", '{"customer":"A","items":[],"city":n')
    assert status == 0 and "`ull`" in out and "must go on with `ull`" in err
    _, every, _ = run(
        "mask", TOOLS, "--limit", "0", "--after", '{"name":"set_timer","arguments":{"minutes":5}}'
    )
    assert "(end of text)" in every


def test_mask_after_an_impossible_text(run) -> None:
    status, out, err = run("mask", ORDER, "--after", '{"cost":')
    assert (status, out) == (1, "") and "column 4 (byte 3)" in err and '`ustomer"`' in err


@pytest.mark.parametrize("text", ['{"a": 1,\n "b": }', '{"type": "strin}', "", "[1", '{"a" 1}'])
def test_a_schema_that_is_no_json(run, text) -> None:
    one_error(*run("check", "-", stdin=text)[::2], "standard input:", "invalid JSON")


def test_the_place_in_a_schema_that_is_no_json(run) -> None:
    one_error(*run("check", "-", stdin='{"a": 1,\n "b": }')[::2], "standard input:2:7: invalid JSON")


def test_input_that_cannot_be_read(run, file, tmp_path) -> None:
    one_error(*run("check", str(tmp_path / "none.json"))[::2], "none.json", "No such file")
    one_error(*run("check", str(tmp_path))[::2], "Is a directory")
    one_error(*run("check", file(b'"\xff"'))[::2], "not UTF-8 (byte 1)")
    one_error(*run("check", "-", "-", stdin="true")[::2], "standard input is read once")
    one_error(*run("mask", ORDER, "--tokenizer", str(tmp_path / "t.json"))[::2], "t.json", "no such file")
    one_error(*run("mask", ORDER, "--tokenizer", file("{}", "u.json"))[::2], "u.json")


def test_deep_input_is_a_result_or_a_line(run) -> None:
    status, _, err = run("check", "-", stdin='{"not":' * 100_000 + "{}" + "}" * 100_000)
    assert status in (0, 1, 2) and "Traceback" not in err


def test_no_traceback_in_a_process(tmp_path) -> None:
    command = [sys.executable, "-m", "structgen.cli", "check", "-", "-"]
    done = subprocess.run(command, input=b"{", capture_output=True, cwd=ROOT)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1


def test_a_reader_that_leaves(tmp_path) -> None:
    command = f'"{sys.executable}" -m structgen.cli mask "{ORDER}" --limit 0 --tokenizer bytes | true'
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, cwd=ROOT)
    assert b"Traceback" not in done.stderr and b"BrokenPipe" not in done.stderr
    assert done.returncode in (0, 141)


def test_generate_answers_prompts(run, tmp_path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    lines = [
        {"prompt": "Start a timer for 12 minutes", "schema": TOOLS},
        {"prompt": "timer " * 2000, "schema": TOOLS},
        {"prompt": "yes or no", "schema": {"enum": [True]}},
        {"prompt": "never answered", "schema": TOOLS},
    ]
    prompts.write_text("\n".join(map(json.dumps, lines)))
    status, out, err = run("generate", "--prompts", str(prompts), "--limit", "3")
    first, second = map(json.loads, out.splitlines())
    assert first["name"] in ("set_timer", "get_weather", "search_flights") and second is True
    assert status == 2, "one prompt is longer than the model's context"
    line, doubt = [line for line in err.splitlines() if line.startswith("structgen: ")]
    assert "prompts.jsonl:2: " in line and "tokens" in line
    assert "prompts.jsonl:3: " in doubt and "outside what the embedded model knows" in doubt


def test_generate_writes_records(run, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    arguments = ("generate", "--prompt", "Start a timer for 5 minutes", "--schema", TOOLS, "-n", "2")
    for _ in range(2):
        assert run(*arguments, "--seed", "1", "--output", str(out))[:2] == (0, "")
        records = [json.loads(line) for line in out.read_text().splitlines()]
        assert len(records) == 2
        for record in records:
            assert json.loads(record["text"]) == record["value"]
            assert len(record["tokens"]) == len(record["logprobs"]) and record["finish_reason"] == "stop"


def test_a_record_tells_the_warnings_of_its_schema(run, tmp_path) -> None:
    (tmp_path / "s.json").write_text('{"type": "array", "items": {"type": "boolean"}, "minItems": "3"}')
    arguments = ("generate", "--prompt", "go", "--schema", str(tmp_path / "s.json"), "--output", "-")
    status, out, err = run(*arguments)
    assert status == 0 and any("`minItems`" in told for told in json.loads(out)["warnings"])
    assert err.count("`minItems`") == 1, err


def test_generate_says_where_the_budget_decided(run, tmp_path) -> None:
    (tmp_path / "s.json").write_text('{"type": "array", "items": {"type": "string"}, "minItems": 2}')
    for tokens, said in (("300", False), ("8", True)):
        status, out, err = run(
            *("generate", "--prompt", "two shirts", "--schema", str(tmp_path / "s.json")),
            *("--max-tokens", tokens),
        )
        assert status == 0 and len(json.loads(out)) >= 2
        assert ("had to end within 8 tokens" in err) == said


def test_generate_speculates_without_changing_the_text(run) -> None:
    arguments = ("generate", "--prompt", "Start a timer for 5 minutes", "--schema", TOOLS)
    _, plain, _ = run(*arguments)
    for what in ("auto", "grammar,automaton,recycling"):
        status, out, err = run(*arguments, "--speculate", what)
        assert (status, out) == (0, plain)
        assert float(re.search(r"([\d.]+) tokens a forward", err)[1]) > 1.0
    status, out, err = run(*arguments, "--speculate", "magic")
    assert (status, out) == (2, "") and "no drafter is called 'magic'" in err


def test_generate_says_what_is_wrong(run, file, tmp_path) -> None:
    prompt = ("generate", "--prompt", "x")

    def failed(*arguments: str, stdin: str = "") -> str:
        status, out, err = run(*arguments, stdin=stdin)
        lines = [line for line in err.splitlines() if not line.startswith("loading")]
        assert (status, out) == (2, "") and len(lines) == 1 and lines[0].startswith("structgen: "), err
        return lines[0]

    assert "needs --schema" in failed(*prompt)
    assert "no such folder" in failed(*prompt, "--schema", TOOLS, "--model", str(tmp_path / "none"))
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "cannot load the model" in failed(*prompt, "--schema", TOOLS, "--model", str(empty))
    assert "invalid JSON" in failed(*prompt, "--schema", "-", stdin='{"type"')
    bad = file("[1]\n", "bad.jsonl")
    assert 'bad.jsonl:1: expected a string or an object with "prompt"' in failed("generate", "--prompts", bad)
    assert "bad.jsonl:1: invalid JSON" in failed("generate", "--prompts", file("{\n", "bad.jsonl"))
    assert "has no prompts" in failed("generate", "--prompts", "-", "--schema", TOOLS)
    assert "max_tokens must be" in failed(*prompt, "--schema", TOOLS, "--max-tokens", "0")


def test_places_count_as_editors_do() -> None:
    data = 'a\n"é€x"'.encode()
    at = place(data, data.index(b"x"))
    assert (at.line, at.column, at.before, at.after) == (2, 4, 'a\\n"é€', 'x"')
    inside = place(data, data.index("€".encode()) + 1)
    assert (inside.line, inside.column) == (2, 3)
    long = place(b"x" * 1000, 500)
    assert long.before == "..." + "x" * 60 and long.after == "x" * 60 + "..."


def test_bytes_are_readable() -> None:
    assert visible(b'a"\n\x00\xff\xc3\xa9') == 'a"\\n\\x00\\xff\u00e9'
    assert ranges(b"0123459ab-") == ["`-`", "`0`-`5`", "`9`", "`a`", "`b`"]
    assert ranges(range(0x7E, 0x82)) == ["`~`", "0x7F", "0x80", "0x81"]


# ---- one parser of constraints for all commands ----


def test_every_command_takes_every_constraint(run, file) -> None:
    """generate, sample, check, mask and compile take the same flags of constraints."""
    pytest.importorskip("lark")
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    constraints = [
        ("--schema", '{"const": "ab"}'),
        ("--schema", file('{"const": "ab"}', "s.json")),
        ("--regex", "ab"),
        ("--choice", "ab", "cd"),
        ("--gbnf", file('root ::= "ab"', "g.gbnf")),
        ("--lark", file('start: "ab"', "g.lark")),
        ("--grammar", file('start: "ab"', "h.lark")),
        (
            "--response-format",
            file('{"type": "json_schema", "json_schema": {"schema": {"const": "ab"}}}', "r.json"),
        ),
        ("--tools", file(json.dumps(tools), "t.json"), "--tool-choice", "required"),
        (
            "--tools",
            file(json.dumps(tools), "t.json"),
            "--tool-choice",
            "required",
            "--tool-strictness",
            "function",
            "--no-parallel-tool-calls",
        ),
    ]
    for constraint in constraints:
        status, out, err = run("generate", "--prompt", "x", *constraint)
        assert status == 0 and ("ab" in out or "weather" in out or "cd" in out), (constraint, err)
        status, out, err = run("sample", "--prompt", "x", "--method", "local", *constraint)
        assert status == 0 and json.loads(out)["text"], (constraint, err)
        assert run("compile", *constraint)[0] == run("mask", *constraint)[0] == 0, constraint
        status, out, _ = run("check", "-", *constraint, stdin="nothing\n")
        assert status == 1 and "rejected at line 1" in out, constraint
        status, out, err = run("check", *constraint)
        assert status == 0 and "compiled" in out, err


def test_check_takes_texts_of_any_grammar(run, file) -> None:
    text = file("2024-01-31\n", "t.txt")
    assert run("check", "--regex", r"\d{4}-\d{2}-\d{2}", text)[:2] == (0, f"{text}: accepted\n")
    status, out, _ = run("check", "--regex", "[a-z]+", text)
    assert status == 1 and "allowed  `a`-`z`" in out


def test_constraints_that_are_wrong(run, file) -> None:
    status, _, err = run("check", "--regex", "a", "--schema", ORDER)
    one_error(status, err, "one constraint at a time, not --schema and --regex")
    status, _, err = run("check")
    one_error(status, err, "check needs a schema")
    status, _, err = run("mask")
    one_error(status, err, "mask needs a schema")
    status, _, err = run("compile")
    one_error(status, err, "compile needs a schema")
    status, _, err = run("compile", "--type", "orders")
    one_error(status, err, "MODULE:NAME")
    status, _, err = run("compile", "--type", "no_such_module:Order")
    one_error(status, err, "cannot import the module no_such_module")
    status, _, err = run("compile", "--type", "json:Order")
    one_error(status, err, "the module json has no Order")
    status, _, err = run("check", "--choice", "good", "bad", "-")
    one_error(status, err, "name files first: check - --choice")
    status, _, err = run("compile", "--regex", "a", "--tool-choice", "none")
    one_error(status, err, "tool_choice= goes with tools=")
    bad = file("[{", "t.json")
    status, _, err = run("compile", "--tools", bad)
    one_error(status, err, f"{bad}: invalid JSON")
    grammar = file('root ::= "a"\n  | rot', "g.gbnf")
    status, _, err = run("compile", "--gbnf", grammar)
    one_error(status, err, f"{grammar}:2:5: rule 'rot' is not defined")


def test_a_type_of_python_on_the_command_line(run, tmp_path, monkeypatch) -> None:
    pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")
    (tmp_path / "my_orders.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Order:\n    product: str\n    quantity: int\n"
    )
    monkeypatch.chdir(tmp_path)
    status, out, _ = run("generate", "--type", "my_orders:Order", "--prompt", "two lamps")
    assert status == 0 and set(json.loads(out)) == {"product", "quantity"}


def test_generate_takes_the_options_of_decoding(run, file, tmp_path, monkeypatch) -> None:
    base = ("generate", "--prompt", "x", "--choice", "alpha", "beta")
    first = run(*base)[1].strip()
    text = "alpha" if first == "beta" else "beta"
    vocabulary = structgen.Vocabulary.from_file(embedded.path())
    tokens = {t[:1]: i for i, t in enumerate(vocabulary.tokens) if t}
    ids = [i for i, t in enumerate(vocabulary.tokens) if t and first.startswith(t.decode("utf-8", "replace"))]
    assert tokens and ids
    flags = [f"--logit-bias={i}=-100" for i in ids]
    assert run(*base, *flags)[:2] == (0, f"{text}\n")
    assert run(*base, "--stop", first[2:])[:2] == (0, f"{first[:2]}\n")
    status, out, _ = run(*base, "--top-logprobs", "2", "--output", "-", "--min-p", "0.1", "--seed", "1")
    record = json.loads(out)
    assert status == 0 and len(record["top_logprobs"]) == len(record["tokens"])
    assert len(record["top_logprobs"][0]["before"]) == 2
    status, _, err = run(*base, "-n", "0")
    assert status == 2 and "n must be at least 1" in err
    for flag in ("--logit-bias=3", "--logit-bias=a=b", "--logit-bias=nothing=3"):
        status, _, err = run(*base, flag)
        assert status == 2 and ("--logit-bias takes" in err or "logit_bias" in err), err
    pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")
    (tmp_path / "picky.py").write_text(
        "from typing import Annotated\nfrom pydantic import AfterValidator\n"
        "def odd(x: int) -> int:\n    if x % 2 == 0: raise ValueError('must be odd')\n    return x\n"
        "Odd = Annotated[int, AfterValidator(odd)]\n"
    )
    monkeypatch.chdir(tmp_path)
    status, _, err = run("generate", "--type", "picky:Odd", "--prompt", "two lamps, 2, 2")
    assert status == 2 and "must be odd" in err and err.count("structgen: ") == 1
    status, out, err = run("generate", "--type", "picky:Odd", "--prompt", "two lamps, 2, 2", "--retries", "5")
    assert status == 0 and int(out) % 2


def test_a_wrong_value_of_a_line_is_no_mistake_of_the_program(run, tmp_path) -> None:
    """The message names the wrong value. Only Python's own errors are called unexpected."""
    prompts = tmp_path / "prompts.jsonl"
    wrong = [
        {"temperature": "hot"}, {"prompt": [1, "a"]}, {"choice": [1]}, {"tools": 3}, {"stop": 3},
        {"prompt": [{"rol": "user"}]}, {"speculate": 3}, {"logit_bias": {"a": 1}}, {"compiler": 3},
        {"registry": 3},
    ]  # fmt: skip
    prompts.write_text("".join(json.dumps({"prompt": "x", **line}) + "\n" for line in wrong))
    schema = tmp_path / "schema.json"
    schema.write_text('{"enum": [1]}')
    _, _, err = run("generate", "--prompts", str(prompts), "--schema", str(schema))
    assert all(f"prompts.jsonl:{i}: " in err for i in range(1, len(wrong) + 1)) and "unexpected" not in err
    with pytest.raises(TypeError) as caught:
        len(3)  # type: ignore[arg-type]
    assert explain(caught.value)[0].startswith("unexpected TypeError")


@pytest.mark.parametrize("command", ["check", "compile", "mask", "edit"])
def test_strict_hears_of_a_malformed_keyword(run, file, command: str) -> None:
    schema = file('{"type": "array", "minItems": "3"}', "schema.json")
    given = (
        [file("[1]", "document.json"), "--at", "/0", "--schema", schema] if command == "edit" else [schema]
    )
    status, out, err = run(command, *given, "--strict")
    assert status == 2 and not out and "`minItems`: ignored: not a number" in err and "schema.json" in err
    assert "warning" in run(command, *given)[2]
