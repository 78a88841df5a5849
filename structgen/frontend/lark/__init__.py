"""Lark grammars, read by the ``lark`` package's own loader, with the extensions of `text`.

In: text. Out: rules and lexemes in a ``_core.GrammarBuilder``. Cost: Lark's loader, then linear in its trees.

    text        the extensions are taken out of the text          parametric    rules with a parameter
    load        Lark's loader makes trees of it; its errors, at their places
    rules       trees of rules become nodes; templates, parameters, limits
    terminals   trees of terminals become lexemes
    extensions  placeholders in the trees become nodes
    attributes  the attributes ``[...]`` behind a rule's name become nodes

Terminals are lexemes: each takes as much text as it can, of equal texts the literal wins over the pattern
(keywords over names), a higher priority wins over a lower one, and only terminals that may begin at a place
compete there, as in Lark's contextual lexer. Ignored text (``%ignore``) may stand after every terminal and at
the start. Rules are a context-free grammar, and every context-free grammar is accepted; Lark's own parsers
refuse grammars that are ambiguous or not LALR(1). A terminal with a lazy quantifier ends at its first match,
as in Python's ``re``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ... import _core
from ..._stack import roomy
from ...errors import GrammarError
from ...json_options import JsonStyle
from .. import source
from ..whole_tokens import WholeTokens
from .rules import Rules
from .text import Extension, scan

if TYPE_CHECKING:
    from ...vocabulary import Vocabulary

__all__ = ["Frontend", "build"]

ANY = JsonStyle()


@roomy
def build(
    text: str,
    vocabulary: Vocabulary,
    start: str = "start",
    lexer: str = "contextual",
    grammars: Mapping[str, Any] | None = None,
    import_paths: Sequence[str] = (),
    style: JsonStyle = ANY,
) -> tuple[Any, int]:
    """Returns the grammar's nodes and the number of the rule to start with.

    Args:
        grammars: by name the grammar that ``@name`` stands for: the text of a Lark grammar, or a JSON Schema.
        import_paths: directories in which ``%import`` looks for grammars.
        style: how the JSON of schemas in the grammar is written.

    Raises:
        GrammarError: the text is no grammar; the error has line, column and the likely fix.
        MissingDependency: the ``lark`` package is not installed.
    """
    b = _core.GrammarBuilder()
    frontend = Frontend(b, vocabulary, lexer, grammars, import_paths, style=style)
    return b, frontend.grammar(text, start)


class Frontend:
    """The builder of one grammar. Each nested ``%lark`` has a `Rules` of its own in the same builder."""

    def __init__(
        self,
        b: _core.GrammarBuilder,
        vocabulary: Vocabulary,
        lexer: str = "contextual",
        grammars: Mapping[str, Any] | None = None,
        import_paths: Sequence[str] = (),
        *,
        style: JsonStyle = ANY,
    ) -> None:
        self.b = b
        self.vocabulary = vocabulary
        self.tokens: WholeTokens = WholeTokens(b, vocabulary)
        self.lexer = lexer
        self.grammars: Mapping[str, Any] = grammars or {}
        self.import_paths = import_paths
        self.style: JsonStyle = style
        self.named: dict[str, int] = {}  # name of another grammar -> its rule
        self.open: list[str] = []  # the names of grammars that are being read
        self.depth: int = 0

    def other(self, name: str, use: Extension) -> int:
        """Returns the node of the grammar ``@name``."""
        if name not in self.grammars:
            hint = source.meant(name, self.grammars) or "; hand it over in `grammars`"
            use.fail(f"there is no grammar '{name}'{hint}")
        given = self.grammars[name]
        if not isinstance(given, str):
            try:
                return self.schema(json.dumps(given))
            except (TypeError, ValueError):
                use.fail(f"the grammar '{name}' is neither a text nor a JSON Schema")
        if name in self.open:
            chain = " -> ".join([*self.open[self.open.index(name) :], name])
            use.fail(f"grammars refer to each other in a circle: {chain}")
        if name not in self.named:
            self.open.append(name)
            self.named[name] = self.grammar(given, "start")
            self.open.pop()
        return self.b.call(self.named[name])

    def schema(self, text: str) -> int:
        """Returns the node of a JSON Schema."""
        return source.json_node(self.b, self.style, text)

    def grammar(self, text: str, start: str) -> int:
        self.depth += 1
        if self.depth > 20:
            raise GrammarError("grammars nest too deeply")
        if (zero := text.find("\0")) >= 0:  # Lark reads literals by Python's rules, which forbid this byte.
            source.fail(r"a zero byte; write \x00", text, zero)
        scanned = scan(text)
        try:
            return Rules(self, scanned).define(scanned.spelled.get(start, start))
        except RecursionError:
            raise GrammarError("the grammar nests too deeply") from None
        except Exception as error:
            if not type(error).__module__.startswith("lark."):
                raise
            # Lark evaluates a literal at its first use. Python may be unable to read it.
            reason = error.args[-1] if error.args else error
            raise GrammarError(f"{str(reason).splitlines()[0]}", text=text) from None
        finally:
            self.depth -= 1
