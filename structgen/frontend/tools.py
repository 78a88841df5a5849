r"""Tool calls as the common model families write them: a table, one row a format.

In: a list of tools, OpenAI's or MCP's, and ``tool_choice``. Out: a structural tag (see `structural_tag`).
Cost: linear.

The problem. Each family of models was trained to write its own marks around a call. There are more than
fifty styles, and new families bring new ones.

The idea. A style is a row of `STYLES`, a `Style`: the text before and after the arguments of a call, the
marks around all calls, and how arguments are spelled (``parameters``: JSON, Python, or a row of elements.py).
`structural_tag` is the same for all rows. It makes one tag for each function and puts them together:

    section, call required    a tag from `open` to `close` that contains calls joined by `separator`
    section, call optional    free text, in which `open` triggers that tag
    no section, one required  a choice of the tags
    no section, otherwise     free text, in which `trigger` triggers one of the tags

For a function `f` in the style "hermes" the tag begins with `<tool_call>\n{"name": "f", "arguments": `,
contains JSON of the schema of `f`, and ends with `}\n</tool_call>`. `tool_calls.py` reads such a text back.

Tools come in several formats: OpenAI's, MCP's and Anthropic's. tool_lists.py turns all of them into OpenAI's.

Invariants.
- A call of a function has the arguments that the function lists, unless ``extra_keys="allow"``.
- In styles of elements a string contains neither the mark that ends a call nor the mark that closes the
  section, because a parser would cut the call there.
- A name is written so that it can be read back: escaped in rows that put it into a JSON string
  (`Style.quotes`), refused in others if it has a control character or the mark that ends a name there
  (`Style.after_name`).
- No two tools have the same name.
- A misspelled key of a tool is refused: it would constrain nothing.

Rejected: a module for each nested style, with its own reader of JSON Schema. Such a module refused every
keyword that it did not know.
"""

from __future__ import annotations

import difflib
import inspect
import json
import re
import types
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..errors import GrammarError
from . import elements, python_calls, source
from .closing import closed_parameters
from .python_types import schema_of
from .python_types import tools as tools_document
from .tool_lists import INPUT, LARK, NAMED, ToolError, check_names, listed, name_of

_BREAKS = "\x85\u2028\u2029"  # line breaks of Python's splitlines() that plain strings do not escape
Strictness = Literal["auto", "function", "parameter"]
STRICTNESS: tuple[Strictness, ...] = ("auto", "function", "parameter")  # each holds more than the one before


@dataclass(frozen=True, slots=True)
class Style:
    """How a call is written, and the texts around all calls.

    A call is `begin`, the arguments, `end`. ``{name}`` is the function's name, ``{index}`` any number. A
    style with a section has `open`, calls joined by `separator`, and `close`. In a style without one,
    `trigger` is the text with which every call begins. `single`: an answer has one call at most, because
    hosts read no more. `lines`: a host reads each line as a call, so no string contains a line break.
    `suffixed`: tokenizers may put a suffix into each mark (`row_of`). `family` names the marks of its models'
    thoughts (reasoning.py).
    """

    begin: str
    end: str
    trigger: str = ""
    open: str = ""
    close: str = ""
    separator: str = ""
    parameters: str = "json"
    single: bool = False
    lines: bool = False
    suffixed: bool = False
    family: str = "qwen3"

    @property
    def whole(self) -> bool:
        """Whether an answer is calls or text as a whole: a bare list, which text may hold as well."""
        return self.open == "["

    @property
    def quotes(self) -> bool:
        """Whether the name stands in a string of JSON."""
        return self.parameters == "json" and '"{name}"' in self.begin

    @property
    def after_name(self) -> str:
        """The mark that ends a name: a name that has it would be cut off there by a parser."""
        rest = self.begin.partition("{name}")[2]
        mark = re.match(r"<[^>]+>|\[[A-Z]+\]|.", rest, re.DOTALL)
        return mark[0] if mark else ""

    def written(self, name: str) -> str:
        """Returns a name as calls have it."""
        return json.dumps(name, ensure_ascii=False)[1:-1] if self.quotes else name

    @property
    def excluded(self) -> list[str]:
        """The marks that no value outside JSON contains: those that end the call and the section."""
        if self.parameters == "json":
            return []
        if self.parameters == "python":
            marks = [self.close.removeprefix("]"), *(_BREAKS if self.lines else "")]
        else:
            marks = [*self.end.removeprefix("}").split("\n"), self.close.strip()]
        return [mark for mark in marks if mark]


_CALL = '{"name": "{name}", "arguments": '


def _listed(open: str, close: str = "]", call: str = _CALL, **more: Any) -> Style:
    """Returns the row of a style with calls in JSON, in a list between two marks."""
    return Style(call, "}", open=open, close=close, separator=", ", **more)


def _between(start: str, end: str = "", call: str = _CALL, **more: Any) -> Style:
    """Returns a call in JSON between two marks, the first of which begins every call."""
    return Style(start + call, "}" + end, trigger=start.rstrip(), **more)


def _invoked(section: str, parameters: str, mark: str = "", **more: Any) -> Style:
    """Returns the row of a style with tags `invoke` in a section. Every tag begins with the mark."""
    start, end = f'<{mark}invoke name="{{name}}">\n', f"</{mark}invoke>\n"
    section = mark + section
    return Style(start, end, open=f"<{section}>\n", close=f"</{section}>", parameters=parameters, **more)


def _function_tags(tag: str, parameters: str, gap: str = "\n", **more: Any) -> Style:
    """Returns the row of a style that writes a tag `function` inside of another tag."""
    start, end = f"<{tag}>{gap}<function={{name}}>{gap}", f"</function>{gap}</{tag}>"
    return Style(start, end, trigger=f"<{tag}>", parameters=parameters, **more)


# Sources: "vLLM" is the parser of that name in vllm/tool_parsers and vllm/parser of vLLM 0.33.0, "SGLang" the
# detector in sglang/srt/function_call of SGLang 0.5.23, "xgrammar" is its builtin_structural_tag.py of 0.2.8.
# tests/hosts/test_vllm_tool_calls.py and test_sglang.py have them read our calls.
# Recipe, tool style 1: a row: what stands around a call.
STYLES = {
    "json": Style('{"name": "{name}", "arguments": ', "}", trigger='{"name": '),
    "json-compact": Style('{"name":"{name}","arguments":', "}", trigger='{"name":"'),
    "llama3": Style('{"name": "{name}", "parameters": ', "}", trigger='{"name": '),
    "hermes": _between("<tool_call>\n", "\n</tool_call>"),
    "mistral": _listed("[TOOL_CALLS]["),
    "mistral-v3": _listed("[TOOL_CALLS] ["),
    "mistral-v11": Style("[TOOL_CALLS]{name}[ARGS]", "", trigger="[TOOL_CALLS]"),
    "deepseek-v3": Style(
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n",
        "\n```<｜tool▁call▁end｜>",
        open="<｜tool▁calls▁begin｜>",
        close="<｜tool▁calls▁end｜>",
        separator="\n",
    ),
    "deepseek-v3.1": Style(
        "<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        open="<｜tool▁calls▁begin｜>",
        close="<｜tool▁calls▁end｜>",
    ),
    "deepseek-v3.2": _invoked("function_calls", "deepseek_xml", "｜DSML｜"),
    "deepseek-v4": _invoked(
        "tool_calls", "deepseek_xml", "｜DSML｜", family="deepseek-v4"
    ),  # vLLM deepseek_v4
    # vLLM deepseek_v41
    "deepseek-v4.1": _invoked("calls", "deepseek_v4_1_xml", "｜DSML｜ ", family="deepseek-v4"),
    "gigachat-3.5": _invoked("tool_calls", "gigachat_xml", "｜GCML｜"),  # SGLang gigachat35
    "gigachat-3": _between("<|function_call|>", single=True),  # vLLM gigachat3
    "kimi-k2": Style(
        "<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        open="<|tool_calls_section_begin|>",
        close="<|tool_calls_section_end|>",
    ),
    "kimi-k3": Style(
        '<|open|>call tool="{name}" index="{index}"<|sep|>',
        "<|close|>call<|sep|>",
        open="<|open|>tools<|sep|>",
        close="<|close|>tools<|sep|>",
        parameters="kimi_k3_xml",
        family="kimi-k3",
    ),
    "qwen3-coder": _function_tags("tool_call", "qwen_xml"),
    "mimo": _function_tags("tool_call", "mimo_xml", "", family="mimo"),  # vLLM mimo, xgrammar mimo
    "dots": _invoked("dots_function_call", "minimax_xml"),  # vLLM dots
    "minicpm5": Style(  # vLLM minicpm5
        '<function name="{name}">',
        "</function>",
        trigger='<function name="',
        parameters="minicpm_xml",
    ),
    "minimax": _invoked("minimax:tool_call", "minimax_xml"),
    "minimax-m3": Style(
        ']<]minimax[>[<invoke name="{name}">',
        "]<]minimax[>[</invoke>\n",
        open="]<]minimax[>[<tool_call>\n",
        close="]<]minimax[>[</tool_call>",
        parameters="minimax_m3_xml",
        family="minimax-m3",
    ),
    "glm": Style("<tool_call>{name}\n", "</tool_call>", trigger="<tool_call>", parameters="glm_xml"),
    "glm-4.7": Style(  # vLLM glm47, xgrammar glm_4_7
        "<tool_call>{name}", "</tool_call>", trigger="<tool_call>", parameters="glm_4_7_xml", family="glm-4.5"
    ),
    "iquest-q1": Style(  # SGLang iquest_q1
        "<iquest_tool_call>{name}",
        "</iquest_tool_call>",
        trigger="<iquest_tool_call>",
        parameters="glm_4_7_xml",
    ),
    "hunyuan": _listed("<tool_calls>[", "]</tool_calls>", family="hunyuan"),  # vLLM hunyuan_a13b
    "hy-v3": Style(  # vLLM hy_v3
        "<tool_call>{name}<tool_sep>",
        "</tool_call>\n",
        open="<tool_calls>\n",
        close="</tool_calls>",
        parameters="glm_4_7_xml",
        suffixed=True,
        family="hy-v3",
    ),
    "hy-v4": Style(  # vLLM hy_v4
        "<tool_call>{name}",
        "</tool_call>",
        open="<tool_calls>",
        close="</tool_calls>",
        parameters="glm_4_7_xml",
        suffixed=True,
        family="hy-v4",
    ),
    "k2-horizon": Style(  # vLLM k2_horizon, its form "xml"
        "<ifm|tool_call>{name}",
        "</ifm|tool_call>",
        open="<ifm|tool_calls>",
        close="</ifm|tool_calls>",
        parameters="ifm_xml",
        family="k2-horizon",
    ),
    "seed-oss": _function_tags("seed:tool_call", "qwen_xml", family="seed-oss"),
    "step3": Style(
        '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{name}">\n',
        "</steptml:invoke><｜tool_call_end｜>\n",
        open="<｜tool_calls_begin｜>\n",
        close="<｜tool_calls_end｜>",
        parameters="step_xml",
    ),
    "granite": _listed("<|tool_call|>["),
    "granite-3.1": _listed("<tool_call>["),
    "granite-20b": _between("<function_call> "),  # vLLM granite-20b-fc
    "exaone": _between("<tool_call>", "</tool_call>"),  # xgrammar exaone
    # vLLM longcat
    "longcat": _between("<longcat_tool_call>\n", "\n</longcat_tool_call>", family="longcat"),
    "internlm": _between(  # vLLM internlm
        "<|action_start|><|plugin|>\n", "<|action_end|>", '{"name": "{name}", "parameters": ', single=True
    ),
    "apertus": _listed(  # vLLM apertus
        "<|tools_prefix|>[", "]<|tools_suffix|>", '{"{name}": ', family="apertus"
    ),
    "xlam": _listed("["),  # vLLM xlam, a bare list
    "inkling": _between(  # vLLM inkling
        "<|message_model|><|content_invoke_tool_json|>",
        "<|end_message|>",
        '{"name":"{name}","args":',
        family="inkling",
    ),
    "plamo3": Style(  # vLLM plamo3
        "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>{name}<|plamo:end_tool_name:plamo|>"
        "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>",
        "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>",
        open="<|plamo:begin_tool_requests:plamo|>",
        close="<|plamo:end_tool_requests:plamo|>",
        family="plamo3",
    ),
    "gemma-4": Style(  # vLLM gemma4
        "<|tool_call>call:{name}{",
        "}<tool_call|>",
        trigger="<|tool_call>",
        parameters="gemma",
        family="gemma-4",
    ),
    "functiongemma": Style(  # Google's page on its format; vLLM functiongemma reads texts alone
        "<start_function_call>call:{name}{",
        "}<end_function_call>",
        trigger="<start_function_call>",
        parameters="functiongemma",
    ),
    "phi4": _listed("functools["),
    "nemotron": _listed("<TOOLCALL>[", "]</TOOLCALL>"),
    "functionary": Style("<function={name}>", "</function>", trigger="<function="),
    "command-r": Style(
        '{"tool_call_id": "{index}", "tool_name": "{name}", "parameters": ',
        "}",
        open="<|START_ACTION|>[\n    ",
        close="\n]<|END_ACTION|>",
        separator=",\n    ",
        family="command-a",
    ),
    "cohere-xml": Style(  # cmd5-nested-xml.jinja of github.com/cohere-ai/melody
        '<cofl:tool_call id="{index}" name="{name}">',
        "</cofl:tool_call>",
        open="<cofl:tool_calls>",
        close="</cofl:tool_calls>",
        parameters="cohere_xml",
        family="command-a",
    ),
    # Llama 3.2 and 4 and others that write Python: frontend/python_calls.py.
    "pythonic": Style("{name}(", ")", open="[", close="]", separator=", ", parameters="python"),
    "lfm2": Style(  # vLLM lfm2
        "{name}(",
        ")",
        open="<|tool_call_start|>[",
        close="]<|tool_call_end|>",
        separator=", ",
        parameters="python",
    ),
    "olmo3": Style(  # vLLM olmo3
        "{name}(",
        ")",
        open="<function_calls>",
        close="</function_calls>",
        separator="\n",
        parameters="python",
        lines=True,
        family="olmo3",
    ),
    # A call ends with <|call|>, which is one of the model's end tokens: it is not part of the text.
    "harmony": Style(
        "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>",
        "",
        trigger="<|channel|>commentary to=",
        family="harmony",
    ),
}
for _other, _same in {
    "qwen": "hermes",
    "ernie": "hermes",
    "cohere": "command-r",
    "nemotron-v3": "qwen3-coder",
    "gpt-oss": "harmony",
    "llama4": "pythonic",
    "llama4-json": "llama3",
    "granite4": "hermes",  # vLLM granite4
    "trinity": "hermes",  # SGLang trinity
    "step3.5": "qwen3-coder",  # vLLM step3p5
    "step5": "qwen3-coder",  # vLLM step5
    "granite-4.2": "qwen3-coder",  # vLLM granite_thinking
    "nanbeige": "qwen3-coder",  # SGLang nanbeige
    "ling3": "glm-4.7",  # vLLM ling3
    "spark2.5": "glm-4.7",  # SGLang spark25
    "poolside": "glm",  # vLLM poolside_v1
    "jamba": "hunyuan",  # vLLM jamba
}.items():
    STYLES[_other] = STYLES[_same]


def row_of(name: object) -> Style | None:
    """Returns the row of a style, or None for an unknown style.

    "hy-v3:6124c78e" is the row "hy-v3" of a tokenizer whose marks have a suffix: `<tool_calls:6124c78e>`.
    """
    if not isinstance(name, str):
        return None
    base, _, suffix = name.partition(":")
    row = STYLES.get(base)
    if row is None or not suffix:
        return STYLES.get(name)
    marks = ("begin", "end", "open", "close")
    made = elements.with_suffix(row, suffix, marks) if row.suffixed else None
    return made and replace(made, parameters=f"{row.parameters}:{suffix}", family=f"{row.family}:{suffix}")


# Not a row: the arguments of the one function that must be called, with nothing around them. This style is
# for models that were trained to write values and no calls.
ARGUMENTS = "arguments"


def structural_tag(
    tools: Any,
    tool_choice: Any = "auto",
    style: str = "hermes",
    parallel: bool = True,
    never: Sequence[str] = (),
    extra_keys: str | None = None,
    digits: int | None = None,
    strictness: Strictness = "parameter",
) -> dict[str, Any]:
    """Returns the structural tag for a request with tools.

    Args:
        tools: what `listed` takes.
        tool_choice: "auto", "none", "required", a name, or ``{"type": "function", "function": {"name"}}``.
        style: a key of `STYLES`; or `ARGUMENTS`, if `tool_choice` names a function whose parameters are an
            object.
        parallel: whether several calls may be made.
        never: texts that free text around calls does not contain.
        extra_keys: "allow" leaves the parameters as open as their schema is; otherwise a call has only the
            arguments that its function lists.
        digits: the most digits of an `int` of a Python function, as in `Compiler.json_schema`.
        strictness: one of `STRICTNESS`; see `Compiler.tools`.
    """
    if strictness not in STRICTNESS:
        known = ", ".join(STRICTNESS)
        hint = source.meant(str(strictness), STRICTNESS) or f"; known: {known}"
        raise GrammarError(f"there is no strictness {strictness!r:.40}{hint}")
    row = Style("", "") if style == ARGUMENTS else row_of(style)
    if row is None:
        raise GrammarError(
            f"'{style}' is no style{source.meant(str(style), STYLES)}; known: {', '.join(STYLES)}"
        )
    given = listed(tools)
    closed = extra_keys != "allow"
    functions = [_function(tool, i, closed, digits) for i, tool in enumerate(given)]
    strict = [strictness == "parameter" or _is_strict(tool) for tool in given]
    functions = [(name, p if held else ANYTHING) for (name, p), held in zip(functions, strict, strict=True)]
    names = [name for name, _ in functions]
    check_names(names)
    for i, name in enumerate(names):
        _check_name(row, style, name, i)
    forced = _forced(tool_choice)
    if forced is not None:
        if forced not in names:
            raise GrammarError(
                f"tool_choice names '{forced}'{source.meant(forced, names) or ', which is no tool'}"
            )
        functions = [f for f in functions if f[0] == forced]
    must = forced is not None or tool_choice == "required"
    if must and not functions:
        raise GrammarError("a tool call is required, but there are no tools")
    if style == ARGUMENTS:
        return {
            "type": "structural_tag",
            "format": _arguments(row, functions[0][1], f"the tool {functions[0][0]!r:.80}"),
        }
    if row.parameters == "python":
        functions = [(name, python_calls.parameters(name, schema)) for name, schema in functions]
    tags = [_tag(row, name, schema) for name, schema in functions]
    single = row.single or not parallel or forced is not None
    body: dict[str, Any]
    no_call = {**python_calls.no_call, "excludes": [*never]}
    if strictness == "auto" and tool_choice == "auto" and not any(strict):
        body = {"type": "any_text", "excludes": [*never]}
    elif not tags or tool_choice == "none":
        body = no_call if row.whole else {"type": "any_text", "excludes": [row.open or row.trigger, *never]}
    elif row.open:
        calls = {
            "type": "tags_with_separator",
            "tags": tags,
            "separator": row.separator,
            "at_least_one": True,
            "stop_after_first": single,
        }
        section = {"type": "tag", "begin": row.open, "content": calls, "end": row.close}
        if must:
            body = section
        elif row.whole:
            body = {"type": "or", "elements": [section, no_call]}
        else:
            body = {
                "type": "triggered_tags",
                "triggers": [row.open],
                "tags": [section],
                "stop_after_first": True,
                "excludes": [*never],
            }
    elif must and single:
        body = {"type": "or", "elements": tags}
    else:
        body = {
            "type": "triggered_tags",
            "triggers": [row.trigger],
            "tags": tags,
            "at_least_one": must,
            "stop_after_first": single,
            "excludes": [*never],
        }
    return {"type": "structural_tag", "format": body}


def _tag(row: Style, name: str, schema: Any) -> dict[str, Any]:
    begin, index, rest = row.begin.partition("{index}")
    content = _arguments(row, schema, f"the tool {name!r:.80}")
    if row.excluded:
        content["excludes"] = row.excluded
    if index:
        after = {"type": "const_string", "value": rest.replace("{name}", row.written(name))}
        content = {"type": "sequence", "elements": [{"type": "regex", "pattern": "[0-9]+"}, after, content]}
    return {
        "type": "tag",
        "begin": begin.replace("{name}", row.written(name)),
        "content": content,
        "end": row.end,
    }


# The parameters of a function that lists none.
NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


# The parameters of a function whose calls are not held to their schema: any object.
ANYTHING: dict[str, Any] = {"type": "object", "additionalProperties": True}


# Misspellings of `parameters`.
_PARAMETERS = ("params", "args", "arguments", "schema", "json_schema", "inputschema", "input")
_FIELDS = ("name", "description", "parameters", "strict", "type", "function")


def _arguments(row: Style, schema: Any, what: str) -> dict[str, Any]:
    """Returns the structural-tag format of a call's arguments. `what` names the tool's schema in errors."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    text = properties.get(INPUT) if isinstance(properties, dict) else None
    if not isinstance(text, dict) or not isinstance(text.get(LARK), str):
        return {
            "type": "json_schema",
            "json_schema": schema,
            "style": row.parameters,
            NAMED: what.removeprefix("the "),
        }
    if row.parameters != "json":
        raise ToolError(f"{what} has a Lark grammar, which only styles whose arguments are JSON can write")
    begin = {"type": "regex", "pattern": rf'\{{"{INPUT}": ?'}
    held = {"type": "json_string", "grammar": text[LARK]}
    return {"type": "sequence", "elements": [begin, held, {"type": "const_string", "value": "}"}]}


def _check_name(row: Style, style: str, name: str, i: int) -> None:
    """Raises a ToolError if calls in this style cannot carry the name."""
    try:
        source.sound(name)
    except GrammarError as error:
        raise ToolError(f"the name of tool {i}: {error.message}", i, "name") from None
    mark = row.after_name
    broken = re.search("[\x00-\x1f\x7f]", name)
    if row.quotes or not mark or (not broken and mark not in name):
        return
    what = "a control character" if broken else f"{mark!r}, which ends a name there"
    raise ToolError(
        f"the name of tool {i}, {name!r:.80}, cannot be called in the style '{style}': it has {what}; rename "
        "the tool, or take a style whose calls are JSON",
        i,
        "name",
    )


def misspelled(tool: Any, i: int) -> str:
    """Returns a sentence about a key of a tool's object that is a misspelling of a known one.

    Empty if there is none.
    """
    inner = tool.get("function") if isinstance(tool, dict) else None
    levels = [level for level in (tool, inner) if isinstance(level, dict)]
    bare = all(level.get("parameters") is None for level in levels)
    for level in levels:
        for key in level:
            if key in _FIELDS or not isinstance(key, str):
                continue
            close = difflib.get_close_matches(key.lower(), _FIELDS, n=1, cutoff=0.8)
            meant = "parameters" if bare and key in _PARAMETERS else close[0] if close else ""
            if meant:
                return f"tool {i} has the key {key!r:.40}; did you mean '{meant}'?"
    if isinstance(inner, dict) and inner.get("parameters") is None and "parameters" in tool:
        return f"tool {i} has 'parameters' beside 'function': put them inside it"
    return ""


def _function(tool: Any, i: int, closed: bool, digits: int | None = None) -> tuple[str, Any]:
    if isinstance(tool, types.FunctionType | types.MethodType):
        by_place = [
            p.name for p in inspect.signature(tool).parameters.values() if p.kind is p.POSITIONAL_ONLY
        ]
        if by_place:
            raise GrammarError(
                f"tool {i}, {tool.__name__}, takes {by_place[0]!r} by its place alone, and a call names its "
                "arguments: take the / out of its parameters"
            )
        return tool.__name__, schema_of(tool, closed, digits)[0]
    if callable(tool):
        raise GrammarError(f"tool {i}, {tool!r:.60}, is no function of Python's: wrap it in one, with types")
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    if slip := misspelled(tool, i):
        raise ToolError(slip, i)
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
        raise ToolError(f"tool {i} has no function with a name", i)
    parameters = function.get("parameters")
    if parameters is None:
        return function["name"], NOTHING
    if not isinstance(parameters, dict | bool):
        raise ToolError(
            f"the parameters of tool {i}, {function['name']!r:.80}, are no JSON Schema", i, "parameters"
        )
    return function["name"], closed_parameters(parameters) if closed else parameters


def _is_strict(tool: Any) -> bool:
    """Returns whether a tool asks for arguments by its schema. A Python function does: its types are its
    schema."""
    return not isinstance(tool, dict) or tool.get("function", tool).get("strict") is True


def _forced(choice: Any) -> str | None:
    if isinstance(choice, dict):
        name = name_of(choice)
        if not isinstance(name, str):
            raise GrammarError("tool_choice has no function with a name")
        return name
    if choice in ("auto", "none", "required"):
        return None
    if isinstance(choice, str):
        return choice
    raise GrammarError(f"tool_choice is 'auto', 'none', 'required' or a function, not {choice!r}")


def callable_tools(tools: list[Any], tool_choice: Any) -> list[Any]:
    """Returns the tools that may be called: the one that `tool_choice` names, or all."""
    forced = _forced(tool_choice)
    if forced is None:
        return tools
    return [tool for tool in tools if described(tool)["function"]["name"] == forced]


def arguments_alone(tools: list[Any], tool_choice: Any) -> bool:
    """Returns whether an answer may be the arguments alone.

    The answer may be the arguments alone if one function must be called and its parameters are an object.
    """
    if _forced(tool_choice) is None:
        return False
    called = callable_tools(tools, tool_choice)
    return len(called) == 1 and _is_object(described(called[0])["function"]["parameters"])


def _is_object(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object"


def answer_document(tools: list[Any], tool_choice: Any, style: str) -> Any:
    """Returns the schema that a prompt shows the embedded model.

    This is the schema of a call of one of the tools; with the style `ARGUMENTS`, the schema of the arguments.
    """
    called = callable_tools(listed(tools), tool_choice)
    if style == ARGUMENTS:
        return described(called[0])["function"]["parameters"] if called else None
    return tools_document(list(called or tools))[0]


def described(tool: Any) -> dict[str, Any]:
    """Returns OpenAI's object of a tool. A Python function's docstring becomes its description."""
    name, parameters = _function(tool, 0, False)
    if isinstance(tool, dict):
        inner = tool.get("function", tool)
        about = inner.get("description")
    else:
        about = tool.__doc__
    function = {"name": name, "parameters": parameters}
    if isinstance(about, str) and about.strip():
        function["description"] = inspect.cleandoc(about)
    return {"type": "function", "function": function}
