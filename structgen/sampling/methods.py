"""The methods of `sg.sample`, one row each.

Enters: a request. Leaves: its `Way`, which draws. Cost: nothing.

A new method is a file with a `draw`, a row here and a name in `request.Method`. The choices of the command
line and of the server come from this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import asap, auto, cars, local, mcmc, smc
from .chance import Seeds
from .outcome import Outcome
from .request import Request
from .walk import Walker


@dataclass(frozen=True, slots=True)
class Way:
    """A method.

    Attributes:
        name: the name in results; a synonym has the name of its method.
        says: a few words about the method, for the playground.
        draw: from a walker, seeds and a request to an outcome.
        stops: whether the method can stop at a certified bracket (`until_tv`).
        bounded: whether it needs potentials with weights of at most 1.
    """

    name: str
    says: str
    draw: Callable[[Walker, Seeds, Request], Outcome]
    stops: bool = True
    bounded: bool = False


def _auto(walker: Walker, seeds: Seeds, asked: Request) -> Outcome:
    return auto.draw(
        walker, seeds, asked.n, max_trials=asked.trials, extra=asked.extra, until_tv=asked.until_tv
    )


def _cars(walker: Walker, seeds: Seeds, asked: Request) -> Outcome:
    return cars.draw(walker, seeds, asked.n, max_trials=asked.trials, until_tv=asked.until_tv)


def _smc(walker: Walker, seeds: Seeds, asked: Request) -> Outcome:
    return smc.draw(walker, seeds, asked.n, asked.smc_options or smc.SmcOptions(extra=asked.extra))


def _asap(walker: Walker, seeds: Seeds, asked: Request) -> Outcome:
    return asap.draw(walker, seeds, asked.n, until_tv=asked.until_tv)


def _importance(walker: Walker, seeds: Seeds, asked: Request) -> Outcome:
    return local.draw(walker, seeds, asked.n, weighted=True, until_tv=asked.until_tv)


def _mcmc(walker: Walker, seeds: Seeds, asked: Request) -> Outcome:
    return mcmc.draw(walker, seeds, asked.n, steps=asked.steps, proposal=asked.proposal)


def _local(walker: Walker, seeds: Seeds, asked: Request) -> Outcome:
    return local.draw(walker, seeds, asked.n, weighted=False, until_tv=asked.until_tv)


_LOCAL = Way("local", "plain masking, its weights told", _local)

# Recipe, sampling method 1: a row.
METHODS: dict[str, Way] = {
    "auto": Way("auto", "chosen by the first draws", _auto),
    "cars": Way("cars", "exact", _cars, bounded=True),
    "smc": Way("smc", "particles", _smc, stops=False),
    "awrs": Way("awrs", "particles, rejection", _smc, stops=False),
    "asap": Way("asap", "learns as it draws", _asap, bounded=True),
    "importance": Way("importance", "weighted", _importance),
    "mcmc": Way("mcmc", "chains", _mcmc, stops=False),
    "local": _LOCAL,
    "gcd": _LOCAL,
}


def way_of(asked: Request) -> Way:
    """The method of a request. ValueError: there is none of that name, or it takes no `until_tv`."""
    way = METHODS.get(asked.method)
    if way is None:
        raise ValueError(f"method is one of {', '.join(METHODS)}, not {asked.method!r}")
    if asked.until_tv is not None and not way.stops:
        raise ValueError(f"{asked.method} does not stop at a bracket: leave until_tv out")
    return way
