"""Compiles schemas, patterns, choices and written grammars into grammars over one vocabulary.

In: a schema (dict, bool, JSON text, Python type), a pattern, texts. Out: ``CompiledGrammar``.
Cost: one pass over the schema's text. States and masks are made when a text reaches them. A constraint that
was compiled before comes from a cache.

The problem. Many dialects lead to one engine. A constraint is given in several forms (a schema is a text, a
dict or a Python type), and a host compiles the same one again and again.

The idea. A method of `Compiler` does three things. It turns its argument into a text or a
`_core.GrammarBuilder`; for most dialects a reader in ``frontend/`` does this, and is imported only then.
It asks the core for a grammar. It notes its own call as the grammar's *recipe*, and keeps the grammar under a
key made of the text and all options:

    a = compiler.json_schema('{"type":"integer"}')
    compiler.json_schema('{"type":"integer"}') is a                       True
    compiler.json_schema('{"type":"integer"}', numbers="plain") is a      False
    a._recipe    (Compiler, "json_schema", ('{"type":"integer"}',), {"on_limit": "error"})

A recipe serves three callers: pickle, `save`, and a grammar whose automata grew too large and that is made
anew. `json_schema` has a short way for ASCII text with default options: the text itself is the key.

Invariants.
- A kept grammar depends on nothing but its key. A grammar made with a registry, a Python type, other grammars
  or import paths is not kept. Neither are choices, spans and automata.
- Two threads that compile the same text get the same grammar: the first one that is kept.
- The core decides which grammars stay (csrc/mask/cache_policy.h). It calls `_forget` for each grammar that
  goes. A matcher keeps its grammar alive.
- An error names a place: line and column in JSON, the character in a pattern.

Rejected. A separate argument for every option of JSON: the arguments stood in six signatures, and a new
option touched 25 files. `JsonOptions` is one value. Context managers that add places to errors: they took 2
of the 29 microseconds of a warm compile.
"""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from . import _core, _metaschemas
from ._checks import one_of
from ._fork import renew_in_children
from ._stack import roomy
from .errors import GrammarError, SchemaTooComplex, StructgenError, TerminalsOnly, VocabularyError
from .frontend.source import sound, text_of
from .grammar import CompiledGrammar
from .json_options import JsonArguments, JsonOptions, JsonStyle, StyleArguments
from .limits import Limits, OnLimit, is_subset

if TYPE_CHECKING:
    from .frontend.tools import Strictness
    from .reasoning import Reasoning
    from .templates import Template
    from .vocabulary import Vocabulary

_DRAFTS = {
    "4": 4, "draft4": 4, "draft-04": 4,
    "6": 6, "draft6": 6, "draft-06": 6,
    "7": 7, "draft7": 7, "draft-07": 7,
    "2019-09": 2019, "2019": 2019, "draft2019-09": 2019,
    "2020-12": 2020, "2020": 2020, "draft2020-12": 2020,
}  # fmt: skip
_Recipe = tuple[str, tuple[Any, ...], dict[str, Any]]  # a method of Compiler, its arguments, its options
_DEFAULT = JsonOptions()
_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))
# The values of "type" that OpenAI's objects with a schema have.
_OPENAI = ("json_schema", "json_object", "function")
_LIMIT: tuple[OnLimit, OnLimit] = ("error", "subset")


class Compiler:
    """Compiles grammars for one vocabulary. Thread-safe.

    Args:
        vocabulary: the tokens of the model.
        cache: False, for tests, computes every mask from scratch, by another algorithm.
        cache_bytes: memory for automata, states and masks, in bytes; None: ``limits.memory``.
        threads: default for batch calls; 0 chooses by size.
        limits: what one compile, and one call of a matcher, may take.
        on_limit: what happens where the limits do not suffice to decide whether a text can be completed.
            "error" raises, at the compile or in the middle of a text. "subset" leaves that part of the
            language out: masks then allow fewer tokens than the grammar does, never one too many, and always
            at least one; ``Matcher.mask_exact`` is False then. Each method that compiles takes its own
            `on_limit`.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        cache: bool = True,
        cache_bytes: int | None = None,
        threads: int = 0,
        *,
        limits: Limits | None = None,
        on_limit: OnLimit = "error",
    ) -> None:
        self.limits: Limits = Limits() if limits is None else limits
        if not isinstance(self.limits, Limits):
            raise TypeError(f"limits is a structgen.Limits, not {limits!r:.60}")
        is_subset(on_limit)
        self.on_limit: OnLimit = on_limit
        cache_bytes = self.limits.memory if cache_bytes is None else cache_bytes
        if cache_bytes < 1:
            raise ValueError("cache_bytes must be positive")
        if not hasattr(vocabulary, "_core") or not hasattr(vocabulary, "eos_token_ids"):
            raise TypeError(
                f"vocabulary is a structgen.Vocabulary, not {vocabulary!r:.60}; Vocabulary.from_huggingface "
                "takes tokenizers and names of models, Vocabulary.from_file files"
            )
        self.vocabulary: Vocabulary = vocabulary
        self.threads: int = threads
        self._cache = cache
        self._core = _core.Compiler(vocabulary._core, cache, cache_bytes, *self.limits._units())
        self._grammars: dict[Any, CompiledGrammar] = {}
        self._keys: dict[_core.Grammar, Any] = {}
        self._lock = threading.Lock()
        renew_in_children(self)
        self._cache_bytes = cache_bytes

    def compile(self, kind: str, text: Any, **options: Any) -> CompiledGrammar:
        """Returns a grammar from a kind's name and a text, as hosts keep the constraint of a request.

        Args:
            kind: "json_schema" (or "json"), "json_object" (any object; the text is ""), "regex", "choice" (a
                list or its JSON), "gbnf" (or "ebnf"), "lark", "grammar" (either dialect), "structural_tag",
                "response_format" (OpenAI's object), "tools" (OpenAI's list).
            text: the constraint; JSON may be given parsed.
            options: those of `json_schema`; kinds that contain no schema take and ignore them. "tools" has
                `tool_choice`, `tool_style`, `parallel_tool_calls` and `tool_strictness`, too. By default
                numbers and strings are plain and gaps at most one blank: programs read a server's answers.

        Raises:
            GrammarError: as the method that compiles the kind. ValueError: an unknown kind.

        `json_schema` has other defaults. Both give the same grammar if `whitespace`, `numbers` and `strings`
        are given: `compile("json_schema", schema, whitespace="compact")` has plain numbers and strings.
        """
        from .kinds import compile_kind

        return compile_kind(self, kind, text, options)

    def json_schema(
        self,
        schema: Any,
        *,
        on_limit: OnLimit | None = None,
        **options: Unpack[JsonArguments],
    ) -> CompiledGrammar:
        """Compiles a JSON Schema.

        Args:
            schema: dict, bool, JSON text, or a Python type (through pydantic); OpenAI's ``response_format``
                or a list of ``tools``, which stands for one call as ``{"name": ..., "arguments": ...}``.
            on_limit: "error" or "subset", as in `Compiler`; None: the compiler's.
            options: `whitespace`, `property_order`, `numbers`, `strings`, `formats`, `draft`, `registry`,
                `extra_keys` and `digits`; `structgen.JsonOptions` says what each means.

        Raises:
            GrammarError: not JSON, a broken pattern, a reference loop.
            UnsupportedSchema: a keyword that is not enforced, or an unknown reference.
            SchemaTooComplex: the schema exceeds a budget.
            UnsatisfiableSchema: no value satisfies it.
        """
        subset = self._subset(on_limit)
        asked = JsonOptions.of(options) if options else _DEFAULT
        usual = _usual(schema) if asked is _DEFAULT or asked == _DEFAULT else None
        if usual is not None:
            short = (usual, "subset") if subset else usual
            known = self._known(short)
            if known is not None:
                return known
            try:
                plain = self._core.json_schema_text(usual, subset)
            except GrammarError as error:
                _place(error, usual)
                raise
            if plain is not None:
                grammar = CompiledGrammar(plain, self.vocabulary, schema, None)
                grammar._options = (usual, asked)
                self._made(grammar, "json_schema", (usual,), {}, subset)
                return self._remember(short, grammar)
        number = _draft_number(asked.draft)
        closes, digits = asked.extra_keys != "allow", asked.digits
        written = "any"
        parse: Callable[[str | bytes], Any] | None = None
        if isinstance(schema, (str, bytes)):
            text = sound(_decoded(schema) if isinstance(schema, bytes) else schema)
        elif isinstance(schema, bool):
            text = _to_text(schema)
        elif isinstance(schema, dict):
            if schema.get("type") in _OPENAI:
                from .frontend.python_types import unwrap_openai

                document, parse = unwrap_openai(schema, closes, digits)
                text, written = _to_text(document), "plain"
            else:
                text = _to_text(schema)
        else:
            from .frontend.python_types import schema_of

            document, parse = schema_of(schema, closes, digits)
            text, written = _to_text(document), "plain"
        if asked.extra_keys == "forbid":
            from .frontend.closing import closed_text

            text = closed_text(text, number)
        said: dict[str, Any] = {"numbers": asked.numbers or written, "strings": asked.strings or written}
        # `text` has both options by now: `closed_text` or `schema_of` wrote them into the schema.
        if parse is None:
            said |= {"extra_keys": None, "digits": None}
        asked = replace(asked, **said)
        keeps = asked.registry is None and parse is None
        key = ("json", text, asked, number, subset) if keeps else None
        if keeps and (known := self._known(key)) is not None:
            return known
        documents = None if asked.registry is None else _documents(asked.registry)
        try:
            core = self._core.json_schema(
                text, documents, _metaschemas.documents, *asked.core(), number, subset
            )
        except GrammarError as error:
            _place(error, text)
            raise
        grammar = CompiledGrammar(core, self.vocabulary, schema, parse)
        grammar._options = (text, asked)
        self._made(grammar, "json_schema", (schema if parse else text,), asked.arguments(), subset)
        return self._remember(key, grammar) if keeps else grammar

    def regex(self, pattern: str, *, on_limit: OnLimit | None = None) -> CompiledGrammar:
        """Texts that match the whole pattern; Python's ``re`` syntax without back-references.

        ``\\d``, ``\\w``, ``\\s`` and ``\\b`` are ASCII; ``(?u)`` in front takes every script, as ``re`` does.
        Named groups, ``(?P<name>...)``, are the grammar's captures: ``Matcher.captures()``.
        """
        subset = self._subset(on_limit)
        key = ("regex", text_of(pattern, "a pattern"), subset)

        def made() -> CompiledGrammar:
            try:
                core = self._core.regex(pattern, subset)
            except GrammarError as error:
                if error.offset is not None and error.line is None:  # a place in the pattern, not in a file
                    before = pattern.encode()[: error.offset].decode("utf-8", "ignore")
                    error.message += f" (character {len(before) + 1} of the pattern)"
                raise
            return self._of_text(core, pattern, ("regex", (pattern,), {}), subset)

        return self._kept(key, made)

    # Recipe, dialect 2: a method.
    def gbnf(self, text: str, *, root: str = "root", on_limit: OnLimit | None = None) -> CompiledGrammar:
        """Returns a grammar in llama.cpp's GBNF or xgrammar's EBNF; ``root`` names the rule to start with.

        Raises:
            GrammarError: with line, column and the likely fix.
        """
        subset = self._subset(on_limit)
        key = ("gbnf", text_of(text, "a grammar"), root, subset)

        def made() -> CompiledGrammar:
            from .frontend import gbnf

            built = gbnf.build(text, self.vocabulary, root)
            return self._built(*built, text, subset, ("gbnf", (text,), {"root": root}))

        return self._kept(key, made)

    def lark(
        self,
        text: str,
        *,
        start: str = "start",
        lexer: Literal["contextual", "dynamic", "scannerless"] = "contextual",
        grammars: Mapping[str, Any] | None = None,
        import_paths: Sequence[str | os.PathLike[str]] = (),
        on_limit: OnLimit | None = None,
        **options: Unpack[StyleArguments],
    ) -> CompiledGrammar:
        """Returns a Lark grammar, with the extensions that llguidance's users know.

        Args:
            text: the grammar; ``start`` names the rule to start with.
            lexer: how far a terminal reaches. "contextual": as far as any terminal that may begin there, and
                keywords win over names, as in Lark's LALR parser. "dynamic": as far as it can itself, as in
                Lark's Earley parser. "scannerless": any text that it matches.
            grammars: what ``@name`` stands for, by name: the text of a Lark grammar, or a JSON Schema.
            import_paths: directories in which ``%import`` looks for grammars, before Lark's own; a relative
                import (``%import .other``) looks in the directory of the file that it stands in first.
                Without any no file is read.
            options: how the JSON of schemas in the grammar is written (`structgen.JsonStyle`).

        Raises:
            GrammarError: with line, column and the likely fix.
            MissingDependency: the ``lark`` package is not installed.
        """
        one_of("lexer", lexer, ("contextual", "dynamic", "scannerless"))
        style = JsonStyle.of(options)
        subset = self._subset(on_limit)
        key = ("lark", text_of(text, "a grammar"), start, lexer, style, subset)
        alone = not grammars and not import_paths  # Otherwise the same text may mean another grammar later.

        def made() -> CompiledGrammar:
            from .frontend import lark

            paths = [os.fspath(path) for path in import_paths]
            built = lark.build(text, self.vocabulary, start, lexer, grammars, paths, style)
            recipe = {"start": start, "lexer": lexer, "grammars": grammars, "import_paths": paths}
            try:
                return self._built(*built, text, subset, ("lark", (text,), recipe | style.arguments()))
            except GrammarError as error:
                raise error.located(text) from None

        return self._kept(key if alone else None, made)

    def deserialize(self, data: bytes, *, on_limit: OnLimit | None = None) -> CompiledGrammar:
        """Returns the grammar that `CompiledGrammar.serialize` wrote; no reader of its dialect is needed.

        Captures and attributes are kept. The text of the grammar is not, and neither is the Python type that
        `parse` would return: `parse` gives the text.

        Raises:
            GrammarError: other bytes, damaged ones, or those of another form.
            VocabularyError: the grammar names tokens by their ids, and these ids have other bytes here.
        """
        if not isinstance(data, bytes):
            raise TypeError(f"deserialize takes the bytes that serialize() gave, not {data!r:.60}")
        subset = self._subset(on_limit)
        core = self._core.read_grammar(data, subset)
        grammar = self._of_text(core, None, ("deserialize", (data,), {}), subset)
        grammar._written = data
        return grammar

    def grammar(self, text: str, *, on_limit: OnLimit | None = None) -> CompiledGrammar:
        """Returns a grammar in either dialect: GBNF if ``::=`` stands outside literals and comments, else
        Lark."""
        from .frontend.source import is_ebnf

        text_of(text, "a grammar")
        return self.gbnf(text, on_limit=on_limit) if is_ebnf(text) else self.lark(text, on_limit=on_limit)

    def _template(self, template: Template, *, on_limit: OnLimit | None = None) -> CompiledGrammar:
        return template.compile(self)  # This method exists because recipes and pickles name a method.

    def structural_tag(
        self,
        spec: Any,
        *,
        on_limit: OnLimit | None = None,
        **options: Unpack[StyleArguments],
    ) -> CompiledGrammar:
        """Compiles a structural tag: free text that contains tags, and the content of a tag is constrained.

        Args:
            spec: what xgrammar and vLLM call a structural tag, as a dict, as JSON text, or their own class.
            options: how the JSON of schemas in the tags is written (`structgen.JsonStyle`). A schema's own
                `max_whitespace_cnt` and `any_order` come first. Programs read the values, so numbers and
                strings are plain by default. Strings are "plain" only where a schema has neither `excludes`
                nor a style of elements: escapes write there what a string cannot contain as it is.

        Raises:
            GrammarError: with the path to the part at fault, such as ``#/format/tags/0``.
        """
        from .frontend import structural_tag, tool_lists

        style = JsonStyle.of(options, **structural_tag.PLAIN.arguments())
        subset = self._subset(on_limit)
        same = tool_lists.identity(spec)
        key = None if same is None else ("structural_tag", same, style, subset)
        return self._kept(key, lambda: self._tagged(spec, style, subset))

    def _tagged(self, spec: Any, style: JsonStyle, subset: bool) -> CompiledGrammar:
        """Compiles a structural tag without the cache."""
        from .frontend import structural_tag

        recipe: _Recipe = ("structural_tag", (spec,), style.arguments())

        def compiled(part: Any) -> CompiledGrammar:
            built = structural_tag.build(part, self.vocabulary, style)
            return self._built(*built, part, subset, recipe)

        try:
            return compiled(spec)
        except GrammarError as error:
            structural_tag.name_part(error, spec, compiled)
            raise

    def tools(
        self,
        tools: Any,
        tool_choice: Any = "auto",
        *,
        style: str = "hermes",
        parallel: bool = True,
        strictness: Strictness = "parameter",
        reasoning: Reasoning | str | bool | None = None,
        extra_keys: Literal["allow", "forbid"] | None = None,
        digits: int | None = None,
        on_limit: OnLimit | None = None,
        **options: Unpack[StyleArguments],
    ) -> CompiledGrammar:
        """Text in which tools are called as a family of models writes calls.

        Args:
            tools: OpenAI's list of functions with their parameters' schemas, functions of Python, or what an
                MCP client lists: the result of ``tools/list``, its tools, or the JSON of either. The schemas
                are taken as they are. OpenAI's custom tools are called with a text, ``{"input": ...}``.
            tool_choice: "auto", "none", "required", or a function's name or object.
            style: "hermes" (also "qwen", "ernie", "granite4", "trinity"), "llama3", "mistral", "mistral-v3",
                "mistral-v11", "deepseek-v3", "deepseek-v3.1", "deepseek-v3.2", "deepseek-v4",
                "deepseek-v4.1", "qwen3-coder" (also "nemotron-v3", "step3.5", "step5", "granite-4.2",
                "nanbeige"), "mimo", "minimax", "minimax-m3", "glm" (4.5, also "poolside"), "glm-4.7" (also
                "ling3", "spark2.5"), "kimi-k2", "kimi-k3", "k2-horizon", "seed-oss", "step3", "granite"
                (3.0), "granite-3.1", "granite-20b", "phi4", "nemotron", "functionary" (3.1), "command-r"
                (also "cohere"), "cohere-xml", "harmony" (also "gpt-oss"), "gemma-4", "functiongemma",
                "exaone", "hunyuan" (A13B, also "jamba"), "hy-v3", "hy-v4", "internlm", "apertus", "longcat",
                "xlam", "inkling", "plamo3", "dots", "minicpm5", "iquest-q1", "gigachat-3", "gigachat-3.5",
                "pythonic" (also "llama4"; ``[f(x="a", y=True)]``), "lfm2", "olmo3", "llama4-json", "json" or
                "json-compact" (the same without blanks). `parse_tool_calls` reads them back.
            parallel: whether several calls may be made. Some styles have one call at most, because the hosts
                that read them take no more ("internlm", "gigachat-3").
            strictness: how much of a call is constrained, as vLLM's ``--tool-strict-level``. "parameter":
                arguments satisfy their function's schema. "function": a call has its form and a known name.
                The arguments of tools with ``"strict": true`` and of functions of Python satisfy the schema;
                other arguments are any object. "auto": as "function", but any text is allowed if
                `tool_choice` is "auto" and no tool is strict.
            reasoning: how the model thinks before it calls: a `Reasoning`, or the name of a family
                (`Reasoning.of`). Text around calls then does not contain its start mark. True stands for the
                marks of the style, and the model has to think; it is deprecated.
            extra_keys, digits: as in `JsonOptions`. By default a call has the arguments that its function
                lists.
            options: how arguments are written, as in `structural_tag`.
        """
        from .frontend import structural_tag, tool_lists
        from .frontend import tools as front
        from .reasoning import Reasoning, reasoning_of

        JsonOptions(extra_keys=extra_keys, digits=digits)  # The constructor checks both values.
        if reasoning is True:
            warnings.warn(
                "reasoning=True is deprecated: give reasoning=Reasoning.of(...) or the name of a family",
                DeprecationWarning,
                stacklevel=2,
            )
            row = front.row_of(style)
            reasoning = Reasoning.of("qwen3" if row is None else row.family, required=True)
        thinks = reasoning_of(reasoning)
        never = [] if thinks is None else [thinks.start]
        given = tool_lists.listed(tools)
        same = tool_lists.identity(given, tool_choice, style, parallel, extra_keys, digits, strictness)
        arguments = JsonStyle.of(options, **structural_tag.PLAIN.arguments())
        subset = self._subset(on_limit)

        def made() -> CompiledGrammar:
            spec = front.structural_tag(
                given, tool_choice, style, parallel, never, extra_keys, digits, strictness
            )
            grammar = self._tagged(spec, arguments, subset)
            return grammar if thinks is None else self.with_reasoning(grammar, thinks, on_limit=on_limit)

        return self._kept(None if same is None else ("tools", same, thinks, arguments, subset), made)

    def with_reasoning(
        self,
        grammar: CompiledGrammar | None,
        reasoning: Reasoning | str,
        *,
        on_limit: OnLimit | None = None,
    ) -> CompiledGrammar:
        """Returns the grammar of texts that are thoughts and then an answer.

        It is a grammar like any other: masks, budgets, drafts, rollback and captures work across the border
        of thoughts and answer. `parse` reads the answer alone. Under `max_tokens` masks keep room for the end
        mark and a shortest answer.

        Args:
            grammar: the grammar of the answers, compiled by this compiler; None: any text.
            reasoning: the marks and the conditions on thoughts, or the name of a family (`Reasoning.of`).

        Raises:
            GrammarError: the border would be ambiguous, because an answer may begin with the start mark and
                thoughts may be left out; the grammar is one of middles behind a prefix, or of rules with a
                condition; `max_tokens` of the reasoning leaves no thoughts that tokens can write.
            ValueError: an unknown family. VocabularyError: the grammar is of another vocabulary.
        """
        from .reasoning import before_middles, compose, reasoning_of

        thinks = reasoning_of(reasoning)
        if thinks is None:
            raise TypeError(
                f"reasoning= takes a structgen.Reasoning or the name of a family, not {reasoning!r:.60}"
            )
        if grammar is not None and not isinstance(grammar, CompiledGrammar):
            raise TypeError(f"grammar is a CompiledGrammar or None, not {grammar!r:.60}")
        if grammar is not None and grammar.vocabulary is not self.vocabulary:
            raise VocabularyError(
                "the grammar was compiled for another vocabulary: compile it with this compiler"
            )
        subset = self._subset(on_limit)
        key = ("reasoning", grammar, thinks, subset)
        if (known := self._known(key)) is not None:
            return known
        recipe: _Recipe = ("with_reasoning", (grammar, thinks), {})
        if grammar is not None and grammar.around is not None:
            whole, suffix, inner = before_middles(grammar.around, thinks, self.vocabulary)
            both = self.with_reasoning(whole, inner, on_limit=on_limit)
            made = CompiledGrammar(both._fresh().infill(b"", suffix), self.vocabulary)
            self._made(made, *recipe, subset)
            made._reasoned = (grammar, both.reasoning or inner)
            made._parse = made._answer_value
            return made
        builder, rule, effective = compose(self, grammar, thinks)
        try:
            made = self._built(builder, rule, None if grammar is None else grammar.source, subset, recipe)
        except TerminalsOnly as error:
            if grammar is None or grammar._condition is None:
                raise
            raise GrammarError(
                "reasoning= cannot stand beside a condition on a grammar of rules: give a schema, a pattern "
                "or a choice"
            ) from error
        made._reasoned = (grammar, effective)
        made._parse = made._answer_value
        kept = grammar is None or grammar._core in self._keys
        return self._remember(key, made) if kept else made

    def substring_of(
        self, text: str, unit: Literal["words", "chars"] = "words", *, on_limit: OnLimit | None = None
    ) -> CompiledGrammar:
        """Returns the spans of a text: one or more neighbouring words (with the blanks between them) or
        characters."""
        from .frontend.source import units_of

        if not text_of(text, "the text of spans"):
            raise GrammarError("the text is empty, so it has no spans")
        builder = _core.GrammarBuilder()
        rule = builder.rule("span")
        builder.define(rule, builder.substring(units_of(text, unit), 1))
        return self._built(builder, rule, text, self._subset(on_limit), ("substring_of", (text, unit), {}))

    def automaton(
        self,
        fsm: Any = None,
        *,
        initial: Any = 0,
        finals: Iterable[Any] = (),
        transitions: Mapping[Any, Mapping[str | None, Any]] | None = None,
        on_limit: OnLimit | None = None,
    ) -> CompiledGrammar:
        """Returns the texts that a deterministic automaton accepts.

        Args:
            fsm: an `interegular.fsm.FSM`; or, instead of it,
            initial: the state to begin in. finals: the states in which a text may end.
            transitions: for each state a dict of characters to the next state. A key of several characters
                stands for each of them. The key None stands for any character that no other key has.

        Raises:
            TypeError: the arguments give no automaton. GrammarError: no text leads to a final state, a state
                does not exist, or one character has two transitions.
        """
        from .frontend import automata

        if fsm is not None and transitions is not None:
            raise ValueError("give an FSM or transitions, not both")
        if fsm is None and transitions is None:
            raise TypeError("automaton takes an interegular FSM, or initial=, finals= and transitions=")
        if fsm is not None:
            initial, finals, transitions = automata.of_interegular(fsm)
        assert transitions is not None
        listed = list(finals) if isinstance(finals, Iterable) and not isinstance(finals, str) else finals
        copied = {"initial": initial, "finals": listed, "transitions": transitions}
        recipe: _Recipe = ("automaton", (), copied)
        built = automata.build(initial, listed, transitions)
        return self._built(*built, transitions, self._subset(on_limit), None if fsm is not None else recipe)

    def _built(
        self,
        builder: _core.GrammarBuilder,
        start: int,
        source: Any,
        subset: bool = False,
        recipe: _Recipe | None = None,
    ) -> CompiledGrammar:
        core = self._core.grammar(builder, start, subset)
        if recipe is None:
            grammar = CompiledGrammar(core, self.vocabulary, source, _as_text)
        else:
            grammar = self._of_text(core, source, recipe, subset)
        grammar._written = self._core.write_grammar(builder, start)
        return grammar

    def _of_text(self, core: _core.Grammar, source: Any, recipe: _Recipe, subset: bool) -> CompiledGrammar:
        """Returns a grammar whose values are its texts."""
        grammar = CompiledGrammar(core, self.vocabulary, source, _as_text)
        self._made(grammar, *recipe, subset)
        return grammar

    def _json_node(self, b: _core.GrammarBuilder, text: str, asked: JsonOptions) -> int:
        """Returns the node of a JSON Schema that `json_schema` compiled."""
        documents = [] if asked.registry is None else _documents(asked.registry)
        if asked.registry is None and "json-schema.org" in text:
            documents = _metaschemas.documents()
        return b.json(text, documents, *asked.core(), _draft_number(asked.draft))

    def _made(
        self,
        grammar: CompiledGrammar,
        method: str,
        given: tuple[Any, ...],
        options: dict[str, Any],
        subset: bool,
    ) -> None:
        """Notes the call that can make the grammar again, for pickles and for grammars that grew too
        large."""
        grammar._recipe = (Compiler, method, given, options | {"on_limit": _LIMIT[subset]})
        grammar._compiler = weakref.ref(self)

    def _set_limits(self, limits: Limits, grammar: CompiledGrammar) -> None:
        """Sets new limits for this compiler and one of its grammars; the limit of memory stays.

        Only for a compiler and a grammar that no other thread uses yet.
        """
        self._core.set_limits(grammar._core, *limits._units())
        self.limits = limits

    def _subset(self, on_limit: OnLimit | None) -> bool:
        return is_subset(self.on_limit if on_limit is None else on_limit)

    def choice(self, texts: Iterable[str], *, on_limit: OnLimit | None = None) -> CompiledGrammar:
        """Exactly one of the texts.

        Raises:
            TypeError: the argument is no list of texts. GrammarError: the list is empty.
        """
        listed = not isinstance(texts, str | bytes) and hasattr(texts, "__iter__")
        given = list(texts) if listed else []
        if not listed or not all(isinstance(text, str) for text in given):
            raise TypeError(f'a choice is made of a list of texts: ["yes", "no"], not {texts!r:.60}')
        options = [sound(text) for text in given]
        if not options:
            raise GrammarError("a choice needs at least one text")
        subset = self._subset(on_limit)
        return self._of_text(self._core.choice(options, subset), options, ("choice", (options,), {}), subset)

    def save(self, path: str | os.PathLike[str]) -> int:
        """Writes what `load` needs to begin warm in another process: the grammars that this compiler keeps
        (JSON Schemas, patterns, GBNF and Lark grammars, given as text), and the tokens of the texts that
        `CompiledGrammar.warm` read with them, at most 256 texts a grammar.

        Returns:
            How many grammars were written. Grammars made from a Python type, a registry or other files are
            left out.

        Costs the bytes of the schemas and about 7 bytes a token. The file appears whole or not at all.

        Raises:
            GrammarError: the file cannot be written.
        """
        from . import _saved_compiler

        with self._lock:
            grammars = list(self._grammars.values())
        return _saved_compiler.write(path, self.vocabulary, dict.fromkeys(grammars))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        vocabulary: Vocabulary,
        *,
        seconds: float | None = None,
        wait: bool = True,
        **options: Any,
    ) -> Compiler:
        """Returns a compiler with the grammars of a file that `save` wrote, and the masks of their texts
        made.

        The grammars are compiled again and the texts are read again, so this costs what compiling and
        `CompiledGrammar.warm` cost; no request waits for it. Compiling the same text in the same way then
        returns the grammar that is there.

        Args:
            path: the file. It need not be trusted: it contains texts and no masks, and all work is done under
                the limits given here.
            vocabulary: the vocabulary that the file was saved for.
            seconds: after so many seconds no further text is read; None reads them all. All grammars are
                compiled in any case, except those that exceed the limits.
            wait: False returns once the grammars are compiled. A thread reads the texts, and it stops when
                the main thread ends.
            options: arguments of `Compiler`.

        Raises:
            GrammarError: there is no such file, the file holds no saved compiler, has another version or is
                damaged (all of it is checked), or one of its texts does not compile.
            VocabularyError: the file was saved for another vocabulary.
        """
        from . import _saved_compiler

        end = None if seconds is None else time.monotonic() + seconds
        calls = _saved_compiler.read(path, vocabulary)
        compiler = cls(vocabulary, **options)
        found = []
        for number, call in enumerate(calls, 1):
            try:
                found.append((getattr(compiler, call.method)(call.text, **call.options), call.texts))
            except SchemaTooComplex:  # A later request for this schema gets the error.
                continue
            except (StructgenError, ValueError, TypeError) as error:
                raise GrammarError(f"{os.fspath(path)}: grammar {number} does not compile: {error}") from None
        if wait:
            _read_all(found, end)
        else:
            main = threading.main_thread()
            threading.Thread(
                target=_read_all, args=(found, end, lambda: not main.is_alive()), name="structgen warm"
            ).start()
        return compiler

    def __copy__(self) -> Compiler:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiler:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _compiler, (
            self.vocabulary, self._cache, self._cache_bytes, self.threads, self.limits, self.on_limit,
        )  # fmt: skip

    @property
    def byte_size(self) -> int:
        """Bytes of the automata, states and masks of all grammars that are alive, as last counted."""
        return self._core.byte_size

    def _known(self, key: Any) -> CompiledGrammar | None:
        if not self._cache:
            return None
        with self._lock:
            grammar = self._grammars.get(key)
            if grammar is not None and not self._core.found(grammar._core):
                self._forget(grammar._core)  # Matchers keep this grammar; the next compile makes another.
                return None
            return grammar

    def _kept(self, key: Any, make: Callable[[], CompiledGrammar]) -> CompiledGrammar:
        """Returns the grammar of a key, and compiles it if it is not kept yet. With None as the key, the
        grammar is not kept."""
        if key is None:
            return make()
        known = self._known(key)
        return self._remember(key, make()) if known is None else known

    def _remember(self, key: Any, grammar: CompiledGrammar) -> CompiledGrammar:
        if self._cache:
            with self._lock:
                if key in self._grammars:  # Another thread has compiled the same text meanwhile.
                    return self._grammars[key]
                self._grammars[key], self._keys[grammar._core] = grammar, key
                self._core.keep(grammar._core, self._forget)
        return grammar

    def _forget(self, core: _core.Grammar) -> None:
        """Called by the core when it drops a grammar (csrc/mask/cache_policy.h)."""
        del self._grammars[self._keys.pop(core)]


def _read_all(
    grammars: list[tuple[CompiledGrammar, list[list[int]]]],
    end: float | None,
    stop: Callable[[], bool] | None = None,
) -> None:
    for grammar, texts in grammars:
        grammar._read(texts, end, stop)


def _compiler(
    vocabulary: Vocabulary, cache: bool, cache_bytes: int, threads: int, limits: Limits, on_limit: OnLimit
) -> Compiler:
    return Compiler(vocabulary, cache, cache_bytes, threads, limits=limits, on_limit=on_limit)


def _decoded(schema: bytes) -> str:
    try:
        return schema.decode()
    except UnicodeDecodeError as error:
        raise GrammarError(f"the schema is not UTF-8: byte {error.start}") from None


def _as_text(text: str | bytes) -> str:
    return text.decode() if isinstance(text, bytes) else text


@roomy
def _usual(schema: Any) -> str | None:
    """Returns the text of a schema that the core can read unchanged; None if Python has to rewrite the schema
    first."""
    if type(schema) is str:
        return schema if schema.isascii() else None
    return _to_text(schema) if type(schema) is dict and schema.get("type") not in _OPENAI else None


def _to_text(schema: Any) -> str:
    try:
        return _ENCODER.encode(schema)
    except RecursionError:
        return _to_text_deep(schema)
    except (TypeError, ValueError) as e:
        raise GrammarError(f"the schema is not JSON: {e}") from None


def _to_text_deep(schema: Any) -> str:
    """json.dumps without recursion, for schemas nested beyond Python's stack."""
    out: list[str] = []
    todo: list[Any] = [schema]
    raw = object()
    while todo:
        item = todo.pop()
        if isinstance(item, tuple) and len(item) == 2 and item[0] is raw:
            out.append(item[1])
        elif isinstance(item, dict):
            parts: list[Any] = [(raw, "{")]
            for i, (k, v) in enumerate(item.items()):
                parts += [(raw, ("," if i else "") + json.dumps(str(k)) + ":"), v]
            todo.extend(reversed([*parts, (raw, "}")]))
        elif isinstance(item, (list, tuple)):
            parts = [(raw, "[")]
            for i, v in enumerate(item):
                parts += [(raw, ","), v] if i else [v]
            todo.extend(reversed([*parts, (raw, "]")]))
        else:
            out.append(json.dumps(item, allow_nan=False))
    return "".join(out)


def _place(error: GrammarError, text: str) -> None:
    """Adds line and column to an error about invalid JSON."""
    if error.message.startswith("invalid JSON"):
        error.placed(text)


def _draft_number(draft: str | int | None) -> int:
    if draft is None:
        return 0
    number = _DRAFTS.get(str(draft).lower())
    if number is None:
        raise ValueError(f"unknown draft {draft!r}; known: 4, 6, 7, 2019-09, 2020-12")
    return number


def _documents(registry: Any) -> list[tuple[str, str]]:
    """Returns the URI and the JSON text of each document that a reference may name."""
    if isinstance(registry, dict):
        out = [(uri, doc if isinstance(doc, str) else _to_text(doc)) for uri, doc in registry.items()]
    elif isinstance(registry, str | bytes | list | tuple) or not hasattr(registry, "__getitem__"):
        raise TypeError(
            f"a registry is a referencing.Registry or a dict of URI to schema, not {registry!r:.60}"
        )
    else:
        out = [(uri, _to_text(_contents(registry[uri]))) for uri in registry]
    return out + _metaschemas.documents()


_DIALECTS = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def _contents(resource: Any) -> Any:
    """Returns a document of a `referencing.Registry`, with a `$schema` for the specification that it was made
    for."""
    name = getattr(getattr(resource, "_specification", None), "name", None)
    contents = resource.contents
    if name in _DIALECTS and isinstance(contents, Mapping) and "$schema" not in contents:
        return {"$schema": _DIALECTS[name], **contents}
    return contents
