"""The requests of clients as pydantic models: OpenAI's fields, additional fields of vLLM and llama.cpp, and
structgen's own.

Enters: JSON. Leaves: a model, or pydantic's errors, which `app` words as OpenAI's. Cost: one pass.

The problem. Clients of OpenAI, vLLM and llama.cpp name a constraint in many ways, and send many fields that
mean nothing here. If a constraint is misspelled, or stands in a field of another endpoint, it would constrain
nothing, and the client would not notice.

The idea. Each endpoint has one model. Unknown fields are allowed, and `_checked` looks at each of them before
pydantic does:

    user, store, metadata       taken; they change nothing
    suffix, documents, ...      refused with what to do instead (`_REFUSED`), unless the value is empty
    text in a chat              refused: "it is a field of /v1/responses: use 'response_format'"
    response_fromat             refused: "... is no constraint that this server knows; did you mean
                                'response_format'?" (`_constrains`, `_meant`)

Objects of structgen and vLLM (`Closed`) have no unknown fields at all.

Invariants.
- A field that asks for a constraint or an output that this server lacks is an error. It is never ignored.
- Validating happens on the event loop, so its work has bounds. Lists stop at their first error (`fail_fast`),
  objects are counted before they are looked at (`_few`, `_counted`), and lists and objects have a length at
  most.
- The options of JSON have the names and types of `JsonOptions` (`_json_fields`).

Rejected. Pydantic's own check of long lists: it writes a message for every mistake. With 1,000,000 wrong
items this took 16 to 58 s, in which the server answered no other client.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from ..frontend.tools import Strictness
from ..generation.options import MOST_READS
from ..json_options import SENT_NAMES, JsonOptions, WrittenOptions
from ..sampling.mcmc import Proposal
from ..sampling.methods import Method

T = TypeVar("T")
_FIELDS = 100  # the most fields of a `Closed` object: pydantic would word an error for each unknown one
_BIASES = 10_000  # the most entries of logit_bias
PROMPTS = 128  # the most prompts of a request


def _few(most: int) -> BeforeValidator:
    """Returns a validator that refuses an object with more members, before they are looked at."""

    def counted(value: Any) -> Any:
        if isinstance(value, dict) and len(value) > most:
            raise ValueError(f"at most {most} fields, not {len(value)}")
        return value

    return BeforeValidator(counted)


def _prompts(value: Any) -> Any:
    if isinstance(value, list) and len(value) > PROMPTS and not isinstance(value[0], int):
        raise ValueError(f"a request has 1 to {PROMPTS} prompts, not {len(value)}")
    return value


class Closed(BaseModel):
    """An object without unknown fields."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _counted(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > _FIELDS:
            raise ValueError(f"{len(value)} fields, of which most are unknown")
        return value


Listed = Annotated[list[T], Field(fail_fast=True)]
Choices = Annotated[list[str], Field(fail_fast=True, max_length=100_000)]
Calls = Annotated[list[dict[str, Any]], Field(fail_fast=True, max_length=512)]


def _of_mcp(value: Any) -> Any:
    """Returns the tools from the list that an MCP server gave to a client."""
    return value["tools"] if isinstance(value, dict) and "tools" in value else value


Tools = Annotated[list[dict[str, Any]], Field(fail_fast=True, max_length=512), BeforeValidator(_of_mcp)]


def _no_text(value: Any) -> Any:
    if isinstance(value, str | bool):  # pydantic would take "5" for 5, and true for 1
        raise PydanticCustomError("int_type", "a whole number")
    return value


Whole = Annotated[int, BeforeValidator(_no_text)]
Positive = Annotated[int, Field(ge=1)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Finite = Annotated[float, Field(allow_inf_nan=False)]
# Fields that would change the answer and are not supported, with advice. A null, empty or false value is
# accepted.
_REFUSED = {
    "functions": "use 'tools'",
    "function_call": "use 'tool_choice'",
    "audio": "this server writes text",
    "web_search_options": "this server searches nothing",
    "suffix": "the model fills no gaps",
    "prefix": "use 'continue_final_message'",
    "use_beam_search": "there is no beam search",
    "allowed_token_ids": "use 'logit_bias', or a grammar",
    "bad_words": "use a grammar that does not have them",
    "prompt_logprobs": "use 'echo' with 'logprobs' of /v1/completions",
    "chat_template": "templates are the server's, not the request's",
    "documents": "put them into the messages",
    "previous_response_id": "this server keeps no responses: send the whole input",
    "conversation": "this server keeps no conversations: send the whole input",
    "background": "this server keeps no responses",
}
_RESPONSES = "it is a field of /v1/responses"
_CHATS = "it is a field of /v1/chat/completions"
# More such fields, for the two older endpoints: fields that belong to other endpoints.
_NOT_IN_GENERATION = {
    **_REFUSED,
    "text": f"{_RESPONSES}: use 'response_format'",
    "max_output_tokens": f"{_RESPONSES}: use 'max_tokens'",
    "input": _RESPONSES,
    "instructions": _RESPONSES,
    "extra_body": "OpenAI's client has this argument: put what it holds beside the other fields",
}
# Fields of other servers whose names are close to our own. They are no misspellings, and change nothing here.
_THEIRS = ("repeat_penalty", "models", "parse_tool_calls")
# An unknown field with one of these beginnings counts as a misspelled constraint.
_CONSTRAINING = ("guided_", "structured_", "grammar", "json_", "response_format", "regex", "choice")
# Names of constraints without underscores: our own, and those of other servers.
_PLAIN = (
    "responseformat", "structuredoutputs", "structuredoutput", "guidedjson", "guidedregex", "guidedchoice",
    "guidedgrammar", "grammar", "jsonschema",
)  # fmt: skip
_ELSEWHERE = (
    "responseschema", "outputschema", "outputformat", "textformat", "format", "schema", "json", "jsonmode",
    "ebnf", "gbnf", "lark", "regex", "pattern", "choices",
)  # fmt: skip
_HARMLESS = ("guided_decoding_backend", "guided_decoding_disable_fallback")
_MOST = 100  # the most unknown fields, because each is compared with the known ones on the event loop
_LONG = 40  # characters; a longer name is no misspelling of a known field


class Open(BaseModel):
    """An object that may have unknown fields."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")


class Known(Open):
    """An open object. It refuses fields that look misspelled, and the unsupported fields of `refused`."""

    refused: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        return _checked(cls, value, cls.refused)


class ContentPart(Open):
    """A piece of a message's content."""

    type: str
    text: str | None = None


class Message(Open):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | Annotated[list[ContentPart], Field(fail_fast=True, max_length=10_000)] | None = None
    name: str | None = None
    tool_calls: Calls | None = None
    tool_call_id: str | None = None

    @staticmethod
    def call(ident: object, name: str, arguments: str) -> dict[str, Any]:
        """Returns a call of `tool_calls`."""
        function = {"name": name, "arguments": arguments}
        return {"id": str(ident or ""), "type": "function", "function": function}

    def text(self) -> str:
        """Returns the content as one text. Raises a ValueError if a part has no text."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        for part in self.content:
            if part.text is None:
                raise ValueError(f"the model reads text, not a part of type {part.type!r:.80}")
        return "".join(part.text or "" for part in self.content)


class StreamOptions(BaseModel):
    include_usage: bool = False


class StructuredOutputs(Closed):
    """vLLM's field: one of the constraints, and how JSON is spelled."""

    model_config: ClassVar[ConfigDict] = ConfigDict(populate_by_name=True)

    json_: Any = Field(None, alias="json")
    regex: str | None = None
    choice: Choices | None = None
    grammar: str | None = None
    json_object: bool | None = None
    structural_tag: Any = None
    whitespace_pattern: str | None = None
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    disable_fallback: bool = False

    @field_validator("disable_additional_properties")
    @classmethod
    def _said_in_the_schema(cls, value: bool) -> bool:
        if value:
            raise ValueError("'disable_additional_properties' is not supported: say so in the schema")
        return value


class SamplingMethod(Closed):
    """`sg.sample` instead of token-by-token masking: see docs/sampling.md."""

    method: Method = "auto"
    budget: Literal["mask", "reject"] = "mask"
    until_tv: Annotated[float, Field(gt=0, lt=1)] | None = None
    max_trials: Annotated[int, Field(ge=1, le=100_000)] | None = None
    steps: Annotated[int, Field(ge=1, le=1000)] = 10
    proposal: Proposal = "restart"


def _json_fields() -> dict[str, Any]:
    """Returns the options of JSON that a request may have, with the types of `JsonOptions`."""
    types = get_type_hints(JsonOptions) | {"whitespace": Annotated[str, Field(max_length=1000)]}
    defaults = WrittenOptions()
    return {name: (types[name], getattr(defaults, name)) for name in SENT_NAMES}


if TYPE_CHECKING:
    _JsonFields = Closed
else:
    _JsonFields = create_model("_JsonFields", __base__=Closed, **_json_fields())


class ReasoningOptions(Open):
    """The object `reasoning`, as OpenAI and OpenRouter have it."""

    effort: Effort | None = None
    max_tokens: Annotated[Whole, Field(ge=0)] | None = None
    enabled: bool | None = None
    exclude: bool = False


class ThinkingOptions(Open):
    """The object `thinking`, as Anthropic, DeepSeek and GLM have it."""

    type: Literal["enabled", "disabled", "adaptive"] | None = None
    budget_tokens: Annotated[Whole, Field(ge=0)] | None = None
    display: str | None = None


class OwnOptions(_JsonFields):
    """The field `structgen`: the options of JSON, and others that OpenAI's interface does not have."""

    sampling: SamplingMethod | None = None
    speculate: Literal["auto"] | Annotated[list[str], Field(min_length=1, max_length=16)] | None = None
    masked_logprobs: bool = False
    complete: bool = True
    answer_tokens: Annotated[Whole, Field(ge=0)] | None = None
    confidence: Annotated[Whole, Field(ge=0, le=MOST_READS)] = 0
    tool_strictness: Strictness | None = None

    def json_options(self, **others: Any) -> dict[str, Any]:
        """Returns arguments of `Compiler.json_schema`. `others` replace options that the request does not
        give."""
        found = self.model_dump(include=set(_JsonFields.model_fields))
        return found | {name: value for name, value in others.items() if name not in self.model_fields_set}


class Constrained(BaseModel):
    """Every field that asks for a constraint."""

    response_format: dict[str, Any] | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: Any = None
    guided_regex: str | None = None
    guided_choice: Choices | None = None
    guided_grammar: str | None = None
    guided_whitespace_pattern: str | None = None
    grammar: str | None = None
    json_schema: Any = None
    structgen: OwnOptions = OwnOptions()

    @field_validator("structgen", mode="before")
    @classmethod
    def _none_is_default(cls, value: Any) -> Any:
        return {} if value is None else value


def _some_stops(value: Any) -> Any:
    stops = [value] if isinstance(value, str) else value or []
    if len(stops) > 64 or any(not 0 < len(stop) <= 1000 for stop in stops):
        raise ValueError("stop strings are at most 64 texts of 1 to 1000 characters")
    return value


class Drawn(Known):
    """The fields of every endpoint that generates: the model, and how its tokens are drawn."""

    model: str | None = None
    temperature: Annotated[Finite, Field(ge=0)] | None = None
    top_p: Annotated[Finite, Field(ge=0, le=1)] | None = None
    seed: int | None = None
    stream: bool | None = None


class Calling(Known):
    """The fields of tools as OpenAI has them."""

    tools: Tools | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None


class Thinks(Known):
    """The fields of thoughts that both older endpoints have."""

    reasoning_effort: Effort | None = None
    reasoning: ReasoningOptions | None = None
    thinking_token_budget: Annotated[Whole, Field(ge=0)] | None = None
    include_reasoning: bool = True
    separate_reasoning: bool = True


class Generation(Drawn, Constrained):
    """The fields that both older endpoints have."""

    refused: ClassVar[Mapping[str, str]] = _NOT_IN_GENERATION

    top_k: int | None = None
    min_p: Annotated[Finite, Field(ge=0, le=1)] | None = None
    n: Annotated[Whole, Field(ge=1, le=128)] | None = None
    stop: Annotated[str | Listed[str] | None, AfterValidator(_some_stops)] = None
    stop_token_ids: Annotated[list[int], Field(fail_fast=True, max_length=64)] | None = None
    include_stop_str_in_output: bool = False
    max_tokens: Annotated[Whole, Field(ge=0)] | None = None
    min_tokens: Annotated[Whole, Field(ge=0)] | None = None
    ignore_eos: bool | None = None
    frequency_penalty: Annotated[Finite, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[Finite, Field(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[Finite, Field(gt=0, le=10)] | None = None
    logit_bias: Annotated[dict[str, Annotated[Finite, Field(ge=-100, le=100)]], _few(_BIASES)] | None = None
    stream_options: StreamOptions | None = None

    @property
    def stops(self) -> list[str]:
        return [self.stop] if isinstance(self.stop, str) else list(dict.fromkeys(self.stop or []))


def _constrains(name: str) -> bool:
    """Returns whether an unknown field is a constraint of another server, or a misspelled one of ours."""
    plain = re.sub("[^a-z]", "", name[: _LONG + 1].lower())
    return (
        name.startswith(_CONSTRAINING)
        or plain in _ELSEWHERE
        or (len(name) <= _LONG and bool(difflib.get_close_matches(plain, _PLAIN, n=1, cutoff=0.85)))
    )


def _no_field(name: str, words: str) -> PydanticCustomError:
    """Returns the error about a field that the model of the endpoint lacks."""
    return PydanticCustomError("no_field", "{words}", {"field": name, "words": words})


def _meant(name: str, known: Iterable[str]) -> str:
    """Returns the field that a name is a misspelling of; empty if there is none."""
    if len(name) > _LONG or name in _THEIRS:
        return ""
    close = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.82)
    return close[0] if close else ""


def _checked(cls: type[BaseModel], value: Any, refused: Mapping[str, str]) -> Any:
    """Returns the body. Raises an error if a field is not supported, or is a misspelling of a known one."""
    if isinstance(value, dict):
        unknown = value.keys() - cls.model_fields.keys()
        if len(unknown) > _MOST:
            raise ValueError(
                f"the body has {len(unknown)} fields that this server does not know: leave them out"
            )
        for name, asked in value.items():
            if name not in unknown or asked is None or asked is False:
                continue
            if name in refused and asked not in ("", [], {}):
                raise _no_field(name, f"'{name}' is not supported: {refused[name]}")
            if name in _HARMLESS:
                continue
            shown = str(name).encode("ascii", "backslashreplace").decode()[:80]
            meant = _meant(str(name), cls.model_fields)
            hint = f"; did you mean '{meant}'?" if meant else ""
            if _constrains(str(name)):
                raise _no_field(shown, f"'{shown}' is no constraint that this server knows{hint}")
            if meant:
                raise _no_field(shown, f"'{shown}' is no field here{hint}")
    return value


class ChatRequest(Generation, Calling, Thinks):
    """`POST /v1/chat/completions`."""

    refused: ClassVar[Mapping[str, str]] = {**_NOT_IN_GENERATION, "prompt": "use 'messages'"}
    messages: Annotated[list[Message], Field(fail_fast=True, min_length=1, max_length=10_000)]
    max_completion_tokens: Annotated[Whole, Field(ge=0)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    modalities: Listed[Literal["text"]] | None = None
    thinking: ThinkingOptions | None = None


class CompletionRequest(Generation, Thinks):
    """`POST /v1/completions`."""

    refused: ClassVar[Mapping[str, str]] = {
        **_NOT_IN_GENERATION,
        **dict.fromkeys(("messages", "tools", "tool_choice"), _CHATS),
        "max_completion_tokens": "use 'max_tokens'",
    }
    prompt: Annotated[str | Listed[int] | Listed[str] | Listed[Listed[int]], BeforeValidator(_prompts)] = ""
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool | None = None
    best_of: Annotated[int, Field(ge=1)] | None = None
    add_special_tokens: bool = True

    @property
    def thinks(self) -> bool:
        """Whether the request mentions thoughts. If it does not, the text begins with the answer."""
        asked = (self.reasoning_effort, self.reasoning, self.thinking_token_budget)
        return any(field is not None for field in asked)

    @field_validator("logprobs", mode="before")
    @classmethod
    def _flag(cls, value: Any) -> Any:
        return (1 if value else None) if isinstance(value, bool) else value


class ResponseText(Known):
    format: dict[str, Any] | None = None
    verbosity: str | None = None


_NOT_IN_RESPONSES = {
    **_REFUSED,
    **dict.fromkeys(ChatRequest.model_fields.keys() - {"stream_options", "reasoning"}, _CHATS),
    "messages": "use 'input'",
    "extra_body": _NOT_IN_GENERATION["extra_body"],
    **dict.fromkeys(("max_tokens", "max_completion_tokens"), "use 'max_output_tokens'"),
}


class ResponsesRequest(Drawn, Calling, Constrained):
    """`POST /v1/responses`. The fields that clients need without stored responses."""

    refused: ClassVar[Mapping[str, str]] = _NOT_IN_RESPONSES

    input: str | Annotated[list[dict[str, Any]], Field(fail_fast=True, max_length=10_000)]
    instructions: str | None = None
    max_output_tokens: Annotated[Whole, Field(ge=1)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    text: ResponseText | None = None
    reasoning: ReasoningOptions | None = None
    metadata: dict[str, Any] | None = None


class OutputConfig(Open):
    """The object `output_config` of Anthropic."""

    effort: Effort | None = None
    format: dict[str, Any] | None = None


_NOT_IN_MESSAGES = {
    **_REFUSED,
    "stop": "use 'stop_sequences'",
    "response_format": "use 'output_config.format'",
    "max_completion_tokens": "use 'max_tokens'",
    **dict.fromkeys(("n", "logprobs", "top_logprobs", "logit_bias", "reasoning_effort"), _CHATS),
    **dict.fromkeys(("input", "instructions", "max_output_tokens", "text"), _RESPONSES),
    "container": "this server runs no code",
    "context_management": "this server edits no context: send what the model is to read",
}


class CountRequest(Drawn):
    """`POST /v1/messages/count_tokens`: the fields of Anthropic's request without the limit of tokens."""

    refused: ClassVar[Mapping[str, str]] = _NOT_IN_MESSAGES

    messages: Annotated[list[dict[str, Any]], Field(fail_fast=True, min_length=1, max_length=10_000)]
    system: str | Listed[dict[str, Any]] | None = None
    tools: Tools | None = None
    tool_choice: dict[str, Any] | None = None
    thinking: ThinkingOptions | None = None
    output_config: OutputConfig | None = None
    top_k: int | None = None
    stop_sequences: Annotated[Listed[str] | None, AfterValidator(_some_stops)] = None
    metadata: dict[str, Any] | None = None
    structured_outputs: StructuredOutputs | None = None
    structgen: OwnOptions = OwnOptions()


class MessagesRequest(CountRequest):
    """`POST /v1/messages`."""

    max_tokens: Annotated[Whole, Field(ge=1)]
