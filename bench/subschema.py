"""Compares containment of schemas: structgen, jsonsubschema and hypothesis-jsonschema, with judged instances.

Enters: seeds. Leaves: a row for each tool (verdicts, refusals, errors, time), and every disagreement with its
judge. Cost: about ten seconds for a hundred pairs, most of it for hypothesis-jsonschema.

    python -m bench.subschema --pairs 600
    python -m bench.subschema --instances 1000000      # verdicts beside instances that jsonschema judges

Half of the pairs are independent. In the others, `narrow` is the conjunction of `wide` and another schema, or
`wide` lacks a keyword of `narrow`, so that all answers occur. Each tool is asked in its own way:

    structgen                sg.contains(wide, narrow)
    jsonsubschema            isSubschema(narrow, wide), as draft 4, which it reads (`draft_4`)
    hypothesis-jsonschema    is the canonical form of "narrow and not wide" empty? Else: an example of it

A verdict "not contained" is judged by its witness: `JsonOracle` (jsonschema, mended) must take it in narrow
and refuse it in wide. "contained" is judged by every small value of the two schemas. A tool that says
"not contained" without a witness is right if structgen's witness is.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import json
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import structgen as sg
from oracles.differential.instances import small_values
from oracles.oracle import JsonOracle
from oracles.strategies import Features, Seeded, schema
from structgen.keywords import rewritten

SECONDS = 10  # seconds per verdict of a tool
VALUES = 2000  # the most values that judge a pair
FEATURES = {
    "plain": Features(combine=False, negate=False, refs=False, unique=False, formats=False, contains=False,
                      dependent=False, depth=2),
    "combined": Features(refs=False, formats=False, contains=False, dependent=False, depth=2),
    "all": Features(depth=2),
}  # fmt: skip
# Keywords of later drafts than a tool reads (4, and 7). The tool ignores them.
_AFTER_7 = ("prefixItems", "dependentRequired", "dependentSchemas", "minContains", "maxContains")
NEWER = {
    "jsonsubschema": ("if", "then", "else", "contains", "propertyNames", *_AFTER_7),
    "hypothesis-jsonschema": _AFTER_7,
}
Verdict = tuple[bool | None, str]  # a verdict, and the witness or the reason why there is none


def pair(seed: int, features: Features) -> tuple[Any, Any]:
    """Draws two schemas: wide, narrow."""
    source = Seeded(seed)
    wide = schema(source, features)
    if seed % 4 == 0 and isinstance(wide, dict) and "$ref" not in json.dumps(wide):
        return wide, {"allOf": [wide, schema(source, Features(depth=1, refs=False))]}
    if seed % 4 == 1 and isinstance(wide, dict) and len(wide) > 1:
        left = source.pick([keyword for keyword in wide if keyword not in ("type", "$defs")] or list(wide))
        return wide, {keyword: held for keyword, held in wide.items() if keyword != left}
    return wide, schema(source, features)


# ---- the tools ----


def structgen(wide: Any, narrow: Any) -> Verdict:
    found = sg.contains(wide, narrow)
    return found.holds, found.witness or found.reason


def jsonsubschema(wide: Any, narrow: Any) -> Verdict:
    from jsonsubschema import isSubschema

    return isSubschema(draft_4(narrow), draft_4(wide)), ""


def draft_4(node: Any) -> Any:
    """Returns the schema in the keywords of draft 4, as far as draft 4 can express it."""
    if not isinstance(node, dict):
        return {} if node is True else {"not": {}} if node is False else node
    out = rewritten(node, lambda _, inner: draft_4(inner))
    for bound, excluded in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if excluded in out and bound in out:
            own = {bound: out.pop(excluded), excluded: True}
            out = {"allOf": [out, own]}
        elif excluded in out:
            out |= {bound: out[excluded], excluded: True}
    if "const" in out:
        out = {"allOf": [{"enum": [out.pop("const")]}, out]}
    if out.get("required") == []:
        del out["required"]
    return out


def hypothesis_jsonschema(wide: Any, narrow: Any) -> Verdict:
    from hypothesis import HealthCheck, Phase, find, settings
    from hypothesis.errors import NoSuchExample, Unsatisfiable
    from hypothesis_jsonschema import from_schema
    from hypothesis_jsonschema._canonicalise import FALSEY, canonicalish

    apart = {"allOf": [narrow, {"not": wide}]}
    if canonicalish(json.loads(json.dumps(apart))) == FALSEY:
        return True, ""
    quiet = settings(max_examples=100, database=None, deadline=None, phases=[Phase.generate],
                     suppress_health_check=list(HealthCheck))  # fmt: skip
    try:
        return False, json.dumps(find(from_schema(apart), lambda value: True, settings=quiet))
    except (NoSuchExample, Unsatisfiable):
        return None, "no example was found"


TOOLS: dict[str, Callable[[Any, Any], Verdict]] = {
    "structgen": structgen,
    "jsonsubschema": jsonsubschema,
    "hypothesis-jsonschema": hypothesis_jsonschema,
}


class TooLong(Exception):
    """A tool took longer than its limit."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def asked(tool: str, wide: Any, narrow: Any) -> tuple[str, Verdict, float]:
    """Returns the tool's outcome ("told", "undecided", or an error's name), its verdict, and its seconds."""
    begin = time.perf_counter()
    verdict: Verdict = (None, "")
    try:
        with limited():
            verdict = TOOLS[tool](json.loads(json.dumps(wide)), json.loads(json.dumps(narrow)))
        ended = "undecided" if verdict[0] is None else "told"
    except (Exception, SystemExit) as error:  # a tool may fail in any way, and each failure is counted
        ended = type(error).__name__
    return ended, verdict, time.perf_counter() - begin


# ---- judges ----


def apart(wide: Any, narrow: Any, most: int = VALUES) -> Iterator[tuple[str, bool]]:
    """Returns small values as JSON, each with whether only `narrow` accepts it."""
    of_wide, of_narrow = JsonOracle(wide), JsonOracle(narrow)
    for value in itertools.islice(small_values({"anyOf": [wide, narrow]}), most):
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        yield text, of_narrow.accepts(text) and not of_wide.accepts(text)


def truth(wide: Any, narrow: Any, witnesses: list[str]) -> bool | None:
    """Returns False if some value refutes containment. True if no enumerated value does, which is no proof.
    None if a judge fails."""
    try:
        of_wide, of_narrow = JsonOracle(wide), JsonOracle(narrow)
        if any(of_narrow.accepts(text) and not of_wide.accepts(text) for text in witnesses):
            return False
        return not any(differs for _, differs in apart(wide, narrow))
    except Exception:  # jsonschema cannot judge the schema
        return None


def shown(wide: Any, narrow: Any) -> str:
    return f"    wide   {json.dumps(wide)}\n    narrow {json.dumps(narrow)}"


def beside(pairs: int, features: str) -> None:
    ends: dict[str, collections.Counter[str]] = {tool: collections.Counter() for tool in TOOLS}
    times: dict[str, list[float]] = {tool: [] for tool in TOOLS}
    for seed in range(pairs):
        wide, narrow = pair(seed, FEATURES[features])
        told: dict[str, Verdict] = {}
        for tool in TOOLS:
            ended, verdict, seconds = asked(tool, wide, narrow)
            times[tool].append(seconds)
            ends[tool][ended if ended != "told" else "contained" if verdict[0] else "not contained"] += 1
            if ended == "told":
                told[tool] = verdict
        is_so = truth(wide, narrow, [text for holds, text in told.values() if holds is False and text])
        for tool, (holds, _) in told.items():
            right = None if is_so is None else holds is is_so
            # "not contained" without a witness, although structgen proved containment
            newer = any(f'"{keyword}":' in json.dumps([wide, narrow]) for keyword in NEWER.get(tool, ()))
            wrong = "wrong, with a keyword that it does not know" if newer else "WRONG"
            ends[tool]["right" if right else "not judged" if right is None else wrong] += 1
            if right is False and not newer:
                said = f"{tool} says {holds}, the judge {is_so}, structgen {told.get('structgen')}"
                print(f"{features} {seed}: {said}\n{shown(wide, narrow)}")
    print(f"\n{pairs} pairs, {features}: median and largest time, how each ended")
    for tool in TOOLS:
        middle, largest = statistics.median(times[tool]) * 1000, max(times[tool]) * 1000
        print(f"  {tool:22} {middle:8.2f} ms {largest:9.1f} ms  {dict(ends[tool].most_common())}", flush=True)


def instances(wanted: int, first: int) -> int:
    """Compares structgen's verdicts and witnesses with instances, which jsonschema judges one by one."""
    counts: collections.Counter[str] = collections.Counter()
    wrong, seed, begin = 0, first, time.monotonic()
    while counts["instances"] < wanted:
        wide, narrow = pair(seed, FEATURES["all"])
        seed += 1
        try:
            found, values = sg.contains(wide, narrow), list(apart(wide, narrow))
        except Exception as error:
            counts[f"not judged: {type(error).__name__}"] += 1
            continue
        counts["pairs"] += 1
        counts["instances"] += len(values)
        counts[f"holds {found.holds}"] += 1
        differing = [text for text, differs in values if differs]
        counts["instances that only narrow takes"] += len(differing)
        bad = ""
        if found.holds and differing:
            bad = f"contained, but {differing[0]}"
        elif found.witness is not None:
            if not (
                JsonOracle(narrow).accepts(found.witness) and not JsonOracle(wide).accepts(found.witness)
            ):
                bad = f"the witness {found.witness} is none"
            shorter = min(differing, key=lambda text: len(text.encode()), default=found.witness)
            if len(shorter.encode()) < len(found.witness.encode()):
                bad = f"the witness {found.witness} is longer than {shorter}"
        if bad:
            wrong += 1
            print(f"seed {seed - 1}: {bad}\n{shown(wide, narrow)}")
    print(f"{dict(counts)}, {wrong} wrong, {time.monotonic() - begin:.0f} s")
    return int(wrong > 0)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.subschema", description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=200, help="of each kind")
    parser.add_argument("--kinds", default=",".join(FEATURES), help="comma-separated (default: all)")
    parser.add_argument("--instances", type=int, help="judge this many instances, without the other tools")
    parser.add_argument("--seed", type=int, default=0, help="the first seed of --instances")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if options.instances is not None:
        return instances(options.instances, options.seed)
    for features in options.kinds.split(","):
        beside(options.pairs, features)
    return 0


if __name__ == "__main__":
    sys.exit(main())
