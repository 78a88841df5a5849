"""The grammars of a server. A grammar is compiled with a little work first, then with more if needed, and is
kept if it was ready quickly.

Enters: the constraint of a request. Leaves: a `ServedGrammar` whose first mask is made; an `ApiError` that
names the field at fault. Cost: a compile, or a look-up by the constraint's key.

A look (`look=True`) tries everything that a request needs within the work of `_LOOK`. If the look left
nothing out, the grammar is kept and gets the server's limits, so it is compiled once. If the look left
something out, its grammar would lack texts, so `TooMuch` is raised.

Every grammar has a compiler of its own. Grammars of one compiler wait for each other's masks and share its
memory. With separate compilers, the server can drop a large grammar without harm to the others.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..compiler import Compiler
from ..errors import BudgetExceeded, GrammarError, SchemaTooComplex, StructgenError, UnsatisfiableSchema
from ..grammar import CompiledGrammar
from ..limits import Limits
from ..linting import enlarge, not_enforced
from ..logits import allocate_bitmask
from ..vocabulary import Vocabulary
from .constraints import RequestConstraint
from .errors import ApiError, of_constraint
from .options import ServerOptions

_WARNED = 10  # warnings about one grammar
_LINT = 0.25  # seconds of the search for keywords that exclude each other
_KNOWN = 256  # grammars that are kept
_KEY = 100_000  # characters: a longer constraint is not kept
_QUICK = 0.05  # seconds: a grammar that took longer is not kept
_LOOK = Limits(compile=300_000, mask=20_000)  # the work of a first look, about 30 ms
# Errors of a first look that more work may avoid. Even "no value satisfies the schema" is one: the look may
# have left out the part of the schema that has values.
_MORE_MAY_TELL = (SchemaTooComplex, BudgetExceeded, UnsatisfiableSchema)


class TooMuch(Exception):
    """The work of a first look does not suffice: the request has to wait for a worker."""


@dataclass(frozen=True, slots=True)
class ServedGrammar:
    """A grammar and its compiler, which has no other grammar. `seconds`: of the compile and first mask."""

    grammar: CompiledGrammar
    compiler: Compiler
    warnings: tuple[str, ...]
    seconds: tuple[float, float] = (0.0, 0.0)

    def taken(self) -> int:
        """Returns bytes of the automata, states and masks made so far."""
        return self.compiler.byte_size


class Grammars:
    """The grammars of one server. Thread-safe.

    Args:
        freed: called when memory was freed.
    """

    def __init__(self, vocabulary: Vocabulary, options: ServerOptions, freed: Callable[[], None]) -> None:
        self._vocabulary = vocabulary
        self._options = options
        self._freed = freed
        self._kept: OrderedDict[str, ServedGrammar] = OrderedDict()
        self._lock = threading.Lock()

    def __contains__(self, key: str | None) -> bool:
        return key in self._kept

    def key(self, constraint: RequestConstraint) -> str | None:
        """Returns the key under which the grammar of a constraint is kept; None if it is not kept."""
        key = constraint.key()
        return None if key is None or len(key) > _KEY else key

    def kept(self, key: str | None) -> ServedGrammar | None:
        """Returns a kept grammar; None if it has grown too large. The next request then compiles it anew and
        has the whole limit of memory."""
        found = None if key is None else self._kept.get(key)
        return None if found is None or found.taken() >= self._options.grammar_bytes else found

    def keep(self, key: str | None, made: ServedGrammar, seconds: float) -> None:
        """Keeps a grammar that was ready within `_QUICK` seconds. Drops a kept grammar that took longer this
        time."""
        if key is None:
            return
        with self._lock:
            if seconds < _QUICK:
                self._kept[key] = made
                self._kept.move_to_end(key)
                self._forget()
            else:
                self._kept.pop(key, None)

    def _forget(self) -> None:
        """Drops the grammars used longest ago until the rest is within the limits.

        The caller has the lock.
        """
        taken = sum(one.taken() for one in self._kept.values())
        while self._kept and (len(self._kept) > _KNOWN or taken > self._options.cache_bytes):
            _, oldest = self._kept.popitem(last=False)
            taken -= oldest.taken()

    def large_gone(self) -> None:
        """Called when a request with a grown grammar ended. The grammar was smaller when it was kept, so the
        sizes of all kept grammars are measured again."""
        with self._lock:
            self._forget()
        self._freed()

    def clear(self) -> None:
        self._kept.clear()

    def ready(self, constraint: RequestConstraint, look: bool = False) -> ServedGrammar:
        """Returns a grammar and its first mask, which builds most of the grammar: no step of the engine has
        to wait.

        Raises:
            ApiError: the constraint is refused. TooMuch: with `look`, more work is needed.
        """
        begin = time.perf_counter()
        made = self.compiled(constraint, look)
        middle = time.perf_counter()
        try:
            matcher = made.grammar.matcher()
            matcher.fill_bitmask(allocate_bitmask(1, self._vocabulary.vocab_size))
        except Exception as error:
            raise of_look(error, constraint.param, look) from None
        if look and not matcher.mask_exact:
            raise TooMuch
        return replace(made, seconds=(middle - begin, time.perf_counter() - middle))

    def compiled(self, constraint: RequestConstraint, look: bool = False) -> ServedGrammar:
        """Returns the grammar of a constraint, compiled by a new compiler, which costs a tenth of a
        millisecond. No mask is made."""
        o = self._options
        limits = replace(o.limits, compile=_LOOK.compile, mask=_LOOK.mask) if look else o.limits
        compiler = Compiler(self._vocabulary, limits=limits, on_limit=o.on_limit)
        try:
            grammar = constraint.build(compiler)
        except ApiError:
            raise
        except Exception as error:
            told = of_look(error, constraint.param, look)
            if isinstance(error, GrammarError) and isinstance(told, ApiError):
                enlarge(error, [constraint.schema, *constraint.parameters.values()], seconds=_LINT)
                told = _named(of_constraint(error, constraint.param), constraint, compiler)
            raise told from None
        return ServedGrammar(grammar, compiler, _warnings(constraint, compiler, grammar))


def of_look(error: Exception, param: str, look: bool) -> Exception:
    """Returns the error for the client. The error is `TooMuch` if the small amount of work of a look may be
    the cause."""
    return TooMuch() if look and isinstance(error, _MORE_MAY_TELL) else of_constraint(error, param)


def _named(told: ApiError, constraint: RequestConstraint, compiler: Compiler) -> ApiError:
    """Returns the error with the name of the tool whose schema is at fault."""
    for name, schema in constraint.parameters.items():
        if isinstance(_alone(compiler, schema), GrammarError):
            whose = f"tool {name!r:.80}" if name else "the answer"
            if not told.message.startswith(whose):  # `Compiler.tools` names it, too
                told.message = f"{whose}: {told.message}"
            break
    return told


def _warnings(constraint: RequestConstraint, compiler: Compiler, grammar: CompiledGrammar) -> tuple[str, ...]:
    words = [*constraint.warnings(), *grammar.warnings]
    if not constraint.parameters:
        words += not_enforced(grammar.report, words, unknown=True)
    elif not_enforced(grammar.report, unknown=True):
        # The report on the whole grammar does not name the tool of a keyword, so each schema is compiled
        # alone.
        for name, schema in constraint.parameters.items():
            alone = _alone(compiler, schema)
            if isinstance(alone, CompiledGrammar):
                words += not_enforced(alone.report, words, f"{name}: " if name else "", unknown=True)
    more = ["there are more warnings than these"] if len(words) > _WARNED else []
    return (*words[:_WARNED], *more)


def _alone(compiler: Compiler, schema: Any) -> CompiledGrammar | Exception:
    """Returns the grammar of one schema of a constraint, or the error of its compile."""
    try:
        return compiler.json_schema(schema)
    except (StructgenError, RecursionError, ValueError) as error:
        return error
