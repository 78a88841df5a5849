"""Damaged files: structgen refuses each with an error of its own, or the damage is harmless.

python -m bench.damage [--mutations 10000] [--seed 0] [--only vocabulary]

Input: none. The run makes the files: a vocabulary, a vocabulary whose checksums are computed anew after the
damage, and a trie of `sg.sample`. Output: a table; exit status 1 if a file ended a process, raised another
exception, or exceeded the limits (10 s, 4 GB). Damage: changed bits and bytes, cuts, extensions, splices, and
header fields with values that break readers. Time: minutes for 10,000 of each kind, in a child process.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structgen as sg

SECONDS, BYTES = 10, 4 << 30
_NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 1 << 40)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Returns the data with one to three changes."""
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data)) if data else 0
        # Headers matter most, so half of the changes hit the first or the last kilobyte.
        if chance.random() < 0.5:
            at = (
                min(at % 1024, max(len(data) - 1, 0))
                if chance.random() < 0.7
                else max(0, len(data) - 1 - at % 1024)
            )
        kind = chance.randrange(6)
        if kind == 0 and data:
            data = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at]
        elif kind == 2:
            data = data + chance.randbytes(chance.choice((1, 7, 4096)))
        elif kind == 3:
            begin, size = chance.randrange(len(data) + 1), chance.choice((1, 8, 64, 1024))
            data = data[:at] + data[begin : begin + size] + data[at + chance.choice((0, size)) :]
        else:
            width = chance.choice((4, 8))
            value = chance.choice(_NUMBERS) % (1 << 8 * width)
            at -= at % width
            data = data[:at] + value.to_bytes(width, "little") + data[at + width :]
    return data


def _vocabulary() -> sg.Vocabulary:
    words = [
        *(bytes([i]) for i in range(256)),
        b'{"',
        b'":',
        b"ab",
        b"abc",
        b"  ",
        "\u00e9\u00e9".encode(),
        b"",
    ]
    return sg.Vocabulary.from_bytes(words, len(words) - 1)


@functools.cache
def _saved() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        _vocabulary().save(Path(folder) / "v")
        return (Path(folder) / "v").read_bytes()


@functools.cache
def _trie() -> bytes:
    from structgen.sampling import Trie, load_trie, save_trie  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        made = Trie()
        sg.sample(None, "a number", {"type": "integer"}, n=3, seed=1, max_tokens=8, trie=made)
        save_trie(made, Path(folder) / "t")
        return (Path(folder) / "t").read_bytes()


def _signed(data: bytes) -> bytes:
    from oracles.vocabulary_file import signed

    return signed(bytearray(data)) if len(data) > 24 + 11 * 16 + 24 else data


def _use_vocabulary(path: Path) -> None:
    loaded = sg.Vocabulary.load(path)
    mask = sg.allocate_bitmask(1, loaded.vocab_size) if loaded.vocab_size < 1 << 20 else None
    grammar = sg.Compiler(loaded).json_schema({"type": "object", "properties": {"ab": {"type": "string"}}})
    matcher = grammar.matcher()
    for text in ("{", '"ab', '": "'):
        if mask is not None:
            matcher.fill_bitmask(mask)
        matcher.accept_bytes(text)
    for token in range(0, min(loaded.vocab_size, 4096), 17):
        matcher.fork().accept_token(token)
        loaded.token_bytes(token)


def _use_trie(path: Path) -> None:
    from structgen.sampling import load_trie

    trie = load_trie(path)
    for node in trie.nodes():
        list(node.edges)


TARGETS: dict[str, tuple[Callable[[], bytes], Callable[[bytes], bytes], Callable[[Path], None]]] = {
    "vocabulary": (_saved, lambda data: data, _use_vocabulary),
    "signed vocabulary": (_saved, _signed, _use_vocabulary),
    "trie": (_trie, lambda data: data, _use_trie),
}


def child(target: str, first: int, count: int, seed: int) -> None:
    """Prints each file's number before it reads the file, so a crash shows the file. Prints the counts as
    JSON at the end."""
    make, finish, use = TARGETS[target]
    data = make()
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    counts: Counter[str] = Counter()

    def late(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        for number in range(first, first + count):
            path.write_bytes(finish(damaged(data, random.Random(f"{target} {seed} {number}"))))
            print(number, flush=True)
            signal.alarm(SECONDS)
            try:
                use(path)
                counts["harmless"] += 1
            except sg.StructgenError:
                counts["refused"] += 1
            except Exception as error:
                counts["bad"] += 1
                counts[f"{type(error).__name__}: {str(error)[:60]} (number {number})"] += 1
            signal.alarm(0)
    print(json.dumps(counts))


def run(target: str, count: int, seed: int = 0, first: int = 0) -> Counter[str]:
    """Counts of refused, harmless and bad files; bad files are named by kind and number."""
    total: Counter[str] = Counter()
    while count > 0:
        code = f"from bench import damage; damage.child({target!r}, {first}, {count}, {seed})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
        lines = done.stdout.splitlines()
        if done.returncode == 0:
            total.update(json.loads(lines[-1]))
            return total
        if not lines:
            raise RuntimeError(done.stderr[-2000:])
        last = int(lines[-1])
        total.update({"bad": 1, f"exit code {done.returncode} (number {last})": 1})
        count -= last + 1 - first
        first = last + 1
    return total


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.damage", description=__doc__)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    bad = 0
    for target in TARGETS:
        if options.only not in target:
            continue
        counts = run(target, options.mutations, options.seed)
        bad += counts["bad"]
        print(f"{target:20}{counts['refused']:8} refused{counts['harmless']:8} harmless{counts['bad']:6} bad")
        for name, times in counts.items():
            if name not in ("refused", "harmless", "bad"):
                print(f"    {times} {name}")
    raise SystemExit(bad > 0)


if __name__ == "__main__":
    main()
