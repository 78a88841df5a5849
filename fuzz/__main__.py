"""Runs one target, or each in turn: `python -m fuzz regex --seconds 60`. Keeps what was found, measures it.

In: a target's name, seconds, a folder for what was found (corpus/ and crashes/ in it). Out: exit status 1 and
the input's file where something crashed. With Atheris installed its libFuzzer leads (fuzz/README.md says how
the core is built for it); without it, seeds are mutated at random.

    python -m fuzz all --seconds 120
    python -m fuzz keep          the inputs that add to what the kept ones run, into tests/cases/corpus
    python -m fuzz coverage      which lines of csrc/ the seeds and the kept inputs run, by room and file
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from .seeds import DICTIONARIES, corpus, kept, seeds

KEPT_BYTES = 60_000  # of one target's kept inputs; no input is longer than KEPT_INPUT
KEPT_INPUT = 1_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="fuzz what structgen reads")
    parser.add_argument("target", help="a target of fuzz/targets.py, 'all', 'keep' or 'coverage'")
    parser.add_argument("--seconds", type=int, default=120, help="for each target")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return _inside(options)
    if options.target == "keep":
        return _keep(options.out)
    if options.target == "coverage":
        from .coverage import report

        return report(_environment(), options.out)
    names = list(DICTIONARIES) if options.target == "all" else [options.target]
    failed = []
    for name in names:
        command = [sys.executable, "-m", "fuzz", name, "--seconds", str(options.seconds)]
        found = subprocess.run([*command, "--out", str(options.out), "--inside"], env=_environment())
        kept = [file.name for file in (options.out / name / "crashes").glob("*")]
        slow = sum(file.startswith("slow-unit-") for file in kept)  # libFuzzer's word for ten seconds
        crashes = f"{len(kept) - slow} crash inputs" + (f", {slow} slow" if slow else "")
        print(f"{name}: exit {found.returncode}, {crashes}", flush=True)
        if found.returncode:
            failed.append(name)
    return 1 if failed else 0


def _environment() -> dict[str, str]:
    """With a core built for libFuzzer its runtime has to be there before the core is."""
    environment = dict(os.environ)
    core = environment.get("STRUCTGEN_CORE")
    try:
        import atheris
    except ImportError:
        return environment
    if core:
        runtime = Path(atheris.path()) / "asan_with_fuzzer.so"
        preload = [str(runtime), environment.get("LD_PRELOAD", "")]
        environment["LD_PRELOAD"] = " ".join(filter(None, preload))
        # leaks at exit are the interpreter's; its own allocator hides nothing from us that is worth the time
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1")
    return environment


def _inside(options: argparse.Namespace) -> int:
    if os.environ.get("STRUCTGEN_CORE"):
        import oracles.sanitized_core  # noqa: F401
    found, crashes = options.out / options.target / "corpus", options.out / options.target / "crashes"
    for folder in (found, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    for text in corpus(options.target):
        (found / hashlib.sha1(text).hexdigest()[:16]).write_bytes(text)
    try:
        import atheris
    except ImportError:
        return _mutate(options, found, crashes)
    with atheris.instrument_imports(include=["structgen", "lark"]):
        from .targets import TARGETS
    words = options.out / options.target / "words"
    words.write_text("".join(f'"{_escaped(w)}"\n' for w in DICTIONARIES[options.target]))
    arguments = [sys.argv[0], str(found), f"-max_total_time={options.seconds}"]
    arguments += [f"-dict={words}"] if DICTIONARIES[options.target] else []
    arguments += [f"-artifact_prefix={crashes}/", "-timeout=60", "-rss_limit_mb=4096", "-max_len=4096"]
    atheris.Setup([*arguments, "-print_final_stats=1", "-verbosity=1"], TARGETS[options.target])
    atheris.Fuzz()
    return 0


def cluster(target: str, arguments: list[str]) -> None:
    """One target, with arguments of libFuzzer: as ClusterFuzzLite starts it (.clusterfuzzlite/build.sh)."""
    import atheris

    with atheris.instrument_imports(include=["structgen", "lark"]):
        from .targets import TARGETS
    atheris.Setup(arguments, TARGETS[target])
    atheris.Fuzz()


def _escaped(word: str) -> str:
    return "".join(c if c.isalnum() else f"\\x{b:02x}" for c in word for b in c.encode()[:1])


def mutated(pool: list[bytes], words: list[bytes], chance: random.Random) -> bytes:
    """Returns an input of the pool with one to six changes."""
    data = bytearray(chance.choice(pool))
    for _ in range(chance.randint(1, 6)):
        at = chance.randint(0, len(data))
        kind = chance.randint(0, 4)
        if kind == 0:
            data[at:at] = chance.choice(words)
        elif kind == 1:
            del data[at : at + chance.randint(1, 8)]
        elif kind == 2 and data:
            data[min(at, len(data) - 1)] = chance.randrange(256)
        elif kind == 3:
            data[at:at] = data[: chance.randint(0, 40)]
        else:
            other = chance.choice(pool)
            data[at:] = other[chance.randint(0, len(other)) :]
    return bytes(data)


def words_of(target: str) -> list[bytes]:
    return [word.encode() for word in DICTIONARIES[target]] or [b"a"]


def _mutate(options: argparse.Namespace, found: Path, crashes: Path) -> int:
    from .targets import TARGETS

    pool = [f.read_bytes() for f in sorted(found.iterdir())]
    words = words_of(options.target)
    chance, end, count = random.Random(0), time.monotonic() + options.seconds, 0
    while time.monotonic() < end:
        data = mutated(pool, words, chance)
        (crashes / "running").write_bytes(data)  # what is left after a crash of the process
        try:
            TARGETS[options.target](data)
        except Exception:
            (crashes / hashlib.sha1(data).hexdigest()).write_bytes(data)
            (crashes / "running").unlink()
            raise
        count += 1
    (crashes / "running").unlink(missing_ok=True)
    print(f"{count} inputs")
    return 0


def _keep(out: Path) -> int:
    """libFuzzer's merge: of what was found, the inputs that run what the seeds and the kept ones do not."""
    for name in DICTIONARIES:
        before, after = out / name / "before", out / name / "merged"
        for folder, texts in ((before, corpus(name)), (after, corpus(name))):
            folder.mkdir(parents=True, exist_ok=True)
            for old in folder.iterdir():
                old.unlink()
            for text in texts:
                (folder / hashlib.sha1(text).hexdigest()[:16]).write_bytes(text)
        script = (
            out / name / "merge.sh"
        ).absolute()  # libFuzzer begins a process for each input that crashes
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fuzz.merge {name} "{script}" "$@"\n')
        script.chmod(0o755)
        command = [str(script), "-merge=1", "-timeout=60", str(after), str(out / name / "corpus")]
        done = subprocess.run(command, env=_environment(), check=False, capture_output=True, text=True)
        if "MERGE-OUTER: the control file" not in done.stderr:
            print(f"{name}: no merge: {done.stderr.strip()[-300:]}", file=sys.stderr)
        known = {file.name for file in before.iterdir()}
        new = [f.read_bytes() for f in after.iterdir() if f.name not in known]
        old_ones = corpus(name)[len(seeds(name)) :]
        size, lines = 0, []
        for text in old_ones + sorted((t for t in new if len(t) <= KEPT_INPUT), key=lambda t: (len(t), t)):
            lines.append(json.dumps(text.decode("latin-1")))
            size += len(lines[-1]) + 1
            if size > KEPT_BYTES:
                lines.pop()
                break
        kept(name).parent.mkdir(parents=True, exist_ok=True)
        if lines:
            kept(name).write_text("\n".join(lines) + "\n")
        print(f"{name}: {len(old_ones)} kept, {len(new)} add to them, {len(lines)} now", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
