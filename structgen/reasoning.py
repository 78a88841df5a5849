r"""Thoughts in front of an answer: `sg.Reasoning`, the marks of model families, and the grammar of both.

Enters: a grammar of answers and the marks of thoughts. Leaves: one grammar of thoughts and answer, and the
parts of a text as it grows. Cost: a compile; a token costs a mask as without thoughts, and a search for the
end mark in its bytes.

The problem. A model thinks before it answers. A mask of the answer alone forbids the thoughts. A host can
switch the mask on behind the end mark, but then it has to cut drafts there. It also has no budget, and
thoughts that go on until `max_tokens` leave no room for an answer.

The idea. Thoughts, the end mark and the answer are one grammar:

    text      "<think>two lamps</think>\n\n{"n":2}"
    grammar   start  thoughts  end  gap  answer  |  answer
    parts     reasoning "two lamps"     answer '{"n":2}'

Thoughts are any text without the end mark. So one token may hold the end of the mark and the beginning of the
answer, and drafts cross the border. Masks under a budget keep room for the end mark and an answer. A limit on
thoughts is a limit on tokens of the grammar (csrc/budget/limits.h). `Splitter` finds the parts in the bytes
of a text.

Invariants.
- A text has one reading. A grammar whose answers could begin with the start mark is refused, unless thoughts
  are required. The gap is left out if an answer could begin with it. In front of free text the gap stays, and
  free text does not begin with it.
- The first end mark ends the thoughts. An answer may contain both marks.
- If a mark contains the name of a special token, this token has to be written. The same letters as ordinary
  text are neither a mark nor a part of thoughts.

Rejected. Two matchers, one for thoughts and one for the answer, and a switch between them: masks, drafts,
rollback, budgets and hosts would all have to handle the switch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from . import _core
from ._checks import truth, whole
from .errors import GrammarError, UnsatisfiableBudget
from .frontend import elements, source

if TYPE_CHECKING:
    from .compiler import Compiler
    from .grammar import CompiledGrammar
    from .vocabulary import Vocabulary

Part = Literal["reasoning", "answer"]
_LONGEST = 1_000  # the most characters of a mark or a gap


@dataclass(frozen=True, slots=True)
class Reasoning:
    """How a model thinks before it answers.

    Attributes:
        start: the mark in front of the thoughts.
        end: the mark behind them. Thoughts do not contain it.
        max_tokens: the most tokens that may begin in the thoughts; None means only the limit of the whole
            text.
        required: True if the model has to think; False if it may begin with the answer.
        prefilled: whether the prompt ends with `start`, so that the text begins inside the thoughts.
        gap: a text of which any beginning may stand between `end` and the answer. It belongs to neither part.

    Raises:
        TypeError, ValueError: a field has a bad value; the message names the field.
    """

    start: str = "<think>"
    end: str = "</think>"
    max_tokens: int | None = None
    required: bool = False
    prefilled: bool = False
    gap: str = "\n\n"

    def __post_init__(self) -> None:
        for name in ("start", "end", "gap"):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise TypeError(f"{name} of Reasoning is a text, not {value!r:.60}")
            try:
                source.sound(value)
            except GrammarError as error:
                raise ValueError(f"{name} of Reasoning: {error.message}") from None
            if len(value) > _LONGEST:
                raise ValueError(f"{name} of Reasoning has {len(value)} characters, more than {_LONGEST}")
            if not value and name != "gap":
                raise ValueError(f"{name} of Reasoning must not be empty")
        if self.end in self.start:
            raise ValueError(
                f"end of Reasoning, {self.end!r}, stands in start, so that no thoughts could follow"
            )
        if self.max_tokens is not None:
            whole("max_tokens of Reasoning", self.max_tokens, 0)
        truth("required of Reasoning", self.required)
        truth("prefilled of Reasoning", self.prefilled)

    @classmethod
    def of(cls, model: Any, **changes: Any) -> Self:
        """Returns the marks of a family of models.

        Args:
            model: the name of a family, which is a key of `structgen.reasoning.FAMILIES`; "hy-v4:6124c78e" is
                the row "hy-v4" for a tokenizer whose marks have the suffix 6124c78e. Or a tokenizer (or an
                object with a `tokenizer`), whose chat template has the marks and may end with `start`.
            changes: fields that replace those of the row, such as `max_tokens=500`.

        Raises:
            ValueError: an unknown family, or a chat template without known marks.
            TypeError: `changes` names a field that does not exist.
        """
        if isinstance(model, str):
            row = row_of(model)
            if row is None:
                known = ", ".join(FAMILIES)
                hint = source.meant(model, FAMILIES) or f"; known: {known}"
                raise ValueError(f"reasoning={model!r:.80} is no family of models{hint}")
            return cls(**{**_fields(row), **_known(changes)})
        tokenizer = getattr(model, "tokenizer", model)
        found = _of_template(tokenizer)
        if found is None:
            raise ValueError(
                "the chat template tells no marks of thoughts: give "
                "sg.Reasoning(start=..., end=...) or the name of a family"
            )
        return cls(**{**_fields(found), **_known(changes)})

    def splitter(self) -> Splitter:
        """Returns a new `Splitter`, which finds the parts of a growing text."""
        return Splitter(self)

    def behind(self, prompt: str) -> Self:
        """Returns the reasoning for a text behind this prompt.

        Behind a prompt that ends with `start` the text begins inside the thoughts. Behind a prompt that ends
        with `end` it begins behind the thoughts.
        """
        text = prompt.rstrip()
        if text.endswith(self.start.rstrip()):
            return replace(self, prefilled=True)
        if text.endswith(self.end.rstrip()):
            return replace(self, prefilled=False, required=False)
        return self

    def behind_tokens(
        self, prompt: Sequence[int], vocabulary: Vocabulary, names: Mapping[int, bytes]
    ) -> Self:
        """Like `behind`, for a prompt given as tokens. `names` has the names of special tokens."""
        names = {**names, **mark_names(self, vocabulary)}
        tail = b"".join(vocabulary.tokens[t] or names.get(t, b"") for t in prompt[-64:])
        return self.behind(tail.decode("utf-8", "replace"))

    def within(
        self, room: int, answer_tokens: int | None, vocabulary: Vocabulary, any_text: bool = False
    ) -> Self:
        """Returns the reasoning with a limit on thoughts that leaves room for an answer.

        Args:
            room: the number of tokens of the whole text.
            answer_tokens: the tokens kept for the answer, its end included. None keeps a quarter of the room;
                0 keeps only the tokens that masks keep, which a shortest answer needs.
            any_text: whether the answer is any text. Masks keep no room for such an answer, because it may be
                cut off anywhere. So one token is kept for it if the room suffices.

        Raises:
            UnsatisfiableBudget: no tokens are left for thoughts and their marks.
        """
        kept = room // 4 if answer_tokens is None else answer_tokens
        kept = max(kept, int(any_text))
        marks = self.end + self.gap + ("" if self.prefilled else self.start)
        taken = sum(1 if i is not None else len(t.encode()) for t, i in _pieces(marks, vocabulary))
        most = room - kept - taken
        if not kept or (most < 0 and not answer_tokens):
            return self
        if most < 0:
            raise UnsatisfiableBudget(
                f"max_tokens of {room} leaves no thoughts beside answer_tokens={answer_tokens}: "
                f"give at least {kept + taken}, of which the marks may take {taken}"
            )
        most -= most % max(1, most // 16)  # Rounding lets prompts of many lengths share a few grammars.
        known = self.max_tokens
        return replace(self, max_tokens=most if known is None else min(known, most))

    def split(self, text: str) -> tuple[str | None, str]:
        """Returns the thoughts and the answer of a whole text, without marks and gap. Thoughts are None if
        the text has none.

        A text that ends before the end mark is all thoughts, and its answer is empty.
        """
        splitter = Splitter(self)
        thoughts, answer = splitter.feed(text.encode("utf-8", "surrogatepass"))
        more, rest = splitter.finish()
        found = (thoughts + more).decode("utf-8", "replace") if splitter.thought else None
        return found, (answer + rest).decode("utf-8", "replace")


def _fields(row: Reasoning) -> dict[str, Any]:
    return {name: getattr(row, name) for name in Reasoning.__slots__}


def _known(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the fields unchanged. TypeError: a name is no field of `Reasoning`."""
    known = Reasoning.__slots__
    for name in fields:
        if name not in known:
            hint = source.meant(str(name), known) or f"; known: {', '.join(known)}"
            raise TypeError(f"Reasoning has no field {name!r:.60}{hint}")
    return fields


_CHANNEL, _TURN = "<|channel|>analysis<|message|>", "<|end|><|start|>assistant"

# Recipe, thoughts 1: a row: the marks of its chat template.
#  The marks of families of models, from their chat templates. `prefilled` is True if the template writes
# `start`.
FAMILIES: dict[str, Reasoning] = {
    "qwen3": Reasoning(),
    "qwen3-thinking": Reasoning(prefilled=True),
    "qwq": Reasoning(prefilled=True),
    "deepseek-r1": Reasoning(prefilled=True),
    "deepseek-v3.1": Reasoning(prefilled=True, gap=""),
    "deepseek-v4": Reasoning(prefilled=True),
    "glm-4.5": Reasoning(gap="\n"),
    "kimi-k2": Reasoning(),
    "kimi-k3": Reasoning("<|open|>think<|sep|>", "<|close|>think<|sep|>", gap=""),
    "minimax-m2": Reasoning(prefilled=True),
    "minimax-m3": Reasoning("<mm:think>", "</mm:think>"),
    "seed-oss": Reasoning("<seed:think>", "</seed:think>", gap=""),
    "step3": Reasoning(prefilled=True),
    "step3.5": Reasoning(prefilled=True, gap="\n"),
    "mimo": Reasoning(gap=""),
    "ernie-4.5": Reasoning(prefilled=True),
    "nemotron-v3": Reasoning(),
    # An answer of this family may end with the mark "\n</answer>". structgen does not write this mark.
    "hunyuan": Reasoning("<think>\n", "\n</think>\n<answer>\n", gap=""),
    "granite": Reasoning("Here is my thought process:", "Here is my response:", gap=""),
    "granite-4.2": Reasoning(gap="\n"),
    "hy-v3": Reasoning(prefilled=True),  # vLLM hy_v3, SGLang hunyuan
    "hy-v4": Reasoning(prefilled=True),  # vLLM hy_v4
    "exaone": Reasoning(),
    "k2-horizon": Reasoning("<ifm|think>", "</ifm|think>", prefilled=True),
    "plamo3": Reasoning("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>", gap=""),
    # Behind the thoughts, calls and texts begin with different marks. structgen does not write the mark of
    # texts.
    "inkling": Reasoning("<|message_model|><|content_thinking|>", "<|end_message|>", gap=""),
    "olmo3": Reasoning(prefilled=True),
    "longcat": Reasoning("<longcat_think>", "</longcat_think>", prefilled=True),
    "magistral": Reasoning("[THINK]", "[/THINK]", gap=""),
    "command-a": Reasoning("<|START_THINKING|>", "<|END_THINKING|>", gap=""),
    "apertus": Reasoning("<|inner_prefix|>", "<|inner_suffix|>", gap=""),
    "gemma-4": Reasoning("<|channel>thought\n", "<channel|>", gap=""),
    # The answer is a message of the channel "final". A call of a tool is a message of another channel.
    "gpt-oss": Reasoning(_CHANNEL, f"{_TURN}<|channel|>final<|message|>", required=True, gap=""),
    "harmony": Reasoning(_CHANNEL, _TURN, gap=""),
    "embedded": Reasoning(gap="\n"),
}  # fmt: skip


_SUFFIXED = ("hy-v3", "hy-v4")  # families whose tokenizers may put a suffix into each mark


def row_of(name: str) -> Reasoning | None:
    """Returns the row of a family; None if there is none. If the name has a suffix, the marks have it,
    too."""
    base, colon, suffix = name.partition(":")
    row = FAMILIES.get(base)
    if row is None or not colon:
        return row
    return elements.with_suffix(row, suffix, ("start", "end")) if base in _SUFFIXED else None


def _of_template(tokenizer: Any) -> Reasoning | None:
    """Returns the family whose marks stand in a tokenizer's chat template."""
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, dict):
        template = template.get("default") or next(iter(template.values()), None)
    if not isinstance(template, str):
        return None
    rows = sorted(FAMILIES.values(), key=lambda row: (row.start == "<think>", row.prefilled))
    if marked := re.search(rf"<think:({elements.SUFFIX.pattern})>", template):
        found = row_of(f"hy-v4:{marked[1]}")
    else:
        found = next((r for r in rows if r.start.strip() in template and r.end.strip() in template), None)
    if found is None:  # A template that only cuts old thoughts out names only the end mark.
        found = next((row for row in rows if row.end in template), None)
    if found is None:
        return None
    prompt = ""
    if callable(getattr(tokenizer, "apply_chat_template", None)):
        message = [{"role": "user", "content": "x"}]
        prompt = tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=False)
    begun = isinstance(prompt, str) and prompt.rstrip().endswith(found.start.strip())
    return replace(found, prefilled=begun)


def reasoning_of(given: Any, model: Any = None) -> Reasoning | None:
    """Returns the value of a call's `reasoning=` as a `Reasoning`.

    Args:
        given: None or False (no thoughts), a `Reasoning` or its fields, or the name of a family. True and
            "auto" take the marks from the chat template of `model`.

    Raises:
        TypeError: another kind of value. ValueError: as `Reasoning.of`.
    """
    if given is None or given is False:
        return None
    if isinstance(given, Reasoning):
        return given
    if isinstance(given, Mapping):  # Files and requests give the fields.
        return Reasoning(**_known(given))
    if given is True or given == "auto":
        own = getattr(model, "reasoning", None)
        try:
            return own if isinstance(own, Reasoning) else Reasoning.of(model)
        except ValueError as error:
            raise ValueError(f"reasoning={given!r}: {error}") from None
    if isinstance(given, str):
        return Reasoning.of(given)
    raise TypeError(f"reasoning= takes a structgen.Reasoning or the name of a family, not {given!r:.60}")


class Splitter:
    """Splits a growing text into thoughts and answer.

    Attributes:
        thought: whether thoughts began.
        answering: whether the answer began.
    """

    __slots__ = ("_end", "_gap", "_held", "_left", "_start", "_state", "answering", "reasoning", "thought")

    def __init__(self, reasoning: Reasoning) -> None:
        self.reasoning: Reasoning = reasoning
        self._start, self._end, self._gap = (
            text.encode() for text in (reasoning.start, reasoning.end, reasoning.gap)
        )
        self._held = b""
        self._left = self._gap  # the part of the gap that may still follow
        self._state: Literal["begin", "thoughts", "gap", "answer"] = "begin"
        self.thought: bool = False
        self.answering: bool = False
        if reasoning.prefilled:
            self._think()

    @property
    def part(self) -> Part:
        """The part in which the text so far ends."""
        return "answer" if self.answering else "reasoning"

    def _think(self) -> None:
        self._state, self.thought = "thoughts", True

    def feed(self, data: bytes) -> tuple[bytes, bytes]:
        """Adds bytes, and returns the bytes of thoughts and of the answer that are now certain."""
        if self._state == "answer":
            return b"", data
        held = self._held + data
        thoughts = answer = b""
        if self._state == "begin":
            if held.startswith(self._start):
                held = held[len(self._start) :]
                self._think()
            elif not self._start.startswith(held):
                self._state = "answer"
        if self._state == "thoughts":
            at = held.find(self._end)
            if at >= 0:
                thoughts, held = held[:at], held[at + len(self._end) :]
                self._state = "gap"
            else:
                keep = source.overlap(held, self._end)
                thoughts, held = held[: len(held) - keep], held[len(held) - keep :]
        if self._state == "gap" and held:
            same = 0
            while same < min(len(held), len(self._left)) and held[same] == self._left[same]:
                same += 1
            held, self._left = held[same:], self._left[same:]
            if held:
                self._state = "answer"
        if self._state == "answer":
            answer, held = held, b""
            self.answering = True
        self._held = held
        return thoughts, answer

    def finish(self) -> tuple[bytes, bytes]:
        """Ends the text, and returns the bytes of thoughts and of the answer that were held back."""
        held, self._held = self._held, b""
        if self._state in ("begin", "gap"):  # The text may also be only the beginning of a mark.
            self.answering = True
        return (held, b"") if self._state == "thoughts" else (b"", held)


def mark_names(reasoning: Reasoning, vocabulary: Vocabulary) -> dict[int, bytes]:
    """Returns the special tokens of the marks, each with its name as bytes."""
    pieces = (*_pieces(reasoning.start, vocabulary), *_pieces(reasoning.end, vocabulary))
    return {token: name.encode() for name, token in pieces if token is not None}


def _pieces(mark: str, vocabulary: Vocabulary) -> list[tuple[str, int | None]]:
    """Returns a mark cut into names of special tokens, each with its id, and text (None)."""
    ends = vocabulary.eos_token_ids
    names = [n for n, i in vocabulary.special_tokens.items() if n and i not in ends]
    pattern = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or r"(?!)"
    parts = re.split(f"({pattern})", mark)
    return [
        (part, vocabulary.special_tokens[part] if i % 2 else None) for i, part in enumerate(parts) if part
    ]


def compose(
    compiler: Compiler, answer: CompiledGrammar | None, reasoning: Reasoning
) -> tuple[_core.GrammarBuilder, int, Reasoning]:
    """Returns the builder with thoughts and answer, its first rule, and the reasoning with the gap that is
    used.

    Raises:
        GrammarError: see `Compiler.with_reasoning`.
    """
    b, vocabulary = _core.GrammarBuilder(), compiler.vocabulary
    optional = not (reasoning.required or reasoning.prefilled)
    if answer is not None:
        reasoning = _checked(answer, reasoning, optional)

    def mark(text: str) -> int:
        pieces = _pieces(text, vocabulary)
        return b.sequence([b.literal(t.encode()) if i is None else b.tokens([i]) for t, i in pieces])

    thoughts = _thoughts(b, reasoning, vocabulary, mark)
    gaps = [b.literal(reasoning.gap[:n].encode()) for n in range(len(reasoning.gap), -1, -1)]
    whole_answer = _node(b, compiler, answer)
    end = b.sequence([thoughts, b.choice(gaps), whole_answer])
    thinking = end if reasoning.prefilled else b.sequence([mark(reasoning.start), end])
    rule = b.rule("text")
    if optional:
        if answer is None:
            begins = b.sequence([b.literal(reasoning.start.encode()), source.any_text(b)])
            whole_answer = b.both([source.any_text(b), b.negate(begins)])
        thinking = b.choice([whole_answer, thinking])
    b.define(rule, thinking)
    return b, rule, reasoning


def before_middles(
    around: tuple[CompiledGrammar, bytes, bytes], reasoning: Reasoning, vocabulary: Vocabulary
) -> tuple[CompiledGrammar, bytes, Reasoning]:
    """Turns a grammar of middles into a grammar of answers, a suffix and a reasoning. The middles of these
    three are texts of thoughts and then a middle.

    A text t is thoughts, marks and a middle m if and only if t + suffix is thoughts, marks and the answer
    m + suffix. This holds if the border lies in front of the suffix: no end mark ends within the suffix,
    and no gap reads into it. A prefix would have to stand between the marks and the middle, where the model
    does not write it. So a grammar of middles with a prefix is refused.

    Raises:
        GrammarError: the middles have a prefix, or a field of the reasoning does not fit them.
    """
    whole, prefix, suffix = around
    if prefix:
        raise GrammarError(
            "reasoning= goes with no grammar of middles behind a prefix: thoughts would stand between the "
            'prefix and the middle; give infill("", suffix), or the middle without reasoning='
        )
    if reasoning.max_tokens is not None:
        raise GrammarError(
            "max_tokens of Reasoning and answer_tokens= go with no grammar of middles, whose tokens are not "
            "counted; max_tokens= of the call ends thoughts in time"
        )
    *before, (last, token) = _pieces(reasoning.end, vocabulary)
    tail = b"" if token is not None else last.encode()
    inside = tail and not before and tail in suffix
    if inside or any(suffix.startswith(tail[-n:]) for n in range(1, len(tail) + 1)):
        raise GrammarError(
            f"end of Reasoning, {reasoning.end!r}, may end within the suffix of the middles, so that "
            "thoughts and suffix could not be told apart"
        )
    return whole, suffix, replace(reasoning, gap="") if suffix[:1] in reasoning.gap.encode() else reasoning


def _thoughts(
    b: _core.GrammarBuilder, reasoning: Reasoning, vocabulary: Vocabulary, mark: source.Spell
) -> int:
    """Returns the node of thoughts and the end mark."""
    end, most = reasoning.end, reasoning.max_tokens
    special = any(token is not None for _, token in _pieces(end, vocabulary))
    if most == 0:
        return mark(end)
    if most is None and not special:
        return source.Marks(b, [end]).up_to(end)
    text = source.without(b, [end])
    # No end mark may be complete before the last one: for the mark "aa", thoughts "a" would give "a" + "aa".
    text = source.not_ending(b, text, [] if special else source.early(end, [end]))
    if most is not None and most <= source.NO_LIMIT:
        text = b.limit(text, most, "max_tokens of reasoning")
    return b.sequence([text, mark(end)])


def _node(b: _core.GrammarBuilder, compiler: Compiler, answer: CompiledGrammar | None) -> int:
    """Returns the node of the answers."""
    if answer is None:
        return source.any_text(b)
    if answer._condition is not None:
        answer, condition = answer._condition
        found, asked = _node(b, compiler, answer), condition._node(b)
        return b.require(found, asked) if answer._options is not None else b.both([found, asked])
    if answer._written is not None:
        return b.call(compiler._core.include_grammar(b, answer._written))
    if answer._options is not None:
        return compiler._json_node(b, *answer._options)
    method, given = ("", ()) if answer._recipe is None else answer._recipe[1:3]
    if method == "regex":
        return b.pattern(given[0], True)
    if method == "choice":
        return b.choice([b.literal(text.encode()) for text in given[0]])
    raise GrammarError(
        "reasoning= cannot put thoughts in front of this grammar: give a schema, a pattern, a choice, GBNF "
        "or Lark"
    )


def _checked(answer: CompiledGrammar, reasoning: Reasoning, optional: bool) -> Reasoning:
    """Returns the reasoning, without its gap if answers may begin with the gap's text.

    GrammarError: the border would be ambiguous.
    """
    if answer._reasoned is not None:
        raise GrammarError("reasoning= goes with a grammar of answers, and this one has thoughts already")
    vocabulary = answer.vocabulary
    if optional:
        special = [token for _, token in _pieces(reasoning.start, vocabulary)]
        by_text = answer.matcher().accept_bytes(reasoning.start)
        by_token = None not in special and answer.matcher().accept_tokens(
            [t for t in special if t is not None]
        )
        if by_text or by_token:
            raise GrammarError(
                f"start of Reasoning, {reasoning.start!r}, may also begin the answer, so that thoughts and "
                "answer could not be told apart: give required=True, or a grammar of answers without it"
            )
    if reasoning.gap and reasoning.gap.encode()[0] in answer.matcher().live_bytes() and not _is_free(answer):
        return replace(reasoning, gap="")
    return reasoning


def _is_free(answer: CompiledGrammar) -> bool:
    """Returns whether answers begin with free text around tags. A gap can be excluded from such a text."""
    method, given = ("", ()) if answer._recipe is None else answer._recipe[1:3]
    spec = given[0] if method == "structural_tag" else None
    form = spec.get("format") if isinstance(spec, dict) else None
    if not isinstance(form, dict) or form.get("at_least_one"):
        return False
    marks = [*(form.get("triggers") or ()), *(form.get("excludes") or ())]
    free = form.get("type") in ("any_text", "triggered_tags")
    return free and all(isinstance(mark, str) and not mark[:1].isspace() for mark in marks)
