"""`/playground/api/...`: the requests of the playground's page.

Enters: a constraint as a person types it, a prompt, a document. Leaves: the engine's findings, with places;
generations as streams. Cost: a compile, in the pool of all compiles; a generation costs as much as a request
of another client.

    info       the model, its limits, methods, drafters; examples: those of the package
    compile    what is enforced and what is not, timings, the least number of tokens; or the error's place
    check      a document under the constraint: where it stops, why, what could stand there
    look       after some tokens: what may come next, and why others may not
    generate   a text token by token, or samples: server-sent events
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request
from pydantic import Field
from starlette.responses import Response

from .. import __version__
from ..frontend.tools import STYLES
from ..generation.options import MOST_READS
from ..grammar import CompiledGrammar
from ..sampling.methods import METHODS, Method
from ..speculation.options import NAMED
from . import places
from .answering import Json, events, while_there
from .constraints import RequestConstraint, ToolUse, request_constraint, tool_use, with_tools
from .errors import ApiError
from .examples import examples
from .inspecting import checked, looked, reported
from .requests import Closed, Constrained, Finite, OwnOptions, Positive
from .service import Service
from .showing import generation

API = "/playground/api"
_TEXT = 1_000_000  # characters of a constraint or a document
_SAMPLES = 500

Text = Annotated[str, Field(max_length=_TEXT)]
Ids = Annotated[list[int], Field(fail_fast=True, max_length=20_000)]


class Typed(Closed):
    """The constraint in the page's editor."""

    kind: Literal["schema", "regex", "grammar", "tools", "none"]
    text: Text = ""
    property_order: Literal["schema", "any"] = "schema"
    whitespace: Annotated[str, Field(max_length=1000)] = "compact"
    tool_choice: Annotated[str, Field(max_length=200)] = "auto"


class _Checked(Closed):
    constraint: Typed
    document: Text


class _Looked(Closed):
    constraint: Typed
    tokens: Ids
    refused: Annotated[list[int], Field(fail_fast=True, max_length=16)] = []
    left: Annotated[int, Field(ge=0)] | None = None


class Asked(Closed):
    """The request for a generation."""

    constraint: Typed
    prompt: Text
    chat: bool = True
    masked: bool = True  # False: the model gets the same prompt, and any text is allowed
    method: Literal["plain", Method] = "plain"
    speculate: Literal["auto"] | Annotated[list[str], Field(min_length=1, max_length=16)] | None = None
    n: Annotated[int, Field(ge=1, le=_SAMPLES)] = 1
    seed: int | None = None
    temperature: Annotated[Finite, Field(ge=0, le=100)] | None = None
    top_k: Positive | None = None
    top_p: Annotated[Finite, Field(gt=0, le=1)] | None = None
    max_tokens: Positive = 256
    complete: bool = True
    confidence: Annotated[int, Field(strict=True, ge=0, le=MOST_READS)] = (
        0  # prefixes to read for each leaf of the answer
    )


def add_routes(app: FastAPI, service: Service) -> None:
    async def info() -> Response:
        return Json(
            {
                "version": __version__,
                "model": service.name,
                "vocabulary": service.lm.vocabulary.vocab_size,
                "context": service.lm.max_context,
                "max_tokens": service.options.max_tokens,
                "temperature": service.temperature,
                "tool_style": service.tool_style,
                "tool_styles": list(STYLES),
                "methods": {name: row.says for name, row in METHODS.items() if row.name == name},
                "drafters": [*NAMED, *service.drafters],
                "samples": _SAMPLES,
            }
        )

    async def listed() -> Response:
        return Json({"examples": await service.readers.run(examples, "reading the examples")})

    async def told(request: Request, task: Callable[[], Any], what: str, param: str) -> Response:
        return Json(await while_there(request, service.workers.run(task, what, param)))

    def grammar_of(typed: Typed, document: bool = False) -> CompiledGrammar | None:
        wanted = constraint(service, typed, document)
        return None if wanted is None else placed(service, wanted, typed)

    async def compile(body: Typed, request: Request) -> Response:
        return await told(request, lambda: _report(service, body), "compiling the constraint", "text")

    async def check(body: _Checked, request: Request) -> Response:
        def task() -> dict[str, Any]:
            # A person writes blanks between tokens, and spells numbers and strings as JSON allows.
            loose = body.constraint.model_copy(update={"whitespace": "flexible"})
            return checked(grammar_of(loose, True), body.document, loose.text, loose.kind == "schema")

        return await told(request, task, "checking the document", "document")

    async def look(body: _Looked, request: Request) -> Response:
        def task() -> dict[str, Any]:
            typed = body.constraint
            grammar, is_schema = grammar_of(typed), typed.kind == "schema"
            return looked(service, grammar, body.tokens, body.refused, body.left, is_schema)

        return await told(request, task, "explaining the place", "tokens")

    async def generate(body: Asked, request: Request) -> Response:
        def read() -> tuple[RequestConstraint | None, ToolUse | None]:
            return constraint(service, body.constraint), tools_of(service, body.constraint)

        wanted, tools = await service.readers.run(read, "reading the constraint", "text")
        try:
            run, items = await while_there(request, generation(service, body, wanted, tools))
        except ApiError as error:
            raise with_place(error, body.constraint) from None
        return events(run, items, service)

    add = {"include_in_schema": False}
    app.add_api_route(f"{API}/info", info, methods=["GET"], **add)
    app.add_api_route(f"{API}/examples", listed, methods=["GET"], **add)
    for name, endpoint in (("compile", compile), ("check", check), ("look", look), ("generate", generate)):
        app.add_api_route(f"{API}/{name}", endpoint, methods=["POST"], **add)


def constraint(service: Service, typed: Typed, document: bool = False) -> RequestConstraint | None:
    """Returns the constraint in an editor's text; None if any text is allowed.

    Args:
        document: JSON may be spelled in every way, where a person writes it.

    Raises:
        ApiError: with the place in the text.
    """
    if typed.kind == "none":
        return None
    if typed.kind == "tools":
        use = tools_of(service, typed)
        assert use is not None
        return replace(with_tools(use, None), param="text")
    how = {"property_order": typed.property_order, "whitespace": typed.whitespace}
    if document:
        how |= {"numbers": "any", "strings": "any"}
    asked = Constrained(structgen=OwnOptions.model_validate(how))
    if typed.kind == "schema":
        asked.json_schema = _json(typed.text, "the schema")
        if asked.json_schema == {}:
            # `json_schema` may be the schema True; this True keeps the field from counting as absent.
            asked.json_schema = True
    elif typed.kind == "regex":
        asked.guided_regex = typed.text
    elif not typed.text.strip():
        raise ApiError("the grammar is empty", param="text", code="invalid_grammar")
    else:
        asked.grammar = typed.text
    found = request_constraint(asked)
    if found is None:
        raise ApiError("the schema is null: a schema is an object or a boolean", param="text")
    return replace(found, param="text")


def tools_of(service: Service, typed: Typed) -> ToolUse | None:
    """Returns the tools of an editor's text: OpenAI's list, also inside an object with `tools`."""
    if typed.kind != "tools":
        return None
    found = _json(typed.text, "the list of tools")
    if isinstance(found, dict):
        found = found.get("tools")
    if not isinstance(found, list) or not found or not all(isinstance(tool, dict) for tool in found):
        raise ApiError(
            'the tools are a list of objects: {"type": "function", "function": {...}}', param="text"
        )
    choice: Any = typed.tool_choice
    if choice not in ("auto", "none", "required"):
        choice = {"type": "function", "function": {"name": choice}}
    return tool_use(found, choice, True, service.tool_style)


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = places.at(text, min(error.pos, len(text))).told()
        raise ApiError(
            f"{what} is not JSON: {error.msg}",
            param="text",
            code="invalid_grammar",
            details={"reason": f"{what} is not JSON: {error.msg}", "place": place},
        ) from None
    except (ValueError, RecursionError):
        raise ApiError(f"{what} is nested too deeply", param="text", code="invalid_grammar") from None


def placed(service: Service, wanted: RequestConstraint, typed: Typed) -> CompiledGrammar:
    """Returns the compiled grammar. Raises an ApiError that has a place in the editor's text."""
    try:
        return service.grammars.compiled(wanted).grammar
    except ApiError as error:
        raise with_place(error, typed) from None


def with_place(error: ApiError, typed: Typed) -> ApiError:
    """Returns the error, with the span of the editor's text at fault."""
    if error.param == "text" and "place" not in error.details:
        if typed.kind == "tools":  # the pointer begins at the parameters of one tool
            pointer, keyword = (error.details.get(name) for name in ("pointer", "keyword"))
            below = f"/parameters{pointer}/{keyword}" if keyword else ""
            place = places.Pointers(typed.text).below(below) if below else None
        else:
            place = places.of_error(error, typed.text)
        if place is not None:
            error.details["place"] = place.told()
    return error


def _report(service: Service, typed: Typed) -> dict[str, Any]:
    wanted = constraint(service, typed)
    return reported(lambda: None if wanted is None else placed(service, wanted, typed), typed.text)
