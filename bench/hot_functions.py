"""Which functions a compile runs: writes csrc/hot_functions.ld, which the linker puts side by side.

Enters: MaskBench schemas, a build with symbols, valgrind. Leaves: the linker script; in it first what a fifth
of the compiles run, first mask included, then what the others and the masks of their instances run. Cost:
eight minutes. Names that a later source no longer has do no harm; a new function is only not fetched ahead.

    cmake -S . -B build/symbols -G Ninja -DSTRUCTGEN_LINKER_PLACES=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo \
      -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O3 -DNDEBUG"
    cmake --build build/symbols
    python -m bench.hot_functions --core build/symbols
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench import data

_SHARE = 0.2  # of the compiles that run a function which is fetched before each
_WARM = 20  # schemas compiled before the first that counts
_OUT = Path(__file__).resolve().parents[1] / "csrc" / "hot_functions.ld"
# The plugin takes the core that STRUCTGEN_CORE names; it comes before anything that imports structgen.
_CHILD = "import sys, tests.sanitized_core, bench.hot_functions as own; own.child(int(sys.argv[1]))"
_NAME = re.compile(r"(c?)(ob|fn)=\((\d+)\)(?: (.*))?$")


def child(count: int) -> None:
    """Under valgrind: a profile of each compile and of each schema's masks."""
    from structgen.bench import masks
    from structgen.bench.engines.base import Refused

    def control(*arguments: str) -> None:
        subprocess.run(
            ["callgrind_control", *arguments, str(os.getpid())], stdout=subprocess.DEVNULL, check=True
        )

    state = masks.setup({"tokenizer": "tekken", "engine": "structgen"})
    engine, tokens = state["engine"], state["tokens"]
    gc.disable()
    for index, name in enumerate(data.select(data.maskbench_names(), count=count + _WARM, seed=1)):
        case = data.maskbench_case(name)
        watched = index >= _WARM
        if watched:
            control("-i", "on")
            control("-z")
        try:
            grammar, _ = masks.first_mask(engine, case.schema)
        except Refused:
            continue
        if watched:
            control("-d", "compile")
            control("-z")
        for instance in case.instances[:3]:
            masks.replay(grammar, tokens.encode(instance.text)[:300])
        if watched:
            control("-d", "masks")
            control("-i", "off")
    os._exit(0)  # the profile at the end is of nothing


def functions(profile: Iterable[str]) -> set[str]:
    """The functions of the core that a profile tells of."""
    objects: dict[str, str] = {}
    names: dict[str, str] = {}
    at, found = "", set()
    for line in profile:
        match = _NAME.match(line)
        if match is None:
            continue
        called, what, number, text = match.groups()
        table = objects if what == "ob" else names
        if text:
            table[number] = text
        if called:
            continue
        if what == "ob":
            at = table[number]
        elif "_core" in Path(at).name:
            found.add(re.sub(r"'\d+$", "", table[number]))
    return found


def sections(names: Iterable[str]) -> Iterator[str]:
    """Mangled names as their sections bear them: without the compiler's clone, constructors by their base."""
    seen = set()
    for name in names:
        plain = name.partition(".")[0]
        for alias, section in (("", ""), ("C1E", "C2E"), ("D1E", "D2E"), ("D1Ev", "D0Ev")):
            made = plain.replace(alias, section) if alias else plain
            if made.startswith("_Z") and made not in seen:
                seen.add(made)
                yield made


def script(profiles: list[tuple[str, set[str]]]) -> str:
    compiles = [found for kind, found in profiles if kind == "compile"]
    often, all_of = Counter[str](), Counter[str]()
    for found in compiles:
        often.update(found)
    for _, found in profiles:
        all_of.update(found)
    first = list(sections(name for name, count in often.most_common() if count >= _SHARE * len(compiles)))
    rest = [name for name in sections(name for name, _ in all_of.most_common()) if name not in set(first)]

    def lines(names: list[str]) -> str:
        return "".join(f"    *(.text.{name} .text.{name}.*)\n" for name in names)

    return (
        "/* Written by bench/hot_functions.py; csrc/base/hot_code.h says what for. */\n"
        "SECTIONS\n{\n  .text.structgen_hot : ALIGN(4096)\n  {\n"
        f"    HIDDEN(structgen_hot_begin = .);\n{lines(first)}"
        f"    HIDDEN(structgen_hot_end = .);\n{lines(rest)}"
        "  }\n}\nINSERT BEFORE .text;\n"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.hot_functions", description=__doc__.split("\n")[0])
    parser.add_argument("--core", type=Path, help="the build with symbols")
    parser.add_argument("--count", type=int, default=120, help="schemas (default: 120)")
    parser.add_argument("--out", type=Path, default=_OUT)
    options = parser.parse_args(arguments)
    data.require("maskbench")
    if options.core is None or not shutil.which("valgrind"):
        print("needs --core BUILD and valgrind", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["valgrind", "--tool=callgrind", "--demangle=no", "--instr-atstart=no",
             f"--callgrind-out-file={folder}/profile", sys.executable, "-c", _CHILD, str(options.count)],
            env=os.environ | {"STRUCTGEN_CORE": str(options.core.resolve()), "PYTHONPATH": str(Path.cwd())},
            stderr=subprocess.DEVNULL,
            check=True,
        )  # fmt: skip
        profiles = []
        for path in sorted(Path(folder).iterdir()):
            lines = path.read_text().splitlines()
            for kind in ("compile", "masks"):
                if f"desc: Trigger: dump {kind}" in lines:
                    profiles.append((kind, functions(lines)))
    options.out.write_text(script(profiles))
    print(f"{len(profiles)} profiles; {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
