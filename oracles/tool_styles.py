"""Readers and writers of the styles in which models write the arguments of a call.

Input: a text. Output: its readings, each a JSON object; none if the text is not in the style. A style that
does not write the kinds of values gives a text two readings: the text itself, and the JSON value that the
text spells. The module shares no code with the engine. Time: the product of the readings of all members.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from oracles import closed, oracle, strategies
from oracles.strategies import Source
from structgen.frontend.elements import ELEMENT_STYLES
from structgen.frontend.tools import STYLES

BLANK = r"[ \t\r\n]{0,4}"
DSML = "｜DSML｜"


@dataclass(frozen=True, slots=True)
class StyleReader:
    """The pattern ``element`` has the groups key, kind (if the style writes it) and value."""

    element: re.Pattern[str]
    written: str  # a format string with {key}, {kind}, {value}
    kinds: dict[str, str]  # kinds by JSON type; empty if the style writes no kind
    key_never: str = ""  # a pattern that no key matches
    entities: bool = False
    newlines: bool = False

    # ---- reading ----

    def readings(self, text: str) -> Iterator[dict[str, Any]]:
        found: list[tuple[str, list[Any]]] = []
        at = re.match(BLANK, text).end()  # type: ignore[union-attr]
        while at < len(text):
            match = self.element.match(text, at)
            if match is None:
                return
            groups = match.groupdict()
            key = groups["key"]
            if self.entities:
                if '"' in key or "&" in re.sub("&(?:amp|quot);", "", key):
                    return
                key = key.replace("&quot;", '"').replace("&amp;", "&")
            elif self.key_never and re.search(self.key_never, key):
                return
            found.append((key, list(self.values(groups.get("kind"), groups["value"]))))
            at = match.end()
        if len({key for key, _ in found}) != len(found):
            return
        for values in itertools.product(*(values for _, values in found)):
            yield dict(zip((key for key, _ in found), values, strict=True))

    def values(self, kind: str | None, text: str) -> Iterator[Any]:
        if kind in (None, self.kinds.get("string")):
            raw = text
            if self.newlines:
                raw = raw.removeprefix("\n")
                raw = raw.removesuffix("\n")
            yield raw
            if kind is not None:
                return
        json_text = text.strip(" \t\r\n")
        if not re.fullmatch(BLANK + re.escape(json_text) + BLANK, text):
            return
        try:
            value = oracle.loads(json_text)
        except (ValueError, RecursionError):
            return
        if not isinstance(value, str) and (kind is None or self.kinds[type_of(value)] == kind):
            yield value

    # ---- writing ----

    def member(self, source: Source, key: str, value: Any) -> str:
        kind = self.kinds.get(type_of(value), "")
        if isinstance(value, str):
            text = value
            if self.newlines and (source.chance(50) or text[:1] == "\n" or text[-1:] == "\n"):
                text = f"\n{text}\n"
        else:
            blank = source.pick(("", "", "\n", " "))
            text = blank + strategies.text(source, value).strip(" \t\r\n") + blank
        if self.entities:
            key = key.replace("&", "&amp;").replace('"', "&quot;")
        return self.written.replace("{kind}", kind).replace("{key}", key).replace("{value}", text)

    def text(self, source: Source, value: dict[str, Any]) -> str:
        between = source.pick(("", "\n"))
        return between.join(self.member(source, k, v) for k, v in value.items()) + between


def type_of(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    return {str: "string", list: "array", dict: "object"}.get(type(value), "number")


def marked(start: str, kind: str, middle: str, close: str) -> re.Pattern[str]:
    """Returns the pattern start KEY kind middle VALUE close. A value ends at the first mark of any kind."""
    return re.compile(rf"{start}(?P<key>.*?){kind}{middle}(?P<value>.*?){re.escape(close)}{BLANK}", re.DOTALL)


TEXT_OR_JSON = dict.fromkeys(("null", "boolean", "number", "array", "object"), "false") | {"string": "true"}
STYLE_READERS = {
    "qwen_xml": StyleReader(
        marked("<parameter=", ">", "", "</parameter>"),
        "<parameter={key}>{value}</parameter>",
        {},
        newlines=True,
    ),
    "mimo_xml": StyleReader(
        marked("<parameter=", ">", "", "</parameter>"), "<parameter={key}>{value}</parameter>", {}
    ),
    "minimax_xml": StyleReader(
        marked('<parameter name="', '">', "", "</parameter>"),
        '<parameter name="{key}">{value}</parameter>',
        {},
        key_never='[">]',
    ),
    "step_xml": StyleReader(
        marked('<steptml:parameter name="', '">', "", "</steptml:parameter>"),
        '<steptml:parameter name="{key}">{value}</steptml:parameter>',
        {},
        key_never='[">]',
    ),
    "glm_xml": StyleReader(
        marked("<arg_key>", "</arg_key>", "\n?<arg_value>", "</arg_value>"),
        "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>",
        {},
    ),
    "minicpm_xml": StyleReader(
        marked('<param name="', '"', r"><!\[CDATA\[", "]]></param>"),
        '<param name="{key}"><![CDATA[{value}]]></param>',
        {},
        key_never=r"""["'<>&\x00-\x20]|^$""",
    ),
    "glm_4_7_xml": StyleReader(
        marked("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
        "<arg_key>{key}</arg_key><arg_value>{value}</arg_value>",
        {},
    ),
    "ifm_xml": StyleReader(
        marked(r"<ifm\|arg_key>", r"</ifm\|arg_key>", r"<ifm\|arg_value>", "</ifm|arg_value>"),
        "<ifm|arg_key>{key}</ifm|arg_key><ifm|arg_value>{value}</ifm|arg_value>",
        {},
        key_never=r"</?ifm\||^\s|\s$|^$",
    ),
    "gigachat_xml": StyleReader(
        marked('<｜GCML｜parameter name="', '" string="(?P<kind>true|false)', '">', "</｜GCML｜parameter>"),
        '<｜GCML｜parameter name="{key}" string="{kind}">{value}</｜GCML｜parameter>',
        TEXT_OR_JSON,
        key_never='"',
    ),
    "deepseek_xml": StyleReader(
        marked(f'<{DSML}parameter name="', '" string="(?P<kind>true|false)', '">', f"</{DSML}parameter>"),
        f'<{DSML}parameter name="{{key}}" string="{{kind}}">{{value}}</{DSML}parameter>',
        TEXT_OR_JSON,
        key_never='"',
    ),
    "deepseek_v4_1_xml": StyleReader(
        marked(f'<{DSML} parameter name="', '" string="(?P<kind>true|false)', '">', f"</{DSML} parameter>"),
        f'<{DSML} parameter name="{{key}}" string="{{kind}}">{{value}}</{DSML} parameter>',
        TEXT_OR_JSON,
        key_never='"',
    ),
    "kimi_k3_xml": StyleReader(
        marked(
            r'<\|open\|>argument key="',
            '" type="(?P<kind>[a-z]*)',
            r'"<\|sep\|>',
            "<|close|>argument<|sep|>",
        ),
        '<|open|>argument key="{key}" type="{kind}"<|sep|>{value}<|close|>argument<|sep|>',
        {k: k for k in ("string", "null", "boolean", "number", "array", "object")},
        entities=True,
    ),
}

ARGUMENTS: list[dict] = [
    {},
    {"city": "Rome"},
    {"city": 'a "b" \\ }', "days": 3},
    {"city": "5", "days": 5, "deep": {"list": [1, "x", None], "flag": True}},
]

# The schema of the arguments above.
SCHEMA = closed(
    {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "deep": {"type": "object", "properties": {"list": {"type": "array"}, "flag": {"type": "boolean"}}},
    },
    (),
)


def nested(value: object) -> str:
    m = "]<]minimax[>["
    if isinstance(value, dict):
        return "".join(f"{m}<{k}>{nested(v)}{m}</{k}>" for k, v in value.items())
    if isinstance(value, list):
        return "".join(f"{m}<item>{nested(v)}{m}</item>" for v in value)
    return value if isinstance(value, str) else json.dumps(value)


def cohere(value: object, name: str | None = None) -> str:
    """Returns an element of Cohere's template cmd5-nested-xml."""
    kind = {str: "raw", dict: "dict", list: "list"}.get(type(value), "json")
    text = value if isinstance(value, str) else json.dumps(value)
    if isinstance(value, dict):
        text = "".join(cohere(held, key) for key, held in value.items())
    elif isinstance(value, list):
        text = "".join(cohere(held) for held in value)
    named = "" if name is None else f' name="{name}"'
    return f'<cofl:value{named} type="{kind}">{text}</cofl:value>'


def delimited(value: object, mark: str) -> str:
    """Returns a value in Gemma's format: keys without quotes, and strings between two marks."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{delimited(v, mark)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(delimited(v, mark) for v in value) + "]"
    return f"{mark}{value}{mark}" if isinstance(value, str) else json.dumps(value)


def written(style: str, calls: list[tuple[str, dict]]) -> str:
    """Returns the calls as a model of the family writes them."""
    row = STYLES[style]
    texts = []
    for number, (name, arguments) in enumerate(calls):
        if row.parameters == "json":
            body = json.dumps(arguments)
        elif row.parameters == "minimax_m3_xml":
            body = nested(arguments)
        elif row.parameters == "cohere_xml":
            body = "".join(cohere(value, key) for key, value in arguments.items())
        elif mark := ELEMENT_STYLES[row.parameters].ends[0]:
            body = delimited(arguments, mark)[1:-1]
        else:
            kinds = STYLE_READERS[row.parameters]
            body = ""
            for key, value in arguments.items():
                text = value if isinstance(value, str) else json.dumps(value)
                kind = kinds.kinds.get(type_of(value), "")
                body += kinds.written.replace("{kind}", kind).replace("{key}", key).replace("{value}", text)
        begin = row.begin.replace("{name}", name).replace("{index}", str(number))
        texts.append(begin + body + row.end)
    return row.open + row.separator.join(texts) + row.close
