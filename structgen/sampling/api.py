"""`sg.sample`: weighted texts from the model's own distribution, given a grammar.

Enters: a model, a prompt, a grammar or schema. Leaves: `Samples`. Cost: by method; a prefix that was seen
before, in this call or in the trie handed in, costs no forward.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..constraints import JSON_OPTIONS, constraint_of
from ..lm.asked import Asked, ask
from ..lm.load import language_model, room_after
from ..lm.prompts import Format
from . import asap, auto, cars, contract, local, mcmc, smc
from .chance import Seeds
from .outcome import Outcome
from .potential import Potential, Predicate, Product, as_potential
from .results import Samples, samples_of
from .target import Law, Target
from .trie import Trie
from .walk import Walker

if TYPE_CHECKING:
    from ..compiler import Compiler

__all__ = ["Method", "prepare", "sample", "sample_async"]

Method = Literal["auto", "local", "gcd", "importance", "asap", "cars", "mcmc", "smc", "awrs"]
_SYNONYMS = {"gcd": "local"}


def sample(
    model: Any,
    prompt: Any,
    schema: Any = None,
    *,
    regex: Any = None,
    choice: Any = None,
    gbnf: Any = None,
    lark: Any = None,
    grammar: Any = None,
    tools: Any = None,
    tool_choice: Any = None,
    tool_style: str | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    method: Method = "auto",
    n: int = 1,
    seed: int | None = None,
    max_tokens: int = 256,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    budget: Literal["mask", "reject"] = "mask",
    potential: Potential | Sequence[Potential] | Any = None,
    extra: int | None = 1,
    until_tv: float | None = None,
    max_trials: int | None = None,
    steps: int = 10,
    proposal: mcmc.Proposal = "restart",
    smc_options: smc.Options | None = None,
    trie: Trie | None = None,
    trie_bytes: int = 256 << 20,
    batch: int = 16,
    check: float = 0.0,
    compiler: Compiler | None = None,
    whitespace: str = "compact",
    property_order: Literal["schema", "any"] = "schema",
    numbers: Literal["any", "canonical"] = "canonical",
    strings: Literal["any", "plain"] = "plain",
    formats: Literal["enforce", "annotate"] = "enforce",
    draft: str | int | None = None,
    registry: Any = None,
    extra_keys: Literal["allow", "forbid"] = "allow",
    format: Format = "auto",
) -> Samples:
    """Draw n texts from P(text | text in the grammar), or weighted so that they count as such.

    Args:
        model, prompt, compiler, format: as in `sg.generate`.
        schema, regex, choice, gbnf, lark, grammar, tools, tool_choice, tool_style, parallel_tool_calls,
            response_format: what the text must be, as in `sg.generate`; `schema` takes compiled grammars too.
        whitespace, property_order, numbers, strings, formats, draft, registry, extra_keys: of JSON, as there.
            By default each value is written in one way, which is the language that P is restricted to.
        method: "cars": exact independent draws by rejection that learns. "smc": a population of n weighted
            particles. "awrs": the same, named for what matters with a `potential`: tokens are tested
            during the draw. "asap": approximate draws that learn, with their weights. "importance": local
            draws with weights. "mcmc": last states of n chains of `steps` steps. "local" or "gcd": token
            by token, as `generate` does. "auto" measures and chooses; `diagnostics.reasons` says why.
        n: texts wanted (draws, particles or chains), and at most so many come. CARS may give fewer after
            `max_trials`; draws that end without weight give none. Where "auto" runs a population of 16
            particles for fewer texts, n of them are drawn by their weights.
        seed: repeats the result; it does not depend on `batch`.
        max_tokens: tokens of a text at most, end-of-sequence included; part of the target.
        temperature, top_k, top_p: of the raw logits, before the mask; part of the target.
        budget: "mask" allows only what can still end in time; "reject" gives texts that run out of room
            weight 0. Part of the target.
        potential: a `Potential`, a function of the text (True or False), or a list of these.
        extra: K of AWRS, for Boolean potentials with at="token" or "unit" (methods smc and awrs).
        until_tv: stop early, with the first draw that begins with a certified bracket on Z this tight; not
            for smc and mcmc. How many texts there are then depends on them, so the law is "approximate".
        max_trials: of CARS; 100 n, at least 1000, by default. A run that they end is "approximate" too.
        steps, proposal: of MCMC; "restart", "uniform" or "priority".
        smc_options: see `smc.Options`; its `extra` then counts, not the one here.
        trie: what an earlier call with the same target learned (`Samples.trie`, `load_trie`).
        trie_bytes: memory of a new trie.
        batch: walks that share a forward.
        check: share of refused prefixes for which the promise "every extension is refused too" is tested
            with random completions; PotentialError names the text that breaks it.

    Raises:
        ValueError: arguments that make no sense together.
        StructgenError: the trie belongs to another target; a potential breaks its contract.
        Else what `sg.generate` raises.
    """
    options = dict(locals())
    return _Run(options).draw()


def prepare(
    model: Any,
    prompt: Any,
    schema: Any = None,
    *,
    regex: Any = None,
    choice: Any = None,
    gbnf: Any = None,
    lark: Any = None,
    grammar: Any = None,
    tools: Any = None,
    tool_choice: Any = None,
    tool_style: str | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    max_tokens: int = 256,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    budget: Literal["mask", "reject"] = "mask",
    potential: Any = None,
    trie: Trie | None = None,
    trie_bytes: int = 256 << 20,
    batch: int = 16,
    compiler: Compiler | None = None,
    whitespace: str = "compact",
    property_order: Literal["schema", "any"] = "schema",
    numbers: Literal["any", "canonical"] = "canonical",
    strings: Literal["any", "plain"] = "plain",
    formats: Literal["enforce", "annotate"] = "enforce",
    draft: str | int | None = None,
    registry: Any = None,
    extra_keys: Literal["allow", "forbid"] = "allow",
    format: Format = "auto",
) -> Walker:
    """The target and trie that `sample` would work on, for the searches of this package."""
    walker = Walker(_target(dict(locals()))[0], Trie(trie_bytes) if trie is None else trie, batch)
    walker.claim()
    return walker


async def sample_async(model: Any, prompt: Any, schema: Any = None, **options: Any) -> Samples:
    """`sample` in a worker thread; takes the same arguments.

    Predicates may wrap coroutine functions: they run on the caller's event loop. Cancelling the task stops
    the run before its next forward.
    """
    bound = inspect.signature(sample).bind(model, prompt, schema, **options)
    bound.apply_defaults()
    named = bound.arguments
    named["potential"] = _on_loop(as_potential(named["potential"]), asyncio.get_running_loop())
    run = await asyncio.to_thread(_Run, named)
    try:
        return await asyncio.to_thread(run.draw)
    except asyncio.CancelledError:
        run.target.cancelled.set()
        raise


def _on_loop(potential: Potential | None, loop: asyncio.AbstractEventLoop) -> Potential | None:
    """The potential with coroutine predicates turned into calls that wait for the loop."""
    if isinstance(potential, Product):
        return Product([part for part in (_on_loop(f, loop) for f in potential.factors) if part is not None])
    if isinstance(potential, Predicate) and inspect.iscoroutinefunction(potential.fn):
        twin = copy.copy(potential)
        ask = potential.fn
        twin.fn = lambda text: bool(asyncio.run_coroutine_threadsafe(ask(text), loop).result())
        return twin
    return potential


class _Run:
    """One call of `sample`, checked and set up; `options` are its arguments by name."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.method: str = options["method"]
        if self.method not in get_args(Method):
            raise ValueError(f"method is one of {', '.join(get_args(Method))}, not {self.method!r}")
        self.method = _SYNONYMS.get(self.method, self.method)
        self.n: int = options["n"]
        if self.n < 1:
            raise ValueError(f"n must be at least 1, not {self.n}")
        self.until_tv: float | None = options["until_tv"]
        if self.until_tv is not None and not 0 < self.until_tv < 1:
            raise ValueError(f"until_tv is between 0 and 1, not {self.until_tv}")
        if self.until_tv is not None and self.method in ("smc", "awrs", "mcmc"):
            raise ValueError(f"{self.method} does not stop at a bracket: leave until_tv out")
        self.seeds = Seeds(options["seed"])
        self.target, self.asked = _target(options)
        trie: Trie | None = options["trie"]
        self.trie = Trie(options["trie_bytes"]) if trie is None else trie
        self.walker = Walker(self.target, self.trie, options["batch"])
        self.walker.claim()
        if options["check"]:
            self.walker.watch = contract.Probe(self.target, options["check"], self.seeds).refused

    def draw(self) -> Samples:
        if self.method in ("asap", "cars") and not self.target.bounded:
            raise ValueError(
                f"{self.method} needs potentials that never weigh above 1 (bounded=True): "
                "use importance, smc or mcmc"
            )
        outcome = self._outcome()
        method = self.method
        if method == "auto":
            method = outcome.notes[0].partition(":")[0].partition(",")[0]
        return samples_of(
            outcome, method, self.target, self.trie, self.walker.diary, self.seeds.seed, self.asked
        )

    def _outcome(self) -> Outcome:
        walker, seeds, n, options = self.walker, self.seeds, self.n, self.options
        trials = max(1000, 100 * n) if options["max_trials"] is None else options["max_trials"]
        if trials < 1:
            raise ValueError("max_trials must be positive")
        extra: int | None = options["extra"]
        if self.method == "auto":
            return auto.draw(walker, seeds, n, max_trials=trials, extra=extra, until_tv=self.until_tv)
        if self.method == "cars":
            return cars.draw(walker, seeds, n, max_trials=trials, until_tv=self.until_tv)
        if self.method == "asap":
            return asap.draw(walker, seeds, n, until_tv=self.until_tv)
        if self.method == "mcmc":
            return mcmc.draw(walker, seeds, n, steps=options["steps"], proposal=options["proposal"])
        if self.method in ("smc", "awrs"):
            return smc.draw(walker, seeds, n, options["smc_options"] or smc.Options(extra=extra))
        weighted = self.method == "importance"
        return local.draw(walker, seeds, n, weighted=weighted, until_tv=self.until_tv)


def _target(options: dict[str, Any]) -> tuple[Target, Asked]:
    """The law that the arguments define. Errors: as `sg.generate` raises."""
    lm = language_model(options["model"])
    json = {name: options[name] for name in JSON_OPTIONS}
    constraint = constraint_of(options)
    asked = ask(lm, options["prompt"], constraint, json, options["compiler"], options["format"])
    target = Target.of(
        lm,
        asked.start,
        asked.grammar,
        as_potential(options["potential"]),
        max_tokens=room_after(lm, asked.start, options["max_tokens"]),
        law=Law(options["temperature"], options["top_k"], options["top_p"]),
        budget=options["budget"],
    )
    return target, asked
