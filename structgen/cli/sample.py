"""`structgen sample`: texts of the model's own distribution given a schema, with weights.

In: a prompt and a schema or grammar. Out: one JSON record in each line (text, log-probability, log weight).
The facts about all texts (law, evidence, bracket, forward passes) go to standard error, or into one record
with --summary. Cost: as `sg.sample`; --trie keeps what was learned for the next call.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structgen.json_options import SAMPLED

from . import common

if TYPE_CHECKING:
    from structgen.sampling import Samples, Trie


def add_parser(commands: common.Commands) -> None:
    from structgen.sampling.methods import METHODS

    parser = commands.add_parser(
        "sample",
        help="texts of the model's own distribution, given a schema",
        description="Samples texts from P(text | the schema accepts it), or weighted so that they count as "
        "such: one JSON record a line. Exit status 1 if fewer came than were asked for.",
    )
    common.add_asking_options(parser)
    parser.add_argument(
        "--method",
        choices=list(METHODS),
        default="auto",
        help="; ".join(f"{name}: {row.says}" for name, row in METHODS.items() if row.name == name)
        + " (default: auto)",
    )
    parser.add_argument("-n", type=int, default=1, help="texts (default: 1)")
    common.add_drawing_options(parser)
    parser.add_argument("--top-k", type=int, metavar="K", help="of the raw logits, before the mask")
    parser.add_argument("--top-p", type=float, metavar="P", help="of the raw logits, before the mask")
    parser.add_argument("--until-tv", type=float, metavar="E", help="stop once the bracket certifies this")
    parser.add_argument("--max-trials", type=int, metavar="N", help="of cars (default: 100 n, at least 1000)")
    parser.add_argument("--steps", type=int, default=10, metavar="N", help="of mcmc (default: 10)")
    parser.add_argument("--batch", type=int, default=16, metavar="N", help="texts that share a forward")
    parser.add_argument("--trie", metavar="FILE", help="load what an earlier call learned, and save it again")
    parser.add_argument("--plot", metavar="FILE", help="write the diagnostics as a picture (png, svg, pdf)")
    parser.add_argument("--summary", action="store_true", help="a last record with all diagnostics")
    common.add_constraint_options(parser, SAMPLED)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from structgen.sampling import plot, sample, save_trie

    if options.plot is not None:
        plot.check(options.plot)
    wanted = common.needed(options, common.Inputs(), "sample")
    found = sample(
        common.load_model(options.model),
        options.prompt,
        wanted,
        **common.json_options(options),
        **common.taken(options, "method", "n", "seed", "max_tokens", "temperature", "top_k", "top_p"),
        **common.taken(options, "until_tv", "max_trials", "steps", "batch"),
        trie=_trie(options.trie),
    )
    for one in found:
        common.print_record(
            {
                "text": one.text,
                "value": one.value,
                "logprob": round(one.logprob, 6),
                "log_weight": round(one.log_weight, 6),
                "tokens": one.tokens,
                "tv_bound": one.tv_bound,
            }
        )
    if options.summary:
        common.print_record(summary(found))
    if options.trie is not None:
        save_trie(found.trie, options.trie)
    if options.plot is not None:
        plot.save(found, options.plot)
    tell(found)
    return common.OK if len(found) >= options.n else common.REJECTED


def _trie(name: str | None) -> Trie | None:
    from structgen.sampling import load_trie

    common.writable(name, "the trie ")
    return None if name is None or not Path(name).exists() else load_trie(name)


def summary(found: Samples) -> dict[str, Any]:
    """Returns the diagnostics as a JSON record; -inf becomes null."""
    about = found.diagnostics
    fields = {name: getattr(about, name) for name in about.__dataclass_fields__}
    fields["lost_tokens"] = [[at, i, t.decode("utf-8", "replace"), p] for at, i, t, p in about.lost_tokens]
    fields |= {
        "law": found.law,
        "ess_final": found.ess,
        "log_evidence": found.log_evidence,
        "log_bracket": found.log_bracket,
        "tv_bound": found.tv_bound,
    }
    return {name: _finite(value) for name, value in fields.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def tell(found: Samples) -> None:
    """Prints the law, the bracket and the costs on standard error."""
    about = found.diagnostics
    common.note(f"{about.method}: {common.plural(len(found), 'text')}, law {found.law}, {about.draws} drawn")
    for reason in [*about.reasons, about.stopped]:
        if reason:
            common.note(f"  {reason}")
    if found.log_bracket is not None:
        low, high = found.log_bracket
        common.note(f"  log P(language) between {low:.4g} and {high:.4g}; seed {about.seed}")
    bounds = [one.tv_bound for one in found if one.tv_bound is not None]
    if bounds:
        common.note(f"  total variation from the target: {max(bounds):.3g} at most for each text (certified)")
    common.note(f"  {about.positions} forwards, {about.saved} saved by known prefixes; {about.calls} batches")
    if about.killed:
        common.note(
            "  ended without weight: " + ", ".join(f"{k} {v}" for k, v in sorted(about.killed.items()))
        )
