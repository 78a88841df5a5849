"""Turns every failure into an error in the form of OpenAI's errors. Anthropic's errors have the same form.

Enters: an exception. Leaves: an `ApiError`: a status and a body {"type": "error", "error": {"message",
"type", "param", "code"}}, where errors of a grammar add the place (`keyword`, `pointer`, `line`, `column`,
`offset` in bytes) and `reason`, the message without the place. Cost: nothing. A client sees the message of
an exception of this package and never a traceback.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from ..errors import (
    BudgetExceeded,
    GrammarError,
    MissingDependency,
    SchemaTooComplex,
    StructgenError,
    UnsatisfiableSchema,
    UnsupportedSchema,
)
from ..lm.base import ContextTooLong, LanguageModelError

log: logging.Logger = logging.getLogger("structgen.serve")

_DEFAULT = {404: "not_found", 405: "method_not_allowed", 500: "internal_error"}
_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
# For each limit: the advice for a client's program, and the advice for the person who starts the server.
_FIXES = (
    (
        "raise Limits(mask=...), or compile with on_limit='subset'",
        "start the server with a larger --mask-work",
    ),
    ("; tokens_needed() tokens are known to suffice", ""),
    ("raise Limits(mask=...)", "start the server with a larger --mask-work"),
    ("raise Limits(compile=...)", "start the server with a larger --compile-work"),
    ("raise cache_bytes", "start the server with a larger --grammar-megabytes"),
    ("; name its directory in `import_paths` (else only the grammars of Lark itself are found)", ""),
    ("pass it in `registry`", "put it into the schema, below '$defs'"),
)
_CODES = (
    (UnsupportedSchema, "unsupported_schema"),
    (SchemaTooComplex, "schema_too_complex"),
    (UnsatisfiableSchema, "unsatisfiable_schema"),
    (GrammarError, "invalid_grammar"),
    (BudgetExceeded, "grammar_too_costly"),
    (MissingDependency, "not_installed"),
)


class ApiError(Exception):
    """An error as an answer.

    Attributes:
        status: the status of HTTP.
        param: the field of the request at fault, or None.
        code: one word for programs; None: that of the status.
        details: more fields of the error object.
        retry_after: seconds after which the same request may succeed, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        param: str | None = None,
        code: str | None = None,
        details: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.param = param
        self.code: str = code or _DEFAULT.get(status, "invalid_request")
        self.details: dict[str, Any] = details or {}
        self.retry_after = retry_after

    @property
    def body(self) -> dict[str, Any]:
        kind = _TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        fields = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return {"type": "error", "error": {**fields, **self.details}}


def busy(message: str, status: int = 429) -> ApiError:
    """Returns the error for a request for which the server has no room now."""
    return ApiError(message, status=status, code="server_busy", retry_after=1)


def late(seconds: float, what: str = "the request") -> ApiError:
    """Returns the error of a request, or of `what`, that took longer than its limit."""
    return ApiError(
        f"{what} took more than {seconds:g} seconds; ask for less, or start the server with a larger "
        "--request-seconds",
        status=408,
        code="request_timeout",
    )


def of_constraint(error: Exception, param: str) -> ApiError:
    """Returns the error of a client's constraint, from the error that the compile raised. The fault is the
    client's, so the status is 400."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), "")
    if not code:
        code = "invalid_grammar"
        if isinstance(error, (RecursionError, MemoryError)):
            return ApiError("the constraint is nested too deeply or too large", param=param, code=code)
        if not isinstance(error, (StructgenError, ValueError)):
            log.warning("a constraint raised %s", type(error).__name__, exc_info=error)
            return ApiError("the constraint is malformed", param=param, code=code)
    details: dict[str, Any] = {}
    message = _fixed(str(error))
    if code in ("schema_too_complex", "grammar_too_costly"):
        details["pointer"] = ""
        if not re.search("simplify|raise|start the server", message):
            work = "compile" if code == "schema_too_complex" else "mask"
            message += f"; simplify the constraint, or start the server with a larger --{work}-work"
    for name in ("keyword", "pointer", "line", "column", "offset"):
        value = getattr(error, name, None)
        if value is not None:
            details[name] = value
    if isinstance(error, GrammarError):
        details["reason"] = _fixed(error.message)
    return ApiError(message, param=param, code=code, details=details)


def _fixed(message: str) -> str:
    for theirs, ours in _FIXES:
        message = message.replace(theirs, ours)
    return message


def of_prompt(error: Exception, param: str) -> ApiError:
    """Returns the error of a client's prompt, from the error that reading the prompt raised."""
    if isinstance(error, ContextTooLong):
        return ApiError(str(error), param=param, code="context_length_exceeded")
    if isinstance(error, (LanguageModelError, ValueError)):
        return ApiError(str(error), param=param, code="invalid_prompt")
    if type(error).__module__.startswith("jinja2"):  # a template may refuse an order of roles
        return ApiError(f"the model's chat template refuses these messages: {error}", param=param)
    log.warning("a prompt raised %s", type(error).__name__, exc_info=error)
    return ApiError("the model's chat template cannot write these messages", param=param)


def unexpected(error: BaseException) -> ApiError:
    """Returns the error for a bug in the server."""
    if isinstance(error, ApiError):
        return error
    log.error("a request failed", exc_info=error)
    if isinstance(error, StructgenError):
        return ApiError(str(error), status=500, code="generation_failed")
    return ApiError("the server failed on this request; its log has more", status=500, code="internal_error")
