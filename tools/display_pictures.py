"""Pictures of the terminal's reports for docs/: `python -m tools.display_pictures`.

In: the embedded model, the extra display. Out: docs/images/display-check.svg and display-trace.svg, whose
fonts are the reader's own. Cost: a second.
"""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path

from rich.console import Console, RenderableType

import structgen as sg
from structgen.cli.check import explain

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "images"
WIDTH = 92
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
# Lower than what the text says, so that the mask has something to forbid.
YOUNG = {**PERSON, "properties": {**PERSON["properties"], "age": {"type": "integer", "maximum": 35}}}


def save(name: str, title: str, shown: list[RenderableType]) -> None:
    console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True, highlight=False)
    for one in shown:
        console.print(one)
    # The ids in the file come from its content alone; fonts from elsewhere are left out.
    svg = console.export_svg(title=title, unique_id=name)
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
    (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")


def main() -> None:
    single = sg.Vocabulary.from_bytes([bytes([b]) for b in range(256)] + [b""], 256)
    grammar = sg.Compiler(single).json_schema(PERSON)
    refused = explain(grammar, b'{"name": "Ada Byron", "age": "36"}')
    assert refused is not None
    save("display-check", "structgen check person.schema.json answer.json", [refused.coloured("answer.json")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sg.DoubtfulAnswer)  # the mask goes against the model's will
        found = sg.trace(None, "Ada Byron is 36 and lives in Oslo", YOUNG)
    save("display-trace", "structgen trace --schema young.schema.json", [found.rich()])


if __name__ == "__main__":
    main()
