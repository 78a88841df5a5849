"""Every recursion of the C++ core that calls no check_depth().

    python tools/recursions.py [--all] [FILE ...]

In: csrc/ or the files, compiled by gcc with -fcallgraph-info. Out: each cycle of the call graph through
which no ``check_depth()`` (csrc/base/depth.h) is called, with the stack of its functions; the exit status is
1 where there is one that ``BOUNDED`` does not explain. A lambda in a std::function counts as called by the
function that it stands in, which is on the stack whenever it runs; a call by pointer from parse/ or engine/
may reach every virtual function of productions, one from RegexArena every LazyLanguage. ``--all``: guarded
ones too. Cost: a minute and a half, two processes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = ("include", "capi", "bind")  # hosts call these
GUARD = "stack_is_low"
# Recursions that need no guard: what a function's name has in it, and what bounds the depth. A cycle is left
# out where each of its functions is one of these.
BOUNDED = {
    r"std::__": "the standard library's sorts: a logarithm",
    r"std::_Rb_tree": "the standard library's trees: a logarithm",
    r"FlatMap<.*>::emplace": "a table that grows fills the larger one, which does not grow: 2",
    r"structgen::\(anonymous namespace\)::category\(": "Unicode's categories consist of others: 3",
    r"structgen::\(anonymous namespace\)::shorthand\(": "a negated class is one that is not: 2",
    r"structgen::Spellable::judge\(": "asks for the state without its captured text, which has no other: 2",
    r"structgen::Budget::(needed|find|finish|plan)\(": "a search ends where a text is known: 2",
    r"structgen::Canvas::(allows|set|fill_row)\(": "asks a copy in which the slot is clear: 2",
    r"structgen::Completion::floor\(": "looks into kFloorDepth rules within rules: 3",
    r"structgen::Outline::place\(": "among alternatives stand others only as one character: 3",
    r"structgen::RegexArena::needs_escape\(": "an intersection consists of no intersections: 2",
    r"structgen::Solver::schema_of\(": "looks into as many levels as its caller says: 3",
    r"structgen::asks_whole\(": "of a choice it asks numbers alone, which consist of nothing: 2",
    # A call of these is one by pointer from a file of parse/ or engine/, so it may reach each of them.
    r"Productions::\w+\(": "only the parts stand in a composed grammar, never another one: 2",
}


def compile_all(sources: list[Path], folder: Path) -> None:
    def one(source: Path) -> None:
        name = "_".join(source.parts[1:])
        flags = ["-std=c++20", "-O2", "-DNDEBUG", "-w", "-fPIC", "-fvisibility=hidden", "-fcallgraph-info=su"]
        command = ["g++", *flags, f"-I{ROOT / 'csrc'}", "-c", str(source), "-o", str(folder / f"{name}.o")]
        subprocess.run(command, check=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, sources))


def read(folder: Path) -> tuple[dict[str, str], dict[str, set[str]]]:
    """Labels and edges of all files' graphs; local functions carry their file's name in the title."""
    labels: dict[str, str] = {}
    edges: dict[str, set[str]] = {}
    for path in sorted(folder.glob("*.ci")):
        for line in path.read_text().splitlines():
            if m := re.match(r'node: \{ title: "([^"]*)" label: "([^"]*)"', line):
                if "bytes" in m[2] or m[1] not in labels:
                    labels[m[1]] = m[2]
            elif m := re.match(r'edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"', line):
                edges.setdefault(m[1], set()).add(m[2])
    return labels, edges


def cycles(edges: dict[str, set[str]]) -> Iterator[list[str]]:
    """Strongly connected components with a cycle (Tarjan 1972), without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: list[str] = []
    is_open: set[str] = set()
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges.get(root, ())))]
        index[root] = low[root] = len(index)
        open_.append(root)
        is_open.add(root)
        while work:
            node, rest = work[-1]
            for to in rest:
                if to not in index:
                    index[to] = low[to] = len(index)
                    open_.append(to)
                    is_open.add(to)
                    work.append((to, iter(edges.get(to, ()))))
                    break
                if to in is_open:
                    low[node] = min(low[node], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    found = []
                    while not found or found[-1] != node:
                        found.append(open_.pop())
                        is_open.discard(found[-1])
                    if len(found) > 1 or node in edges.get(node, ()):
                        yield found


def shown(label: str) -> str:
    name, _, rest = label.partition("\\n")
    size = re.search(r"(\d+) bytes", rest)
    place = rest.split("\\n")[0].replace(f"{ROOT}/", "")
    return f"{size[1] if size else '?':>6}  {name}  {place}"


def add_indirect(labels: dict[str, str], plain: dict[str, str], edges: dict[str, set[str]]) -> None:
    """Edges of calls by pointer, as far as they can close a cycle."""
    reached = re.compile(r"Productions::(expand|lexeme|restricted|plain|start_search)\w*\(")
    virtual = {t for t, n in plain.items() if reached.search(n)}
    # Only parts stand in a composed grammar, never another composed one.
    parts = {t for t in virtual if "ComposedProductions" not in plain[t]}
    lazy = {t for t, n in plain.items() if "::unfold(" in n}
    by_name: dict[str, list[str]] = {}
    for t, n in plain.items():
        for name in re.findall(r"structgen::(?:\{anonymous\}::)?([\w:]+)\(", n)[:1]:
            if "std_function.h" not in labels.get(t, ""):
                by_name.setdefault(name, []).append(t)
    for t, label in labels.items():
        held = re.search(r"_Functor = structgen::(?:\{anonymous\}::)?([\w:]+?)(?:<.*?>)?\(.*<lambda", label)
        if "std_function.h" in label and held and "_M_manager" not in label:
            for caller in by_name.get(held[1], []):
                edges.setdefault(caller, set()).add(t)
    for t, targets in edges.items():
        if "__indirect_call" in targets:
            targets.discard("__indirect_call")
            place = labels.get(t, "")
            if "csrc/parse/" in place or "csrc/engine/" in place:
                targets |= parts if "ComposedProductions" in place else virtual
            # RegexArena alone holds lazy languages. It counts the memory of caches by pointer too.
            if "csrc/regex/" in place and "RegexArena::" in plain[t] and "::byte_size(" not in plain[t]:
                targets |= lazy


def main() -> int:
    sources = [Path(name).resolve() for name in sys.argv[1:] if name != "--all"] or [
        p
        for p in sorted((ROOT / "csrc").rglob("*.cc"))
        if p.relative_to(ROOT / "csrc").parts[0] not in SKIPPED
    ]
    bounded = re.compile("|".join(BOUNDED))
    with tempfile.TemporaryDirectory() as name:
        compile_all(sources, Path(name))
        labels, edges = read(Path(name))
    plain = {t: labels.get(t, t).partition("\\n")[0] for t in set(labels) | set(edges)}
    add_indirect(labels, plain, edges)
    guarded = {t for t, targets in edges.items() if any(GUARD in to for to in targets)}
    if "--all" not in sys.argv:
        edges = {
            t: {to for to in targets if to not in guarded} for t, targets in edges.items() if t not in guarded
        }
    found = 0
    for cycle in cycles(edges):
        members = [t for t in cycle if "structgen" in plain.get(t, t)]
        if not members or all(bounded.search(plain[t]) for t in members):
            continue
        found += 1
        print(f"a cycle of {len(cycle)}:")
        for t in members:
            print("  ", "guarded" if t in guarded else "       ", shown(labels.get(t, t)))
    print(
        f"{found} cycles{'' if '--all' in sys.argv else ' without a guard'}, {len(guarded)} functions guarded"
    )
    return 1 if found and "--all" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
