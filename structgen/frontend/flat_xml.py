"""Arguments as one element each: how Qwen, GLM, MiniMax M2, DeepSeek, Kimi and Llama 4 models write a call.

In: an object schema. Out: a node of a ``_core.GrammarBuilder``. A string stands as it is up to the mark that
closes its element, any other value is JSON; in calls of Python strings are quoted, too. The schema is
enforced as in JSON, every keyword of it; only the spelling of the outermost members is another. Cost: one
node a mark.
"""

from __future__ import annotations

from dataclasses import dataclass

from .. import _core
from . import source

__all__ = ["STYLES", "build"]


@dataclass(frozen=True, slots=True)
class Style:
    """A member is ``before KEY middle after VALUE close``.

    ``{kind}`` in `after` is one of `kinds`: what is written of texts, null, Booleans, numbers, arrays and
    objects. A line break at its beginning may be left out.
    """

    before: str
    middle: str
    after: str
    close: str
    kinds: tuple[str, str, str, str, str, str] = ("", "", "", "", "", "")
    key_never: tuple[str, ...] = ()  # what no key contains
    entities: bool = False  # ``&amp;`` and ``&quot;`` in keys
    newlines: bool = False  # a reader takes one in front of a string and one behind it off
    between: str = ""  # from the second member on, in front of it
    python: bool = False  # strings are quoted, and constants are Python's


_TEXT_OR_JSON = ("true", "false", "false", "false", "false", "false")
STYLES = {
    "python": Style("", "=", "", "", between=", ", python=True),
    "qwen_xml": Style("<parameter=", ">", "", "</parameter>", key_never=(">",), newlines=True),
    "minimax_xml": Style('<parameter name="', '">', "", "</parameter>", key_never=('"', ">")),
    "step_xml": Style('<steptml:parameter name="', '">', "", "</steptml:parameter>", key_never=('"', ">")),
    "glm_xml": Style("<arg_key>", "</arg_key>", "\n<arg_value>", "</arg_value>", key_never=("</arg_key>",)),
    "deepseek_xml": Style(
        '<｜DSML｜parameter name="',
        '" string="',
        '{kind}">',
        "</｜DSML｜parameter>",
        kinds=_TEXT_OR_JSON,
        key_never=('"',),
    ),
    "deepseek_v4_1_xml": Style(
        '<｜DSML｜ parameter name="',
        '" string="',
        '{kind}">',
        "</｜DSML｜ parameter>",
        kinds=_TEXT_OR_JSON,
        key_never=('"',),
    ),
    "kimi_k3_xml": Style(
        '<|open|>argument key="',
        '" type="',
        '{kind}"<|sep|>',
        "<|close|>argument<|sep|>",
        kinds=("string", "null", "boolean", "number", "array", "object"),
        entities=True,
    ),
}


def build(
    b: _core.GrammarBuilder, part: int, style: Style, spell: source.Spell, blanks: int, key_pattern: str = ""
) -> int:
    """The members of the objects of a schema.

    Args:
        part: the schema's node, as ``b.json`` gives it.
        key_pattern: what every key has to match, an ECMA pattern.
        spell: a mark's node.
        blanks: at most so many stand between elements, and around a value that is JSON.
    """

    def after(kind: str) -> int:
        text = style.after.format(kind=kind)
        if not text.startswith("\n"):
            return spell(text)
        return b.sequence([b.repeat(b.literal(b"\n"), 0, 1), spell(text[1:])])

    return b.elements(
        part,
        spell(style.before),
        spell(style.middle),
        [after(kind) for kind in style.kinds],
        spell(style.close),
        b.repeat(b.chars([(9, 10), (13, 13), (32, 32)]), 0, blanks),
        spell(style.between),
        style.middle,
        style.close,
        list(style.key_never),
        style.entities,
        style.newlines,
        style.python,
        key_pattern,
    )
