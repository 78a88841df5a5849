"""Values in the wrong place: the error names the given value and the kinds that the call takes."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

import structgen as sg
from oracles.harness import verdict
from structgen.lm.base import LanguageModelError

VOCABULARY = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], 256)
COMPILER = sg.Compiler(VOCABULARY)
MATCHER = COMPILER.regex("a*").matcher()
ANY: Any = COMPILER
PATH = pathlib.Path("schema.json")


def processor(value: Any) -> Any:
    pytest.importorskip("transformers")
    from structgen.integrations.transformers import LogitsProcessor

    return LogitsProcessor(value)


def by_place(a: int, /) -> int:
    """Returns a function with a positional-only argument."""
    return a


def said_by(role: str, content: str | None) -> Any:
    return sg.generate(None, [{"role": role, "content": content}], regex="a")


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: sg.Compiler("embedded"), TypeError, "is a structgen.Vocabulary, not 'embedded'"),  # type: ignore
        (lambda: sg.Compiler(None), TypeError, "from_huggingface takes tokenizers"),  # type: ignore
        (lambda: MATCHER.validate_tokens("ab"), TypeError, "list of ids, not 'ab'; text goes to"),  # type: ignore
        (lambda: MATCHER.accept_tokens("ab"), TypeError, "list of ids, not 'ab'"),  # type: ignore
        (lambda: MATCHER.accept_tokens(3), TypeError, "list of ids, not 3"),  # type: ignore
        (lambda: MATCHER.accept_token("a"), TypeError, "a token is a number, not 'a'"),  # type: ignore
        (lambda: MATCHER.accept_bytes(3), TypeError, "a text is bytes or str, not 3"),  # type: ignore
        (lambda: MATCHER.validate_bytes([97]), TypeError, r"not \[97\]; token ids go to"),  # type: ignore
        (
            lambda: COMPILER.json_schema(PATH),
            sg.GrammarError,
            r"not PosixPath; read the file|not WindowsPath",
        ),
        (lambda: COMPILER.choice("yes"), TypeError, "list of texts"),
        (lambda: COMPILER.choice(3), TypeError, "list of texts"),  # type: ignore
        (lambda: COMPILER.regex(3), TypeError, "a pattern is a str, not int"),  # type: ignore
        (lambda: COMPILER.regex(b"a"), TypeError, "decode them"),  # type: ignore
        (lambda: COMPILER.gbnf(None), TypeError, "a grammar is a str, not NoneType"),  # type: ignore
        (lambda: COMPILER.lark(PATH), TypeError, r"read the file: path.read_text\(\)"),  # type: ignore
        (lambda: COMPILER.grammar(3), TypeError, "a grammar is a str"),  # type: ignore
        (
            lambda: COMPILER.tools(3),
            sg.GrammarError,
            "tools are a list, or what an MCP client lists .*, not 3",
        ),  # type: ignore
        (
            lambda: sg.generate(None, 3, {}),
            TypeError,
            "a prompt is a text, a list of token ids or of messages",
        ),
        (
            lambda: COMPILER.json_schema({"type": "object"}).parse("{"),
            ValueError,
            "none of the grammar's: it is not complete",
        ),
        (
            lambda: COMPILER.json_schema({"type": "object"}).parse('{"a":}'),
            ValueError,
            "none of the grammar's: byte 5 cannot",
        ),
        (
            lambda: sg.generate("./none", "", {}),
            LanguageModelError,
            "cannot load the model './none': no such folder",
        ),
        (lambda: sg.generate("none.gguf", "", {}), LanguageModelError, "the model 'none.gguf': no such file"),
        (lambda: sg.Vocabulary.from_huggingface("./none"), sg.VocabularyError, "'./none': no such folder"),
        (lambda: sg.generate(None, "", tools=[print]), sg.GrammarError, "print>, is no function of Python's"),
        (lambda: sg.generate(None, "", tools=[by_place]), sg.GrammarError, "takes 'a' by its place alone"),
        (lambda: COMPILER.json_schema({}, whitspace=None), TypeError, "no option whitspace=; did you mean"),  # type: ignore
        (lambda: said_by("usr", "hi"), ValueError, "message 0 has the role 'usr'; did you mean 'user'?"),
        (lambda: said_by("user", None), TypeError, "message 0, of the role 'user', has no content"),
        (lambda: processor({"type": "object"}), TypeError, "one compiled grammar or a list"),
    ],
)
def test_the_error_says_what_is_taken(call: Callable[[], Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        call()


def test_a_document_of_a_registry_has_its_specification() -> None:
    """In draft 4 `exclusiveMinimum` is a boolean beside `minimum`; in 2020-12 it is a number."""
    referencing = pytest.importorskip("referencing")
    from referencing.jsonschema import DRAFT4, DRAFT202012

    document = {"minimum": 3, "exclusiveMinimum": True, "type": "integer"}
    for specification, allowed in ((DRAFT4, False), (DRAFT202012, True)):
        registry = referencing.Registry().with_resource("urn:n", specification.create_resource(document))
        assert verdict(COMPILER.json_schema({"$ref": "urn:n"}, registry=registry), "3") is allowed
