"""What engines do to the keywords of a JSON Schema: the table of `structgen lint --for`.

Enters: a schema and a provider's name. Leaves: findings, each with the rule's address. Cost: a containment
for each keyword that the provider does not enforce.

A section of `PROVIDERS` is what one provider's public text says; a keyword without a rule there has none
here. For each keyword the schema without it is compared with the schema: if both are proved equal, leaving it
out is the rewrite, and else the shortest value that only the schema without it takes is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ._checks import one_of
from ._json_scan import pointer_of
from ._stack import roomy
from .comparing import contains
from .errors import GrammarError
from .linting import Finding
from .operands import operand
from .testdata import _removed, _schemas

__all__ = ["PROVIDERS", "lint_for"]

Effect = Literal["refuses", "drops", "misreads"]


@dataclass(frozen=True, slots=True)
class Provider:
    """The rules of one provider: where its text stands, and the keywords by what becomes of them."""

    address: str
    rules: dict[str, tuple[Effect, str | None]]  # the second: only beside this `type`


def _all(effect: Effect, *keywords: str, beside: str | None = None) -> dict[str, tuple[Effect, str | None]]:
    return dict.fromkeys(keywords, (effect, beside))


_CONDITIONS = ("if", "then", "else", "dependentSchemas")
_CONTAINS = ("contains", "minContains", "maxContains")
PROVIDERS: dict[str, Provider] = {
    # It enforces or gives an error; these are not in its list of supported features.
    "llguidance": Provider(
        "https://github.com/guidance-ai/llguidance/blob/main/docs/json_schema.md",
        _all(
            "refuses", *_CONDITIONS, *_CONTAINS, "not", "uniqueItems", "propertyNames", "dependentRequired",
            "unevaluatedItems", "unevaluatedProperties",
        ),
    ),
    # "Unsupported features are skipped silently", and prefixItems "is broken".
    "llama.cpp": Provider(
        "https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md",
        _all("drops", *_CONDITIONS, "contains", "minContains", "not", "uniqueItems", "patternProperties")
        | _all("misreads", "prefixItems"),
    ),
    # has_xgrammar_unsupported_json_features
    "vllm-xgrammar": Provider(
        "https://github.com/vllm-project/vllm/blob/main/vllm/v1/structured_output/backend_xgrammar.py",
        _all("refuses", *_CONTAINS, "uniqueItems", beside="array")
        | _all("refuses", "multipleOf", beside="number"),
    ),
}  # fmt: skip


@roomy
def lint_for(schema: Any, provider: str, **options: Any) -> list[Finding]:
    """What a provider does not enforce in a schema.

    Args:
        schema: a JSON Schema or a Python type. provider: a name in `PROVIDERS`.
        options: `draft`, `registry` and `formats`.

    Raises:
        ValueError: an unknown provider. GrammarError: a malformed schema.
    """
    one_of("provider", provider, tuple(PROVIDERS))
    side, row = operand(schema, **options), PROVIDERS[provider]
    found = []
    for path, node in _schemas(side.document, ()):
        kinds = node.get("type")
        types = {kinds} if isinstance(kinds, str) else set(kinds) if isinstance(kinds, list) else set()
        types |= {"number"} if "integer" in types else set()
        for keyword in node:
            effect, beside = row.rules.get(keyword, (None, None))
            if effect is None or (beside is not None and beside not in types):
                continue
            change = _rewrite(side.document, (*path, keyword), options)
            words = f"{provider} {effect} it ({row.address}); {change}"
            level: Literal["error", "warning"] = "error" if effect == "refuses" else "warning"
            found.append(Finding(pointer_of(path), keyword, level, words))
    return found


def _rewrite(document: Any, path: tuple[str | int, ...], options: dict[str, Any]) -> str:
    """What leaving the keyword out changes."""
    without = _removed(document, path)
    try:
        wider, narrower = contains(document, without, **options), contains(without, document, **options)
    except GrammarError as error:
        return f"what leaving it out changes is not known: {error.message}"
    if wider and narrower:
        return "leave it out: the schema without it is proved equal"
    if wider.witness is not None:
        return f"without it {wider.witness} is valid, too"
    if narrower.witness is not None:
        return f"without it {narrower.witness} is no longer valid"
    return f"what leaving it out changes is not known: {wider.reason or narrower.reason}"
