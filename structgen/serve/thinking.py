"""The wishes of a request about the thoughts in front of its answer, as vLLM, SGLang, OpenAI and others spell
them.

Enters: a request, the model's `Reasoning`. Leaves: `Thinking`. Cost: nothing.

    off       reasoning_effort "none", reasoning.effort "none", reasoning.enabled false, thinking.type
              "disabled", chat_template_kwargs.enable_thinking or .thinking false, a budget of 0
    budget    thinking_token_budget, reasoning.max_tokens, thinking.budget_tokens,
              chat_template_kwargs.thinking_budget; of several the smallest
    hidden    include_reasoning false, reasoning.exclude true
    within    separate_reasoning false: thoughts and their marks are part of the content

An effort goes to the chat template alone and sets no limit. These wishes have no effect on a model that does
not think.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..reasoning import Reasoning
from .errors import ApiError
from .requests import ChatRequest, CompletionRequest

_SWITCHES = ("enable_thinking", "thinking")  # names of the switches in chat templates


@dataclass(frozen=True, slots=True)
class Thinking:
    """How a request wants its thoughts.

    Attributes:
        reasoning: the marks of thoughts; None: the model does not think.
        answer_tokens: the tokens that thoughts leave to the answer; None: a quarter of the limit.
        apart: whether thoughts are reported separately from the content.
        shown: whether the answer contains the thoughts.
        template: arguments of the chat template.
    """

    reasoning: Reasoning | None = None
    answer_tokens: int | None = None
    apart: bool = True
    shown: bool = True
    template: Mapping[str, Any] = field(default_factory=dict)


def thinking_of(model: Reasoning | None, request: ChatRequest | CompletionRequest) -> Thinking:
    """Reads a request's wishes about thoughts. Raises an ApiError if a field of the chat template has a wrong
    type."""

    def said(name: str, usual: Any = None) -> Any:
        """Returns the value of a field that the endpoint knows. Other fields are accepted and ignored."""
        return getattr(request, name) if name in type(request).model_fields else usual

    asked, thinking = request.reasoning, said("thinking")
    given: dict[str, Any] = dict(said("chat_template_kwargs") or {})
    effort = said("reasoning_effort") or (asked.effort if asked is not None else None)
    budgets = [said("thinking_token_budget"), given.get("thinking_budget")]
    switches = [given.get(name) for name in _SWITCHES]
    for name in _SWITCHES:
        if not isinstance(given.get(name), bool | None):
            raise ApiError(f"'{name}' is true or false", param=f"chat_template_kwargs.{name}")
    if budgets[1] is not None and (isinstance(budgets[1], bool) or not isinstance(budgets[1], int)):
        raise ApiError(
            "'thinking_budget' is a number of tokens", param="chat_template_kwargs.thinking_budget"
        )
    if asked is not None:
        budgets.append(asked.max_tokens)
        switches.append(asked.enabled)
    if thinking is not None:
        budgets.append(thinking.budget_tokens)
        switches.append(None if thinking.type is None else thinking.type != "disabled")
    budget = min((b for b in budgets if b is not None and b >= 0), default=None)
    off = effort == "none" or False in switches or budget == 0
    template = {"reasoning_effort": effort} if effort is not None else {}
    if off:
        template |= dict.fromkeys(_SWITCHES, False)
    template |= given
    shown = said("include_reasoning", True) and not (asked is not None and asked.exclude)
    reasoning = model
    if reasoning is not None and off:
        reasoning = replace(reasoning, max_tokens=0, required=False)
    elif reasoning is not None and budget is not None:
        reasoning = replace(reasoning, max_tokens=budget)
    apart = said("separate_reasoning", True)
    return Thinking(reasoning, request.structgen.answer_tokens, apart, shown, template)
