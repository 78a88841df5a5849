"""Arguments as elements: tool calls of models that do not write them as one JSON object.

In: an object schema. Out: a node of a ``_core.GrammarBuilder``. A style is a row of ``ELEMENT_STYLES``, with
the texts around a key, a value and an item. A string is raw text up to the mark that closes its element; any
other value is JSON. In nested styles objects and arrays are elements, too. In calls of Python strings are
quoted. The engine makes the grammar of such texts from the schema, and enforces every keyword as in JSON
(csrc/schema/write/elements.h). Cost: one node for each mark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from .. import _core
from . import source

# the words for texts, null, Booleans, numbers, arrays and objects
Kinds = tuple[str, str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class ElementStyle:
    """A member is ``before KEY middle after VALUE ends close``, an item ``item after VALUE ends item_close``.

    ``{kind}`` in `after` is one of `kinds`, the words for texts, null, Booleans, numbers, arrays and objects.
    A line break at its beginning may be left out. `ends` has what stands behind a value of each of these
    kinds.
    """

    before: str
    middle: str
    after: str
    close: str
    kinds: Kinds = ("", "", "", "", "", "")
    ends: Kinds = ("", "", "", "", "", "")
    key_never: tuple[str, ...] = ()  # texts that no key contains
    key_pattern: str = ""  # an ECMA pattern that every key matches
    entities: str = ""  # characters of keys that are written as ``&amp;``, ``&quot;`` and so on
    newlines: bool = False  # A reader removes one line break in front of a string and one behind it.
    between: str = ""  # in front of each member or item but the first
    python: bool = False  # strings are quoted, and constants are Python's
    stop: str = ""  # a text that no string contains; empty: `close`
    item: str = ""
    item_close: str = ""
    nested: bool = False  # objects and arrays inside are elements, too
    named_end: bool = False  # the key and `middle` stand again behind `close`
    bare: bool = False  # blanks stand only between elements


_M3 = "]<]minimax[>["


def _delimited(mark: str) -> ElementStyle:
    """``{city:MARKPortoMARK,days:[1,2]}``: nothing is quoted, and a mark stands around texts."""
    kinds, ends = (mark, "", "", "", "[", "{"), (mark, "", "", "", "]", "}")
    names = r"^[^\s\x00-\x1f\x85:,{}\[\]<]+$"  # Python's \s, with which hosts read, has more than ECMA's
    return ElementStyle(
        "", ":", "{kind}", "", kinds, ends, between=",", stop=mark, nested=True, key_pattern=names
    )


def _text_or_json(mark: str) -> ElementStyle:
    """Returns the style of elements with tags `parameter`. Every tag says whether its value is a text or
    JSON."""
    kinds = ("true", "false", "false", "false", "false", "false")
    start, close = f'<{mark}parameter name="', f"</{mark}parameter>"
    return ElementStyle(start, '" string="', '{kind}">', close, kinds, key_never=('"',))


# Recipe, tool style 2, with elements of its own: a row: what stands around a key, a value and an item.
ELEMENT_STYLES = {
    "python": ElementStyle("", "=", "", "", between=", ", python=True),
    "qwen_xml": ElementStyle("<parameter=", ">", "", "</parameter>", key_never=(">",), newlines=True),
    "mimo_xml": ElementStyle("<parameter=", ">", "", "</parameter>", key_never=(">",)),
    "minimax_xml": ElementStyle('<parameter name="', '">', "", "</parameter>", key_never=('"', ">")),
    "step_xml": ElementStyle(
        '<steptml:parameter name="', '">', "", "</steptml:parameter>", key_never=('"', ">")
    ),
    "glm_xml": ElementStyle(
        "<arg_key>", "</arg_key>", "\n<arg_value>", "</arg_value>", key_never=("</arg_key>",)
    ),
    # The readers of this style parse XML, and take the text in CDATA unchanged.
    "minicpm_xml": ElementStyle(
        '<param name="',
        '"><![CDATA[',
        "",
        "]]></param>",
        key_never=('"', "'", "<", ">", "&"),
        key_pattern=r"^[\x21-\uffff]+$",
        stop="]]>",
    ),
    "glm_4_7_xml": ElementStyle(
        "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", key_never=("</arg_key>",)
    ),
    "ifm_xml": ElementStyle(
        "<ifm|arg_key>",
        "</ifm|arg_key>",
        "<ifm|arg_value>",
        "</ifm|arg_value>",
        key_never=("<ifm|", "</ifm|"),
        key_pattern=r"^\S(?:[\s\S]*\S)?$",
    ),
    "deepseek_xml": _text_or_json("｜DSML｜"),
    "deepseek_v4_1_xml": _text_or_json("｜DSML｜ "),
    "gigachat_xml": _text_or_json("｜GCML｜"),
    "gemma": _delimited('<|"|>'),
    "functiongemma": _delimited("<escape>"),
    "kimi_k3_xml": ElementStyle(
        '<|open|>argument key="',
        '" type="',
        '{kind}"<|sep|>',
        "<|close|>argument<|sep|>",
        kinds=("string", "null", "boolean", "number", "array", "object"),
        entities='&"',
    ),
    "minimax_m3_xml": ElementStyle(
        f"{_M3}<",
        ">",
        "",
        f"{_M3}</",
        key_pattern=r"^[^/>\0][^>\0]*$",
        stop=_M3,
        item=f"{_M3}<item>",
        item_close=f"{_M3}</item>",
        nested=True,
        named_end=True,
        bare=True,
    ),
    "cohere_xml": ElementStyle(
        '<cofl:value name="',
        '" type="',
        '{kind}">',
        "</cofl:value>",
        kinds=("raw", "json", "json", "json", "list", "dict"),
        key_pattern=r"^[^\0]+$",
        entities='&"<>',
        item='<cofl:value type="',
        item_close="</cofl:value>",
        nested=True,
    ),
}


#: The suffix that tokenizers of Hunyuan put into each mark, behind a colon.
SUFFIX = re.compile("[0-9A-Za-z]{1,40}")


def suffixed(text: str, suffix: str) -> str:
    """Returns the text with the suffix in each of its marks: ``<arg_key>`` as ``<arg_key:6124c78e>``."""
    return re.sub(r"<(/?\w+)>", rf"<\1:{suffix}>", text)


_Row = TypeVar("_Row")


def with_suffix(row: _Row, suffix: str, marks: Sequence[str]) -> _Row | None:
    """Returns the row with a suffix in the texts that `marks` names, or None if `suffix` cannot be one."""
    if not SUFFIX.fullmatch(suffix):
        return None
    changed: dict[str, Any] = {name: suffixed(getattr(row, name), suffix) for name in marks}
    made: _Row = replace(row, **changed)  # type: ignore[type-var]
    return made


def row_of(style: str) -> ElementStyle | None:
    """Returns a row of `ELEMENT_STYLES`. If the name has a suffix behind a colon, the row's marks have it,
    too.

    None if no such row exists, or if one of its marks has no place for a suffix, such as ``<parameter=``.
    """
    name, colon, suffix = style.partition(":")
    row = ELEMENT_STYLES.get(name)
    if row is None or not colon:
        return row
    marks = ("before", "middle", "after", "close")
    made = with_suffix(row, suffix, marks)
    if made is None or any(getattr(made, mark) == getattr(row, mark) for mark in marks):
        return None
    return replace(made, key_never=tuple(suffixed(text, suffix) for text in row.key_never))


def asks_for_unique_items(schema: Any) -> bool:
    """Returns whether `uniqueItems` is true somewhere in a document. Items that are elements are not
    compared."""
    todo = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            if part.get("uniqueItems") is True:
                return True
            todo += part.values()
        elif isinstance(part, list):
            todo += part
    return False


def build(
    b: _core.GrammarBuilder,
    part: int,
    style: ElementStyle,
    spell: source.Spell,
    blanks: int,
    key_pattern: str = "",
) -> int:
    """Returns the members of the objects of a schema.

    Args:
        part: the schema's node, as ``b.json`` gives it.
        key_pattern: an ECMA pattern that every key matches; empty: the style's pattern.
        spell: makes the node of a mark.
        blanks: the most blanks between elements, and around a value that is JSON.
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
        [spell(end) for end in style.ends],
        spell(style.close),
        spell(style.item),
        spell(style.item_close),
        b.repeat(b.chars([(9, 10), (13, 13), (32, 32)]), 0, blanks),
        spell(style.between),
        style.middle,
        style.stop or style.close,
        list(style.key_never),
        style.entities,
        style.newlines,
        style.python,
        key_pattern or style.key_pattern,
        style.nested,
        style.named_end,
        style.bare,
    )
