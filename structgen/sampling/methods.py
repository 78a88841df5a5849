"""The methods of `sg.sample`, one row each.

Enters: a request. Leaves: the row of its method, which draws. Cost: nothing.

A new method is a file with a `draw`, and here a name in `Method` and a row. The choices of the command line,
of the server and of its page, and the methods that tests and developers' runs go through, come from this
table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from . import asap, auto, cars, local, mcmc, smc
from .chance import Seeds
from .outcome import Outcome
from .request import Request
from .walk import Walker

# Recipe, sampling method 1: its name, and a row in METHODS below.
Method = Literal["auto", "cars", "smc", "awrs", "asap", "importance", "mcmc", "local", "gcd"]


@dataclass(frozen=True, slots=True)
class MethodRow:
    """A method.

    Attributes:
        name: the name in results; a synonym has the name of its method.
        says: a few words about the method, for the playground and the command line.
        draw: from a walker, seeds and a request to an outcome.
        stops: whether the method can stop at a certified bracket (`until_tv`).
        bounded: whether the method needs potentials with weights of at most 1.
        corrected: whether the texts, by their weights, tend to the target as n grows.
    """

    name: str
    says: str
    draw: Callable[[Walker, Seeds, Request], Outcome]
    stops: bool = True
    bounded: bool = False
    corrected: bool = True


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


_LOCAL = MethodRow("local", "plain masking, its weights told", _local, corrected=False)

METHODS: dict[str, MethodRow] = {
    "auto": MethodRow("auto", "chosen by the first draws", _auto),
    "cars": MethodRow("cars", "exact", _cars, bounded=True),
    "smc": MethodRow("smc", "particles", _smc, stops=False),
    "awrs": MethodRow("awrs", "particles, rejection", _smc, stops=False),
    "asap": MethodRow("asap", "learns as it draws", _asap, bounded=True),
    "importance": MethodRow("importance", "weighted", _importance),
    "mcmc": MethodRow("mcmc", "chains", _mcmc, stops=False),
    "local": _LOCAL,
    "gcd": _LOCAL,
}


def row_of(asked: Request) -> MethodRow:
    """Returns the row of a request's method. Raises a ValueError if no method has this name, or if the method
    cannot stop at `until_tv`."""
    row = METHODS.get(asked.method)
    if row is None:
        raise ValueError(f"method is one of {', '.join(METHODS)}, not {asked.method!r}")
    if asked.until_tv is not None and not row.stops:
        raise ValueError(f"{asked.method} does not stop at a bracket: leave until_tv out")
    return row
