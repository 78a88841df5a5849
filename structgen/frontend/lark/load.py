"""Calls Lark's own loader, which turns the text without extensions into trees. Its errors become
GrammarErrors.

In: the grammar that `text.scan` read, and the directories for imports. Out: Lark's ``Grammar``, which has the
trees. Cost: one run of Lark's LALR parser, which is most of the work before the core.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ..._extras import missing
from ...errors import GrammarError
from .. import source
from .text import PLACEHOLDER, Scanned, scan


class _NotFound(Exception):
    """The path of a grammar that is not found."""


class _Imports:
    """Reads the grammars that a text imports: a loader for Lark's `import_paths`.

    A grammar may come from a stranger. So only files in the given directories, beside a file found there,
    or in Lark itself are opened. The working directory is not searched.

    Attributes:
        reading: the texts that are being parsed, the current one last.
    """

    def __init__(self, scanned: Scanned, paths: Sequence[str]) -> None:
        self.reading: list[Scanned] = [scanned]
        self._paths = paths
        self._entered: set[str] = set()  # directories of files that were imported

    def __call__(self, base: Any, path: str) -> Any:
        from lark.load_grammar import stdlib_loader

        for directory in [*([base] if base in self._entered else []), *self._paths]:
            found = os.path.join(directory, path)
            try:
                with open(found, encoding="utf-8") as file:
                    text = file.read()
            except OSError:
                continue
            child = scan(text, self.reading[0], found)
            if child.options:
                what = f"options stand in the grammar that imports: {', '.join(child.options)}"
                raise GrammarError(f"{found}: {what}")
            self._entered.add(os.path.split(found)[0])
            self.reading.append(child)
            return found, child.text
        try:
            return stdlib_loader(base, path)
        except OSError:
            raise _NotFound(path) from None


@functools.cache
def _loader() -> Any:
    """Returns a subclass of Lark's loader whose errors name their place.

    Imported files are read by Lark's own class.
    """
    from lark.load_grammar import GrammarBuilder

    class Loader(GrammarBuilder):
        def __init__(self, scanned: Scanned, imports: _Imports) -> None:
            super().__init__(import_paths=[imports])
            self.scanned = scanned
            self.at: str | None = None  # the name whose definition, import or parameter is being read

        def _define(self, name: str, is_term: bool, *given: Any, override: bool = False) -> None:
            if name in self._definitions and not override:
                at = where(self.scanned.original, name, definition=2)
                self.scanned.fail(f"'{name}' is defined twice", at)
            self.at = name
            super()._define(name, is_term, *given, override=override)  # type: ignore[no-untyped-call]
            self.at = None

        def _extend(self, name: str, *given: Any) -> None:
            self.at = name
            super()._extend(name, *given)  # type: ignore[no-untyped-call]
            self.at = None

        def do_import(self, path: Any, base: Any, aliases: dict[str, str], *given: Any) -> None:
            self.at = next((name for name in aliases.values() if name in self._definitions), None)
            super().do_import(path, base, aliases, *given)
            self.at = None

        def validate(self) -> None:
            _check_names(self, self.scanned)
            self.at = next(_unsafe_parameters(self._definitions), None)
            super().validate()
            self.at = None

    return Loader


def load(scanned: Scanned, paths: Sequence[str]) -> Any:
    """Returns Lark's Grammar, which has the definitions as trees. Each error of Lark becomes a GrammarError
    that names the place in the text."""
    try:
        from lark.exceptions import GrammarError as LarkGrammarError
        from lark.exceptions import UnexpectedInput
    except ImportError as error:
        raise missing(error, "Lark grammars") from None

    imports = _Imports(scanned, paths)
    loader = _loader()(scanned, imports)
    try:
        loader.load_grammar(scanned.text, "")
        return loader.build()
    except UnexpectedInput as error:
        _unexpected(error, "", imports.reading[-1])
    except (LarkGrammarError, AssertionError, TypeError) as error:
        message = str(error) if isinstance(error, LarkGrammarError) else ""
        causes = _causes(error)
        if met := [cause for cause in causes if isinstance(cause, UnexpectedInput)]:
            _unexpected(met[-1], message, imports.reading[-1])
        if isinstance(error, TypeError):
            raise
        _refused(str(error), causes, loader, scanned)
    except _NotFound as error:
        name = ".".join(Path(str(error)).with_suffix("").parts)
        hint = "; name its directory in `import_paths` (else only the grammars of Lark itself are found)"
        message = f"cannot import '{name}': no such grammar{'' if paths else hint}"
        scanned.fail(message, where(scanned.original, name))
    except (UnicodeDecodeError, OSError) as error:
        raise GrammarError(f"cannot import a grammar: {error}") from None
    except RecursionError:
        raise GrammarError("the grammar nests too deeply") from None


def _refused(message: str, causes: list[BaseException], loader: Any, scanned: Scanned) -> NoReturn:
    """Raises the error for a grammar that Lark read and refuses. The error names the cause, or has Lark's
    message."""
    if causes and isinstance(causes[0], KeyError):
        _undefined(str(causes[0].args[0]), loader, scanned)
    _check_names(loader, scanned)
    _check_terminals(loader, scanned)
    head = PLACEHOLDER.sub("...", message.strip()).split("\n")[0]
    head = head[:1].lower() + head[1:] or "Lark cannot read this grammar"
    if loader.at is None:
        raise GrammarError(head, text=scanned.original) from None
    scanned.fail(head, where(scanned.original, loader.at))


def _causes(error: BaseException) -> list[BaseException]:
    """Returns the errors that led to this one, the last one first.

    Lark's loader compares a refused text with examples of mistakes. This comparison can itself fail: Lark 1.3
    raises a TypeError in a log message. The earliest error is the one to report.
    """
    found = []
    while (cause := error.__context__) is not None:
        found.append(cause)
        error = cause
    return found


def _unexpected(error: Any, message: str, scanned: Scanned) -> NoReturn:
    """Raises the error for a text that is no grammar. `message` is the loader's message, or ""."""
    at = scanned.place(max(0, error.pos_in_stream or 0))
    found = scanned.original[at : at + 1]
    what = f"unexpected {found!r}" if found.strip() else "the rule ends too early"
    head = message.partition(", at line")[0].partition("\n")[0]
    if head and not head.startswith("Unexpected"):
        what = head[:1].lower() + head[1:]
    scanned.fail(what, at)


def _undefined(name: str, loader: Any, scanned: Scanned) -> NoReturn:
    kind = "terminal" if name.lstrip("_")[:1].isupper() else "rule"
    hint = source.meant(name, loader._definitions)
    scanned.fail(f"{kind} '{name}' is not defined{hint}", where(scanned.original, name))


def _check_names(loader: Any, scanned: Scanned) -> None:
    """Refuses undefined names, and templates with a wrong number of arguments."""
    from lark.load_grammar import _find_used_symbols

    text, known = scanned.original, loader._definitions
    for definition in known.values():
        if definition.is_term or definition.tree is None:  # Names in terminals are resolved already.
            continue
        for use in definition.tree.find_data("template_usage"):
            name, given = use.children[0].name, len(use.children) - 1
            if name not in known or name in definition.params:
                continue
            if (expected := len(known[name].params)) != given:
                scanned.fail(miscounted(name, expected, given), where(text, name))
        used = _find_used_symbols(definition.tree)  # type: ignore[no-untyped-call]
        # `used - known.keys()` would iterate over all known names for every rule.
        if unknown := {name for name in used if name not in known} - set(definition.params):
            _undefined(min(unknown, key=lambda name: (where(text, name), name)), loader, scanned)
    for name in loader._ignore_names:
        if name not in known:
            _undefined(name, loader, scanned)


def _unsafe_parameters(known: dict[str, Any]) -> Iterator[str]:
    """Returns the templates with a parameter that has the name of a rule, or with two parameters of one
    name."""
    for name, definition in known.items():
        for at, parameter in enumerate(definition.params):
            if parameter in known:
                yield parameter
            elif parameter in definition.params[:at]:
                yield name


def _check_terminals(loader: Any, scanned: Scanned) -> None:
    """Fails if a terminal is declared alone, contains a rule, or contains itself."""
    from lark.grammar import NonTerminal

    text = scanned.original
    for name, definition in loader._definitions.items():
        if not definition.is_term:
            continue
        if definition.tree is None:
            what = f"terminal '{name}' is declared and never defined; %declare has no meaning here"
            scanned.fail(what, where(text, name))
        parts = list(definition.tree.iter_subtrees())
        for part in parts:
            for kid in part.children:
                if isinstance(kid, NonTerminal):
                    scanned.fail(
                        f"terminal '{name}' cannot contain the rule '{kid.name}'", where(text, kid.name)
                    )
        if any(kid is definition.tree for part in parts for kid in part.children):
            message = f"terminal '{name}' contains itself; only rules may"
            scanned.fail(message, where(text, name, definition=1))


def miscounted(name: str, expected: int, given: int) -> str:
    kind = f"takes {expected} argument{'' if expected == 1 else 's'}" if expected else "is no template"
    return f"'{name}' {kind} and is given {given or 'none'}"


def where(text: str, name: str, definition: int = 0) -> int:
    """Returns the first use of a name outside literals and comments, or its n-th definition."""
    pattern = re.compile(
        r'//[^\n]*|#[^\n]*|"(?:\\.|[^"\\\n])*"|/(?!/)(?:[^/\\\n]|\\[/\\]?+)*+/|\b' + re.escape(name) + r"\b"
    )
    seen = 0
    for match in pattern.finditer(text):
        if match[0] != name:
            continue
        if not definition:
            return match.start()
        if re.match(r"(\.[+\-]?\d+)?\s*(\{[^}\n]*\})?\s*:", text[match.end() :]):
            seen += 1
            if seen == definition:
                return match.start()
    return 0
