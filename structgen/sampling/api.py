"""`sg.sample`: weighted texts from the model's own distribution, given a grammar.

Enters: a model, a prompt, a grammar or schema. Leaves: `Samples`. Cost: it depends on the method. A prefix
that was seen before, in this call or in the trie that the caller gives, costs no forward.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import inspect
from typing import TYPE_CHECKING, Any

from . import contract
from .chance import Seeds
from .drafting import drafts_of
from .methods import Method, row_of
from .potential import Potential, Predicate, Product, as_potential
from .request import Request, SampleOptions, TargetOptions, TargetRequest, checked
from .results import Samples, samples_of
from .walk import Walker

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["Method", "prepare", "sample", "sample_async"]


def sample(model: Any, prompt: Any, schema: Any = None, **options: Unpack[SampleOptions]) -> Samples:
    """Draws n texts from P(text | text in the grammar), or texts with weights for that law.

    Args:
        model, prompt, compiler, format: as in `sg.generate`.
        schema, regex, choice, gbnf, lark, grammar, tools, tool_choice, tool_style, parallel_tool_calls,
            tool_strictness, response_format, condition: what the text must be, as in `sg.generate`; `schema`
            takes compiled grammars too.
        whitespace, property_order, numbers, strings, formats, draft, registry, extra_keys, digits: options of
            JSON, as in `sg.generate`. By default the grammar writes each value in one way, and P is
            restricted to these texts.
        method: how texts are drawn: a name of the table in docs/sampling.md, "Which method when", which says
            what each method gives. "auto" measures and chooses; `diagnostics.reasons` says why.
        n: the most texts (draws, particles or chains). CARS may give fewer texts after `max_trials`, and a
            draw that ends without weight gives no text. If "auto" runs a population of 16 particles for
            fewer texts, n of them are drawn by their weights.
        seed: the same seed gives the same result, with any `batch`.
        max_tokens: the most tokens of a text, end-of-sequence included; part of the target.
        temperature, top_k, top_p: applied to the raw logits, before the mask; part of the target.
        budget: "mask" allows only tokens after which the text can still end in time; "reject" gives weight 0
            to texts that run out of tokens. Part of the target.
        potential: a `Potential`, a function of the text (True or False), or a list of these.
        extra: K of AWRS, for Boolean potentials with at="token" or "unit" (methods smc and awrs).
        until_tv: stop early, with the first draw that begins with a certified bracket on Z this tight; not
            for smc and mcmc. The number of texts then depends on the texts, so the law is "approximate".
        max_trials: the most trials of CARS; by default 100 n, at least 1000. The law of a run that ends so is
            "approximate", too.
        steps, proposal: options of MCMC; the proposal is "restart", "uniform" or "priority".
        smc_options: see `smc.SmcOptions`; its `extra` replaces the argument `extra`.
        trie: what an earlier call with the same target learned (`Samples.trie`, `load_trie`).
        trie_bytes: the most memory of a new trie.
        batch: the number of walks that share a forward.
        guess: drafts tokens: a function from the answer's token ids so far to the ids that may follow; or
            drafters of `structgen.speculation` ("auto", a list, or a `Speculation` with its `nodes` a walk).
            The next forward also computes the vectors of drafted places, so a walk that comes there needs no
            forward. A guess changes neither the law, the texts of a seed nor the bounds: a walk draws by
            frozen vectors and by bounds, and a fetch ahead of time changes neither.
        check: the share of refused prefixes for which the promise "every extension is refused too" is tested
            with random completions; PotentialError names the text that breaks it.

    Raises:
        ValueError: arguments contradict each other.
        StructgenError: the trie belongs to another target; a potential breaks its contract. Other errors are
            those of `sg.generate`.
    """
    return _Run(_request(model, prompt, schema, options)).draw()


def prepare(model: Any, prompt: Any, schema: Any = None, **options: Unpack[TargetOptions]) -> Walker:
    """Returns the target and the trie of a call of `sample`, for the searches of this package."""
    named = checked(TargetRequest, {"model": model, "prompt": prompt, "schema": schema, **options})
    asked = TargetRequest(**named)
    return asked.walker(asked.target()[0])


async def sample_async(
    model: Any, prompt: Any, schema: Any = None, **options: Unpack[SampleOptions]
) -> Samples:
    """`sample` in a worker thread; takes the same arguments.

    Predicates may wrap coroutine functions: they run on the caller's event loop. Cancelling the task stops
    the run before its next forward.
    """
    asked = _request(model, prompt, schema, options)
    potential = _on_loop(as_potential(asked.potential), asyncio.get_running_loop())
    run = await asyncio.to_thread(_Run, dataclasses.replace(asked, potential=potential))
    try:
        return await asyncio.to_thread(run.draw)
    except asyncio.CancelledError:
        run.target.cancelled.set()
        raise


def _request(model: Any, prompt: Any, schema: Any, options: SampleOptions) -> Request:
    return Request(**checked(Request, {"model": model, "prompt": prompt, "schema": schema, **options}))


def _on_loop(potential: Potential | None, loop: asyncio.AbstractEventLoop) -> Potential | None:
    """Returns the potential with coroutine predicates turned into calls that wait for the loop."""
    if isinstance(potential, Product):
        return Product([part for part in (_on_loop(f, loop) for f in potential.factors) if part is not None])
    if isinstance(potential, Predicate) and inspect.iscoroutinefunction(potential.fn):
        twin = copy.copy(potential)
        ask = potential.fn
        twin.fn = lambda text: bool(asyncio.run_coroutine_threadsafe(ask(text), loop).result())
        return twin
    return potential


class _Run:
    """One call of `sample`, checked and set up."""

    def __init__(self, asked: Request) -> None:
        self.request = asked
        self.method = row_of(asked)
        self.seeds = Seeds(asked.seed)
        self.target, self.asked = asked.target()
        self.walker = asked.walker(self.target)
        self.walker.drafts = drafts_of(asked.guess, self.target)
        if asked.check:
            self.walker.watch = contract.Probe(self.target, asked.check, self.seeds).refused

    def draw(self) -> Samples:
        row = self.method
        if row.bounded and not self.target.bounded:
            raise ValueError(
                f"{row.name} needs potentials that never weigh above 1 (bounded=True): "
                "use importance, smc or mcmc"
            )
        outcome = row.draw(self.walker, self.seeds, self.request)
        method = outcome.notes[0].partition(":")[0].partition(",")[0] if row.name == "auto" else row.name
        return samples_of(
            outcome, method, self.target, self.walker.trie, self.walker.diary, self.seeds.seed, self.asked
        )
