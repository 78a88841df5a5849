"""`structgen search`: the best texts that a schema accepts.

In: a prompt and a schema or grammar; functions that rank texts, as MODULE:NAME. Out: one JSON record for each
text, best first; the tree as one page with --html; the costs on standard error. Cost: the limits; --state
keeps a search for the next call.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from structgen.json_options import SAMPLED

from . import common


def add_parser(commands: common.Commands) -> None:
    from structgen.sampling.searches import SEARCHES

    parser = commands.add_parser(
        "search",
        help="the best texts that a schema accepts",
        description="Searches for the most probable texts, or for those that a function of yours ranks best: "
        "one JSON record a line, best first. Exit status 1 if fewer were found than were asked for.",
    )
    common.add_asking_options(parser)
    parser.add_argument(
        "--method",
        choices=list(SEARCHES),
        default="best",
        help="best is exact; a*, value and mcts need a function below (default: best)",
    )
    parser.add_argument("-n", type=int, default=1, help="texts (default: 1)")
    common.add_drawing_options(parser, seed=0)
    group = parser.add_argument_group("what ranks texts: functions of a Partial, as MODULE:NAME")
    group.add_argument("--score", metavar="MODULE:NAME", help="of a text in the making, in place of log P")
    group.add_argument("--heuristic", metavar="MODULE:NAME", help="what is still to come; never too low")
    group.add_argument("--reward", metavar="MODULE:NAME", help="of a whole text")
    group.add_argument(
        "--enough", type=float, metavar="X", help="stop with the first text that ranks this high"
    )
    group = parser.add_argument_group("what may be spent")
    group.add_argument("--steps", type=int, metavar="N")
    group.add_argument("--tokens", type=int, metavar="N", help="written, in all")
    group.add_argument("--forwards", type=int, default=1000, metavar="N", help="(default: 1000)")
    group.add_argument("--seconds", type=float, metavar="S")
    parser.add_argument(
        "--branch", type=int, metavar="N", help="children made at once (default: the method's)"
    )
    parser.add_argument(
        "--block", metavar="TEXT", nargs="+", help="texts that close a piece: pieces are drawn"
    )
    parser.add_argument(
        "--state", metavar="FILE", help="go on with the search in this file, and save it again"
    )
    parser.add_argument("--html", metavar="FILE", help="write the tree as one page that loads nothing")
    common.add_constraint_options(parser, SAMPLED)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from structgen.sampling import search

    wanted = common.needed(options, common.Inputs(), "search")
    common.writable(options.html)
    common.writable(options.state)
    given = common.given(options, "branch", "block")
    functions = common.given(options, "score", "heuristic", "reward")
    given |= {name: common.python_type(value) for name, value in functions.items()}
    if options.state is not None and Path(options.state).exists():
        given["resume"] = options.state
    found = search(
        common.load_model(options.model),
        options.prompt,
        wanted,
        **common.json_options(options),
        **given,
        **common.taken(options, "method", "n", "seed", "max_tokens", "temperature", "enough"),
        **common.taken(options, "steps", "tokens", "forwards", "seconds"),
    )
    for one in found:
        common.print_record(
            {
                "text": one.text,
                "value": one.value,
                "logprob": round(one.logprob, 6),
                "score": round(one.score, 6),
                "certified": one.certified,
                "tokens": one.tokens,
            }
        )
    if options.state is not None:
        found.save(options.state)
    if options.html is not None:
        found.tree.save(options.html)
    common.note(
        f"{options.method}: {common.plural(len(found), 'text')}, stopped by {found.stopped!r}; "
        f"{found.forwards} forwards, {found.tokens} tokens, {found.steps} steps"
    )
    if len(found) < options.n:
        for reason in found.reasons:
            common.note(reason)
    return common.OK if len(found) >= options.n else common.REJECTED
