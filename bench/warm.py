"""A new process: from import to masks, with the vocabulary loaded from a saved file and, beside it, built.

Enters: nothing (tekken's vocabulary is saved into a temporary folder). Leaves: wall and processor
milliseconds of each step, medians of several fresh processes.

    python -m bench.warm [--repeat 7]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from structgen.maskbench.engines.structgen import vocabulary
from structgen.maskbench.tokens import tekken

# Run in the fresh process; what is built comes as a pickled list, so that no tokenizer's loading is counted.
_CHILD = r"""
import json, pickle, sys, time
how, path, texts = sys.argv[1:]
laps, last = {}, None
def lap(step):
    global last
    now = (time.perf_counter(), time.process_time())
    if last: laps[step] = [1e3 * (a - b) for a, b in zip(now, last)]
    last = now
lap("")
import structgen as sg
lap("import structgen")
if how == "load":
    words = sg.Vocabulary.load(path)
else:
    with open(texts, "rb") as file:
        tokens, eos, special = pickle.load(file)
    lap("reading the pickle (not counted)")
    words = sg.Vocabulary.from_bytes(tokens, eos, special)
    words._core
lap("vocabulary")
mask = sg.allocate_bitmask(1, words.vocab_size)
schema = '{"properties":{"name":{"type":"string"},"n":{"type":"integer"}},"required":["name"]}'
matcher = sg.Compiler(words).json_schema(schema).matcher()
matcher.fill_bitmask(mask)
lap("compile and first mask")
matcher.accept_bytes('{"name": "')
matcher.fill_bitmask(mask)
lap("first mask inside a string")
matcher.accept_bytes('a", "n": ')
matcher.fill_bitmask(mask)
lap("first mask of a number")
print(json.dumps(laps))
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.warm", description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args(arguments)
    import pickle

    tokens = tekken()
    with tempfile.TemporaryDirectory() as folder:
        saved, texts = Path(folder) / "tekken.sgv", Path(folder) / "texts.pickle"
        vocabulary(tokens).save(saved)
        texts.write_bytes(pickle.dumps((tokens.text, tokens.eos, list(tokens.special))))
        print(
            f"{tokens.name}: the file has {saved.stat().st_size / 1e6:.1f} MB; wall (processor) milliseconds"
        )
        for how in ("load", "build"):
            found: list[dict[str, list[float]]] = []
            for _ in range(options.repeat):
                command = [sys.executable, "-c", _CHILD, how, str(saved), str(texts)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found.append(json.loads(done.stdout))
            print(how)
            for step in found[0]:
                wall, cpu = (statistics.median(laps[step][i] for laps in found) for i in (0, 1))
                print(f"  {step:<34}{wall:>9.2f} ({cpu:.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
