"""Put the measured figures into the model card.

Enters: `training/record/*.json(l)` and the exported folders.
Leaves: `MODEL_CARD.md` with the parts between its comment marks rewritten.
Cost: none worth naming.

    python -m training.card     # after evaluate --record (both ways, both models) and agreement --record
"""

# ruff: noqa: E501 - table rows are one line

from __future__ import annotations

import json
import re
from typing import Any

from safetensors import safe_open

from training.prompt import EMBEDDED, ROOT

RECORD = ROOT / "training" / "record"
CARD = EMBEDDED / "MODEL_CARD.md"


def _read(name: str) -> dict[str, Any]:
    path = RECORD / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _sizes() -> str:
    rows: dict[str, list[str]] = {
        "parameters": [], "layers, width, heads": [], "weights, fp16": [], "read in training": []
    }  # fmt: skip
    for name in ("target", "draft"):
        folder = EMBEDDED / name
        with safe_open(folder / "model.safetensors", framework="np") as file:
            count = sum(int(file.get_tensor(key).size) for key in file.keys())  # noqa: SIM118
        config = json.loads((folder / "config.json").read_text())
        log = [json.loads(line) for line in (RECORD / f"{name}.jsonl").read_text().splitlines()]
        rows["parameters"].append(f"{count:,}")
        shape = (config["num_hidden_layers"], config["hidden_size"], config["num_attention_heads"])
        rows["layers, width, heads"].append(", ".join(map(str, shape)))
        rows["weights, fp16"].append(f"{(folder / 'model.safetensors').stat().st_size / 1e6:.2f} MB")
        rows["read in training"].append(
            f"{log[-1]['tokens'] / 1e6:.0f} million tokens, {log[-1]['step']:,} steps, "
            f"{log[-1]['seconds'] / 60:.0f} minutes on a shared core"
        )
    lines = ["| | target | draft |", "|---|---|---|"]
    return "\n".join(lines + [f"| {name} | {' | '.join(cells)} |" for name, cells in rows.items()])


def _cell(part: dict[str, Any] | None, what: str) -> str:
    value = (part or {}).get(what)
    return "-" if value is None else f"{value:g}"


def _figures() -> str:
    runs = {
        (model, way): _read(f"evaluation_{model}_{way}")
        for model in ("target", "draft")
        for way in ("constrained", "free")
    }
    best, free = runs["target", "constrained"], runs["target", "free"]
    small, small_free = runs["draft", "constrained"], runs["draft", "free"]
    count, seed = free.get("count"), free.get("seed")
    lines = [
        f"{count} examples per task, seed {seed} (`python -m training.evaluate --model target --count {count} "
        "--constrained`):",
        "",
        "| task | fields | fields, free | exact | exact, free | valid JSON, free | draft: fields | draft: fields, free |",
        "|---|---|---|---|---|---|---|---|",
    ]
    names = [*free["tasks"], "extraction", "extraction_unseen_names", "all_json"]
    for name in names:
        parts = [run.get("tasks", {}).get(name) or run.get(name) for run in (best, free, small, small_free)]
        label = {"extraction": "**all extraction**", "extraction_unseen_names": "- with unseen field names",
                 "all_json": "**all JSON tasks**"}.get(name, name)  # fmt: skip
        cells = (
            _cell(parts[0], "fields"), _cell(parts[1], "fields"), _cell(parts[0], "exact"),
            _cell(parts[1], "exact"), _cell(parts[1], "valid_json"), _cell(parts[2], "fields"),
            _cell(parts[3], "fields"),
        )  # fmt: skip
        lines.append(f"| {label} | {' | '.join(cells)} |")
    tools, tools_free = best["tasks"]["tools"], free["tasks"]["tools"]
    both, both_free = best["all_json"], free["all_json"]
    lines += [
        "",
        f"Tool names right: {tools['tool_name']:g}% constrained, {tools_free['tool_name']:g}% free "
        f"(draft: {small['tasks']['tools']['tool_name']:g}% constrained).",
        "",
        f"What the constraint adds over all JSON tasks: valid JSON from {both_free['valid_json']:g}% to "
        f"{both['valid_json']:g}%, answers that fit their schema from {both_free['conforms']:g}% to "
        f"{both['conforms']:g}%, fields from {both_free['fields']:g}% to {both['fields']:g}%. (Constrained "
        "answers count as invalid when they do not end within 220 tokens.)",
    ]
    outside, doubt = _read("outside_target"), _read("doubt_target")
    if outside:
        rows = outside["all"]
        lines += [
            "",
            f"Requests written by hand, as other people would write them, of which training saw no sentence "
            f"(`training/outside/requests.jsonl`, {rows['requests']} of them, {rows['leaves']} fields, constrained; "
            f"`python -m training.outside.evaluate`): {rows['fields']:g}% of the fields, {rows['exact']:g}% of the "
            "whole answers. They have been looked at since, when the training texts were made.",
        ]
    if strangers := _read("strangers_target").get("all"):
        lines += [
            "",
            f"Requests of somebody who had read this card alone, which nobody trained for: "
            f"{strangers['fields']:g}% of the fields, {strangers['exact']:g}% of the whole answers "
            f"(`training/outside/strangers.jsonl`, {strangers['requests']} of them, {strangers['leaves']} fields, "
            "constrained; `python -m training.outside.evaluate --strangers`). Expect this of your own.",
        ]
    if doubt:
        lines += [
            "",
            f"Doubt: below a mean log-probability of {doubt['threshold']:g} a token (greedy, before the mask) lie the "
            f"answers to {doubt['test split']['below']:g}% of {doubt['test split']['requests']} requests of the test "
            f"split, {doubt['by hand']['below']:g}% of those written by hand, and {doubt['foreign']['below']:g}% of "
            f"{doubt['foreign']['requests']} requests outside all domains "
            "(`training/outside/foreign.jsonl`; `python -m training.outside.calibrate`).",
        ]
    agreement = _read("agreement")
    if agreement:
        gains = ", ".join(f"{v:g} with {n} drafted" for n, v in agreement["tokens_per_pass"].items())
        lines += [
            "",
            f"As a pair: the draft names {agreement['foreseen']:g}% of the {agreement['tokens']:,} tokens the target "
            f"writes for {agreement['requests']} test requests, free greedy decoding; tokens per pass of the "
            f"target: {gains}.",
        ]
    return "\n".join(lines)


def main() -> None:
    text = CARD.read_text(encoding="utf-8")
    for mark, part in (("sizes", _sizes()), ("figures", _figures())):
        text = re.sub(
            rf"<!-- {mark} -->.*?<!-- end -->",
            lambda _, m=mark, p=part: f"<!-- {m} -->\n{p}\n<!-- end -->",
            text,
            flags=re.DOTALL,
        )
    CARD.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
