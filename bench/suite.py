"""Runs the official JSON-Schema-Test-Suite and prints a table by file.

Enters: the suite with its remote documents, which `registry=` serves. Leaves: for each file the number of
tests that are right, wrong, or not compiled. Instances are checked as `json.dumps` text in any property
order. Formats are annotations in required files, and are enforced under optional/format.

    python -m bench.suite --drafts draft2020-12,draft7 --optional
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
from collections.abc import Callable

from oracles import data
from structgen.maskbench import workers

DRAFTS = ("draft2020-12", "draft7")
SETUP, WORK = "bench.suite:setup", "bench.suite:work"


def setup(config: dict) -> dict:
    import structgen

    vocabulary = structgen.Vocabulary.from_bytes(
        [bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256], special_token_ids=[256]
    )
    compiler = structgen.Compiler(vocabulary)
    groups = {draft: list(data.suite_groups(draft)) for draft in config["drafts"]}
    return {"compiler": compiler, "groups": groups, "registry": data.suite_registry()}


def formats_for(file: str) -> str:
    asserts = "optional/format" in file  # matches the folder and format-assertion.json
    return "enforce" if asserts else "annotate"


def work(state: dict, job: dict, emit: Callable[[dict], None]) -> None:
    from structgen import errors

    group = state["groups"][job["draft"]][job["index"]]
    row: dict = {
        "file": group.file,
        "about": group.about,
        "right": 0,
        "wrong": [],
        "missed": [],
        "error": None,
    }
    grammar = None
    try:
        grammar = state["compiler"].json_schema(
            data.dumps(group.schema),
            property_order="any",
            formats=formats_for(group.file),
            draft=job["draft"].removeprefix("draft"),
            registry=state["registry"],
        )
    except errors.UnsatisfiableSchema:
        pass  # the language is empty
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}"[:300]
        row["uncompiled"] = len(group.tests)
        emit(row)
        return
    for test in group.tests:
        try:
            if grammar is None:
                valid = False
            else:
                matcher = grammar.matcher()
                valid = matcher.accept_bytes(test.text.encode()) and matcher.is_accepting()
        except Exception as error:
            row["missed"].append(test.about)
            row["wrong"].append(f"{test.about}: {type(error).__name__}: {error}"[:300])
            continue
        if valid == test.valid:
            row["right"] += 1
        else:
            row["missed"].append(test.about)
            row["wrong"].append(
                f"{test.about}: {test.text[:80]} should be {'valid' if test.valid else 'invalid'}"
            )
    emit(row)


def run(drafts: list[str], *, optional: bool, jobs: int = 1, limit: float = 20.0) -> list[dict]:
    config = {"drafts": drafts}
    todo = [
        {"draft": draft, "index": index}
        for draft in drafts
        for index, group in enumerate(data.suite_groups(draft))
        if optional or "/optional/" not in group.file
    ]
    groups = {draft: list(data.suite_groups(draft)) for draft in drafts}
    rows = []
    for job, found, failure in workers.run(SETUP, WORK, config, todo, limit=limit, processes=jobs):
        if failure is not None:
            group = groups[job["draft"]][job["index"]]
            found = [
                {
                    "file": group.file,
                    "about": group.about,
                    "right": 0,
                    "wrong": [],
                    "missed": [],
                    "error": failure.kind,
                    "uncompiled": len(group.tests),
                }
            ]
        rows += found
    return sorted(rows, key=lambda row: ("/optional/" in row["file"], row["file"], row["about"]))


def table(rows: list[dict], details: bool) -> str:
    files: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for row in rows:
        count = files[row["file"]]
        count["right"] += row["right"]
        count["wrong"] += len(row["wrong"])
        count["uncompiled"] += row.get("uncompiled", 0)
    out = [f"{'file':<52}{'right':>7}{'wrong':>7}{'not compiled':>14}"]
    total: collections.Counter = collections.Counter()
    for name, count in files.items():
        total.update(count)
        out.append(f"{name:<52}{count['right']:>7}{count['wrong']:>7}{count['uncompiled']:>14}")
    out.append(f"{'all':<52}{total['right']:>7}{total['wrong']:>7}{total['uncompiled']:>14}")
    if details:
        for row in rows:
            if row["error"]:
                out.append(f"{row['file']}: {row['about']}: {row['error']}")
            out += [f"{row['file']}: {row['about']}: {wrong}" for wrong in row["wrong"]]
    return "\n".join(out)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.suite", description=__doc__.split("\n")[0])
    parser.add_argument("--drafts", default=",".join(DRAFTS))
    parser.add_argument("--optional", action="store_true", help="the optional files as well")
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--details", action="store_true", help="name every wrong test")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", help="write every row here")
    options = parser.parse_args(arguments)
    data.require("json-schema-test-suite")
    drafts = options.drafts.split(",")
    known = sorted({*DRAFTS, *(p.name for p in (data.root() / "json-schema-test-suite" / "tests").iterdir())})
    for draft in drafts:
        if draft not in known:
            parser.error(f"the suite has no {draft!r}: it has {', '.join(known)}")
    rows = run(drafts, optional=options.optional, jobs=options.jobs)
    rows = [row for row in rows if options.only in row["file"]]
    if not rows:
        parser.error(f"no file's path contains {options.only!r}")
    print(table(rows, options.details))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, ensure_ascii=False, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
