"""`structgen playground`: the server of `structgen serve`, and its page in a browser.

In: a model, limits. Out: nothing; the address goes to standard error. Cost: as `structgen serve`.
"""

from __future__ import annotations

import argparse
import webbrowser

from .common import Commands, note
from .serve import add_arguments, serve


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "playground",
        help="a page that shows what a grammar does to a model, token by token",
        description="Starts the server of `structgen serve` at a free port of this machine and opens its "
        "page. Needs the extra `serve`.",
    )
    add_arguments(parser, port=0)
    parser.add_argument("--no-browser", action="store_true", help="open nothing: the address is printed")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    return serve(options, None if options.no_browser else show)


def show(address: str) -> None:
    """Opens the page in a browser, if there is one. The address was printed before."""
    if not webbrowser.open(address):
        note("no browser could be opened: open the address above")
