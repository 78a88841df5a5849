"""`structgen mask SCHEMA --after TEXT`: the tokens that may come next.

In: a schema or another constraint, the text so far, a tokenizer. Out: a line
`id<TAB>token` for each allowed token, in the order of ids; their number on standard error.
"""

from __future__ import annotations

import argparse

from structgen import Compiler, allocate_bitmask
from structgen.logits import allowed_ids

from . import common


def add_parser(commands: common.Commands) -> None:
    parser = commands.add_parser(
        "mask",
        help="the tokens allowed after a text",
        description="Lists the tokens that the mask allows after a text. Exit status 1 if the text itself is "
        "not possible.",
    )
    parser.add_argument(
        "file", metavar="SCHEMA", nargs="?", help="a JSON Schema file, or -, unless an option says what else"
    )
    parser.add_argument("--after", default="", metavar="TEXT", help="the text so far (default: none)")
    common.add_tokenizer_option(parser, "embedded")
    parser.add_argument("--limit", type=int, default=50, help="tokens to list; 0 lists all (default: 50)")
    common.add_constraint_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.limit < 0:
        raise common.Failure("--limit must not be negative")
    tokens = common.vocabulary(options.tokenizer)
    wanted = common.needed(options, common.Inputs(), "mask", options.file)
    grammar = common.compiled(wanted, Compiler(tokens), options)
    data = options.after.encode("utf-8", "surrogateescape")
    matcher, length = common.stand_at(grammar, data)
    if length < len(data):
        at = common.place(data, length)
        common.note(f"structgen: the text is rejected at {at}, after {at.before or 'nothing'}")
        common.note(f"structgen: allowed there: {common.allowed_here(matcher)}")
        return common.REJECTED
    mask = allocate_bitmask(1, tokens.vocab_size)
    matcher.fill_bitmask(mask)
    ids = allowed_ids(mask, tokens.vocab_size).tolist()
    ends = set(tokens.eos_token_ids)
    shown = ids[: options.limit] if options.limit else ids
    for index in shown:
        print(f"{index}\t{'(end of text)' if index in ends else common.quoted(tokens.token_bytes(index))}")
    rest = f"; {len(shown)} shown" if len(shown) < len(ids) else ""
    common.note(f"{len(ids)} of {tokens.vocab_size} ids allowed{rest}")
    forced = matcher.forced_bytes()
    if forced:
        common.note(f"the text must go on with {common.quoted(forced)}")
    return common.OK
