"""`structgen corpus`: writes texts to a file from which drafts are copied.

In: files of texts and a tokenizer. Out: a file for `--speculate corpus=FILE` of `generate` and `--corpus` of
`serve`. Cost: some 14 microseconds and about 40 bytes of the file for each token.
"""

from __future__ import annotations

import argparse

from .common import OK, Commands, Failure, failing, note, plural, vocabulary


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "corpus",
        help="a file of texts that drafts are copied from",
        description="Writes a suffix automaton over the texts of files. A .jsonl file has a text a line (a "
        "string, or a record with a `text`, as generate --output writes); any other file is one text. "
        "`structgen generate --speculate auto,corpus=FILE` drafts from it.",
    )
    parser.add_argument("files", nargs="+", metavar="TEXTS")
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument(
        "--vocabulary",
        default="embedded",
        metavar="NAME",
        help="a tokenizer file, folder or hub name (default: the embedded model's)",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="tokens at most (default: 4,194,304)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from structgen.speculation.drafters.corpus import Corpus, texts_of

    if options.limit is not None and options.limit < 1:
        raise Failure(f"--limit must be at least 1, not {options.limit}")
    texts = []
    for name in options.files:
        with failing(f"read {name}"):
            texts += texts_of(name)
    limit = {} if options.limit is None else {"tokens": options.limit}
    corpus = Corpus.build(texts, vocabulary(options.vocabulary), **limit)
    with failing(f"write {options.output}"):
        corpus.save(options.output)
    note(f"{plural(len(texts), 'text')}, {corpus.states:,} states, {corpus.nbytes:,} bytes")
    return OK
