"""Plants bugs in the engine and checks that the tests fail.

Enters: the source tree and a list of small changes, each a class of bug that once occurred. Leaves: for each
bug the tests that caught it, or a line that no test did. The tree is copied and built once without a bug (the
tests must pass there), and then once with each bug. Cost: minutes for the first build, about one minute for
every bug.

    python -m bench.planted --work build/planted [--only memo] [--jobs 2]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = (
    "CMakeLists.txt",
    "pyproject.toml",
    "csrc",
    "structgen",
    "grammars",
    "bench",
    "oracles",
    "tests",
    "examples",
)
TESTS = (
    "tests/test_formats.py",
    "tests/test_differential.py",
    "tests/test_json_schema.py",
    "tests/test_laws.py",
    "tests/test_long_texts.py",
    "tests/test_token_formats.py",
    "tests/test_random_grammars.py",
    "tests/test_least_tokens.py",
    "tests/test_canvas.py",
    "tests/test_search.py",
    "tests/test_sampling_search.py",
    "tests/test_contrast.py",
    "tests/test_sampling_thin.py",
    "tests/test_other_vocabularies.py",
    "tests/test_beams.py",
    "tests/test_draft_models.py",
    "tests/test_drafters.py",
    "tests/test_corpus.py",
    "tests/test_random_vocabularies.py",
    "tests/test_resident.py",
    "tests/test_plain_numbers.py",
    "tests/test_serialize.py",
    "tests/test_custom_tools.py",
    "tests/test_reasoning.py",
    "tests/test_comparing.py",
    "tests/test_workbench.py",
    "tests/test_providers.py",
    "tests/test_conditions.py",
)


@dataclass(frozen=True, slots=True)
class Bug:
    """A replacement in one file. Blanks in `old` match any blanks, because formatters may move them."""

    name: str
    file: str
    old: str
    new: str


BUGS = (
    Bug(
        "containment: two versions of a document under one URI are taken for one",
        "structgen/operands.py",
        "clash = any(uri in known and known[uri] != schema for uri, schema in means.items())",
        "clash = False",
    ),
    Bug(
        "containment: a witness ends where the wide side reads no more",
        "structgen/comparing.py",
        "longer += one.matchers[there].shortest_completion()",
        "",
    ),
    Bug(
        "containment: a pair of states is left out where both sides end",
        "structgen/comparing.py",
        "if w == -2 or (one.accepts(n) and (w == -1 or other.accepts(w) == both)):",
        "if w == -2 or (one.accepts(n) and w == -1):",
    ),
    Bug(
        "counts: bytes that lead to one state count once",
        "structgen/counting.py",
        "behind[there] = behind.get(there, 0) + paths * len(letters)",
        "behind[there] = behind.get(there, 0) + paths",
    ),
    Bug(
        "draws: of the bytes that lead to one state only the first is drawn",
        "structgen/counting.py",
        "text.append(letters[rank // ways])",
        "text.append(letters[0])",
    ),
    Bug(
        "changes of an API: what is read is compared as what is sent",
        "structgen/diffing.py",
        'wide, narrow = reversed(sides) if traffic == "request" else sides',
        "wide, narrow = reversed(sides)",
    ),
    Bug(
        "changes of an API: what a reference leads to refers to nothing",
        "structgen/diffing.py",
        "todo.append(targets[path])",
        "",
    ),
    Bug(
        "examples: a boundary of a branch is met outside of it",
        "structgen/testdata.py",
        'return lambda inner: wrap({"allOf": [_refer(path), inner]})',
        "return wrap",
    ),
    Bug(
        "examples: a near miss of a place is one of the whole schema",
        "structgen/testdata.py",
        "return None if matcher.accept_bytes(text.encode()) and matcher.is_accepting() else text",
        "return text",
    ),
    Bug(
        "providers: a rewrite is offered without a proof",
        "structgen/providers.py",
        'if fits and self.apart(place, node) == ("", ""):',
        "if fits:",
    ),
    Bug(
        "providers: an escaped parenthesis begins a lookahead",
        "structgen/providers.py",
        r'found = re.compile(rf"(?s)(?:[^\\]|\\.)*?(?:{part})")',
        r'found = re.compile(rf"(?s).*?(?:{part})")',
    ),
    Bug(
        "items beside the states: a number that can only get zeros is taken to become new",
        "csrc/engine/lenient.cc",
        "if (!one_value(parser, s, nonzero, exponent))",
        "if (true)",
    ),
    Bug(
        "items beside the states: an escape weighs what its bytes do",
        "csrc/engine/distinct.cc",
        "return byte == 'u' ? -4u : 0;",
        "return 0;",
    ),
    Bug(
        "keys beside the states: a key whose beginning is taken back has begun",
        "csrc/engine/distinct.cc",
        "if (inner() != kNone && arrays_[inner()].begin >= size) arrays_[inner()].begin = kNone;",
        "",
    ),
    Bug(
        "keys beside the states: a key of few keys is compared there, too",
        "csrc/schema/write/productions.cc",
        "if (lenient_ && solver_.unique().lasting(plan.classes[c.v].language))",
        "if (lenient_)",
    ),
    Bug(
        "items beside the states: a budget counts on items that avoid no member",
        "csrc/engine/lenient.cc",
        "if (fate(grammar, epoch, {&byte, 1}, true, to) != Fate::kLives) continue;",
        "if (fate(grammar, epoch, {&byte, 1}, true, to) == Fate::kStates) continue;",
    ),
    Bug(
        "items beside the states: what is taken back stays in the set",
        "csrc/engine/distinct.cc",
        "slots_[i] = 0;",
        "",
    ),
    Bug(
        "plain numbers: a whole number may be written with a point",
        "csrc/schema/values/numbers.cc",
        "return whole(p) ? of(kWhole, domain) : domain;",
        "return domain;",
    ),
    Bug(
        "plain numbers: a complement is taken from what is offered, so that 1.0 is no 1",
        "csrc/schema/values/numbers.cc",
        "const Domain all = is(domain, kOffered) ? of(kAll, domain) : domain;",
        "const Domain all = domain;",
    ),
    Bug(
        "captured items: a value is refused only if all that may follow it is captured, too",
        "csrc/schema/decide/captured.cc",
        "if (std::ranges::all_of(rests,",
        "if (std::ranges::any_of(rests,",
    ),
    Bug(
        "captured items: a member leaves the captured values that differ from it",
        "csrc/schema/decide/captured.cc",
        "if (const std::string* v = part(added[i], part_name); v && *v == value)",
        "if (const std::string* v = part(added[i], part_name); v)",
    ),
    Bug(
        "serialized grammars: the priority of a lexeme is lost",
        "csrc/engine/written_grammar.cc",
        "form.field(l.priority);",
        "",
    ),
    Bug(
        "thoughts: an end mark may be complete before the one that is meant",
        "structgen/reasoning.py",
        "text = source.not_ending(b, text, [] if special else source.early(end, [end]))",
        "",
    ),
    Bug(
        "thoughts: a grammar put into another keeps the numbers of its lexemes",
        "csrc/engine/written_grammar.cc",
        "case NodeOp::kLexeme: n.a += lexemes; break;",
        "case NodeOp::kLexeme: break;",
    ),
    Bug(
        "thoughts: a mark on the stack is taken for none, so that limits end where an answer is near",
        "csrc/parse/limits.cc",
        "any = any || possible_[e.rest.v] != 0 || kind == Symbol::kLimit ||",
        "any = any || possible_[e.rest.v] != 0 ||",
    ),
    Bug(
        "thoughts: the bytes that end a limited text are not compared with the tokens that are left",
        "csrc/budget/limits.cc",
        "if (top.top.kind() == Symbol::kLimit && lengths_.begun(item.regex) <= top.top.number())",
        "if (top.top.kind() == Symbol::kLimit)",
    ),
    Bug(
        "thoughts: a token behind a known mask is read without being counted",
        "csrc/budget/limits.cc",
        "parser_.state(s).begun.store(from.v, std::memory_order_relaxed);",
        "parser_.state(s).begun.store(s.v, std::memory_order_relaxed);",
    ),
    Bug(
        "masks: a regex that ends everywhere in a subtree is left by the byte in front of it, too",
        "csrc/mask/fill_walks.cc",
        "if (subtree->first < node) read_on(node, left, b, out);",
        "read_on(node, left, b, out);",
    ),
    Bug(
        "strings in grammars: what may not follow a lexeme is told of characters that are escaped, too",
        "csrc/grammar/lexemes.cc",
        "if (plain_escape(c) != 0) plain.remove(static_cast<uint8_t>(c));",
        "",
    ),
    Bug(
        "strings in grammars: a lexeme inside a string is written as outside of one",
        "csrc/grammar/lexemes.cc",
        "part = {inside_json(regexes_, part.regex), spelled(part.follow)};",
        "part = {part.regex, spelled(part.follow)};",
    ),
    Bug(
        "a token without its edge: an ordinary token may be the beginning of a longer one",
        "structgen/frontend/whole_tokens.py",
        "return b.sequence([b.edge(), b.limit(text, 1, name), b.edge()])",
        "return b.sequence([b.edge(), b.limit(text, 1, name)])",
    ),
    Bug(
        "a nullable symbol ends the search for left calls: hidden left recursion stays",
        "csrc/grammar/cfg.cc",
        "if (s.kind == CfgSymbol::kRule) f(s.id);\n      if (!nullable(cfg, regexes, s)) break;",
        "if (s.kind == CfgSymbol::kRule) f(s.id);\n      break;",
    ),
    Bug(
        "untainted memo: a negative answer is kept though an open ancestor was consulted",
        "csrc/schema/decide/solve.cc",
        "} else if (low_ >= mine) {",
        "} else if (low_ >= mine || depth_ >= mine) {",
    ),
    Bug(
        "shared memo: what is known of an object is kept under a key that plans share",
        "csrc/schema/decide/object.h",
        "friend bool operator==(const Situation&, const Situation&) = default;\n};\nstruct SituationHash {\n"
        "std::size_t operator()(const Situation& s) const {\n"
        "return mix(mix(mix(mix(7, s.plan.v), s.rest.v), s.used.v), s.taken.v);\n}",
        "friend bool operator==(const Situation& x, const Situation& y) {"
        " return x.rest == y.rest && x.used == y.used && x.taken == y.taken; }\n};\nstruct SituationHash {\n"
        "std::size_t operator()(const Situation& s) const {\n"
        "return mix(mix(mix(7, s.rest.v), s.used.v), s.taken.v);\n}",
    ),
    Bug(
        "lengths: the characters that a token has read do not count towards the largest length",
        "csrc/mask/bounds.cc",
        "return added != kNever && (max == kUnbounded || uint64_t{n} + added <= max);",
        "return added != kNever && (max == kUnbounded || added <= max);",
    ),
    Bug(
        "words behind other bytes: a token with a word is lost only where it begins within the word",
        "csrc/mask/bounds.cc",
        "if (set & 1) nodes.push_back(node);",
        "if (set == 1) nodes.push_back(node);",
    ),
    Bug(
        "a place among several: a terminal between two places has the texts that lead to any end",
        "csrc/holes/intersection.cc",
        "if (std::ranges::any_of(all.exits, rival) || !(all.whole || ends))",
        "if (!(all.whole || ends))",
    ),
    Bug(
        "a format that is too small: no leap days",
        "csrc/strings/format.cc",
        'return any_of({"\\\\d{4}-" + month_day, leap_year + "-02-29"});',
        'return any_of({"\\\\d{4}-" + month_day});',
    ),
    Bug(
        "a dropped residual: a member that misses a count cannot be written",
        "csrc/schema/formula/formula.h",
        "return either(both(hit, less), both(negate(hit), same));",
        "return both(hit, count == Count::kSome ? less : either(less, same));",
    ),
    Bug(
        "a dropped cell: only the branch where a subschema holds is followed",
        "csrc/schema/decide/solve.cc",
        "for (bool truth : {true, false}) {\nFlatMap<uint32_t, TypedId> memo;",
        "for (bool truth : {true}) {\nFlatMap<uint32_t, TypedId> memo;",
    ),
    Bug(
        "a count off by one: maxContains lets one more pass",
        "csrc/schema/lower/lower.cc",
        "put(formulas_.item_most(0, kUnbounded, v, count(at, o[Word::kMaxContains], false)));",
        "put(formulas_.item_most(0, kUnbounded, v, count(at, o[Word::kMaxContains], false) + 1));",
    ),
    Bug(
        "an annotation that travels too far: additionalProperties of a failed branch counts as evaluated",
        "csrc/schema/lower/unevaluated.cc",
        "collect_kid(at, j.item(o[w], i), condition, w != Word::kAllOf);",
        "collect_kid(at, j.item(o[w], i), condition, w == Word::kOneOf);",
    ),
    Bug(
        "an item in a hole may be what the suffix has",
        "csrc/holes/quotient_questions.cc",
        "  const std::vector<std::string> bad = told(item, some, false);\n",
        "  const std::vector<std::string> bad;\n",
    ),
    Bug(
        "a blind cloud's yes is a promise: captured text in other slots may be the same",
        "csrc/holes/canvas.cc",
        "return shown_ || !clouds_->seen_blind() ? Verdict::kYes : Verdict::kUnknown;",
        "return Verdict::kYes;",
    ),
    Bug(
        "the end of a text may stand behind the slot that has it",
        "csrc/holes/canvas.cc",
        "out.hi = i;",
        "out.hi = n;",
    ),
    Bug(
        "tokens that go on behind a terminal with a label are forgotten",
        "csrc/holes/strides.cc",
        "if (n.nullable) out.all.exits",
        "if (n.nullable && n.kind != RegexKind::kDone) out.all.exits",
    ),
    Bug(
        "a search forgets the siblings that it has not made: what it calls the best is the best it looked at",
        "structgen/sampling/best_first.py",
        "if place.rest > NEVER:",
        "if place.rest > NEVER and place.opened < 2:",
    ),
    Bug(
        "a step that a limit interrupts leaves its place opened",
        "structgen/sampling/best_first.py",
        "self._look(children)\n        return _Opening",
        "place.opened = max(opened, 1)\n        self._look(children)\n        return _Opening",
    ),
    Bug(
        "the trace of structure takes the place after for the place before",
        "structgen/_structure.py",
        "(self._common[:size] + 1)",
        "(self._common[1 : size + 1] + 1)",
    ),
    Bug(
        "a beam with goals compares texts that got far with texts that did not",
        "structgen/sampling/lexical.py",
        "groups.setdefault(group(item), [])",
        "groups.setdefault(None, [])",
    ),
    Bug(
        "a clause that forbids counts as kept for good while the text goes on",
        "structgen/sampling/lexical.py",
        "if ended:\n                    kept.add(at)",
        "kept.add(at)",
    ),
    Bug(
        "contrast acts where its second model's entropy forbids it",
        "structgen/sampling/contrast.py",
        "(nats < self.entropy[0]) | (nats > self.entropy[1])",
        "(nats < self.entropy[0]) & (nats > self.entropy[1])",
    ),
    Bug(
        "contrast without its floor: a token that the second model calls impossible takes all",
        "structgen/sampling/contrast.py",
        "np.maximum(rows, self.floor)",
        "np.maximum(rows, 9 * self.floor)",
    ),
    Bug(
        "an anchored step spends what earlier steps spent already",
        "structgen/lm/mixing.py",
        "return max(0.0, share - context.spent)",
        "return max(0.0, share - context.spent / 2)",
    ),
    Bug(
        "a thin vector's tail keeps the weight of tokens that bounds took out of it",
        "structgen/sampling/vector.py",
        "rest = max(0.0, vector.tail - self._kept())",
        "rest = vector.tail",
    ),
    Bug(
        "a draw among the tokens that a thin vector leaves out may fall on one that it has",
        "structgen/sampling/vector.py",
        "scores[at[whole.ids[at] == self.ids]] = NEVER",
        "scores[at[whole.ids[at] == self.ids][1:]] = NEVER",
    ),
    Bug(
        "several ends of a vocabulary: their sum is rounded",
        "structgen/sampling/target.py",
        "return float(np.logaddexp.reduce(ends.astype(np.float64)))",
        "return float(np.float32(np.logaddexp.reduce(ends.astype(np.float64))))",
    ),
    Bug(
        "contrast counts each end with the sum of all",
        "structgen/sampling/contrast.py",
        "once[:, self._ends[1:]] = -np.inf",
        "once[:, :0] = -np.inf",
    ),
    Bug(
        "a search from a file pays again for what it paid",
        "structgen/sampling/best_first.py",
        "tuple(walk.tokens) not in self.paid",
        "bool(walk.tokens is not self.paid)",
    ),
    Bug(
        "rows on a device: of equal values at the border too many are kept",
        "structgen/lm/resident.py",
        "(torch.cumsum(level, -1) <= room)",
        "(torch.cumsum(level, -1) <= room + 1)",
    ),
    Bug(
        "tree search: visits of the child count for the place's own",
        "structgen/sampling/best_first.py",
        "root = math.sqrt(place.visits)",
        "root = math.sqrt(place.visits - 1)",
    ),
    Bug(
        "drafts of another vocabulary: the law that is told keeps what the mask took",
        "structgen/speculation/drafters/model_cursor.py",
        "return found[0], weights / weights.sum()",
        "return found[0], weights",
    ),
    Bug(
        "drafts of another vocabulary: an id of the draft model passes for the target's",
        "structgen/speculation/drafters/token_intersection.py",
        "theirs.append(found)",
        "theirs.append(token)",
    ),
    Bug(
        "a string that was read on still counts for the token that it had been",
        "structgen/speculation/drafters/string_draft.py",
        "psi[ranges.base] -= chance * longer[-1]",
        "psi[ranges.base] -= 0.0",
    ),
    Bug(
        "rows of a trimmed head stand at their place among the rows, not at their id",
        "structgen/speculation/drafters/head_trim.py",
        "found[..., self.ids] = few",
        "found[..., : len(self.ids)] = few",
    ),
    Bug(
        "beams: children stand in the order of their probability, not of their numbers",
        "structgen/speculation/beams.py",
        "found.sort(key=lambda item: -item[0])",
        "found.sort(key=lambda item: -item[3])",
    ),
    Bug(
        "beams: numbers of children are not held to the number of their parent",
        "structgen/speculation/beams.py",
        "found: Floats = above - np.maximum(0.0, gap) - np.log1p(np.exp(-np.abs(gap)))",
        "found: Floats = free",
    ),
    Bug(
        "the lookahead window keeps its place when the text grows by several tokens",
        "structgen/speculation/drafters/lookahead_window.py",
        "rows, gone = rows[1:], gone - 1",
        "rows, gone = rows[1:], 0",
    ),
    Bug(
        "a corpus: a state that is split keeps the occurrences of its shorter strings for itself",
        "structgen/speculation/drafters/suffix_automaton.py",
        "self.link[state] = clone",
        "self.link[state] = self.link[clone]",
    ),
    Bug(
        "a corpus from a file: links may go round in a circle",
        "structgen/speculation/drafters/corpus.py",
        "if (length[link[1:]] >= length[1:]).any()",
        "if (length[link[1:]] > length[1:]).any()",
    ),
    Bug(
        "layers chosen while running: a draft that comes true later counts as accepted",
        "structgen/speculation/drafters/layer_choice.py",
        "self._layers.observe(first == token)",
        "self._layers.observe(first in step.tokens)",
    ),
)


def run(command: list[str], where: Path, more: dict[str, str] | None = None) -> tuple[int, str]:
    known = {"cwd": where, "env": os.environ | (more or {}), "timeout": 3600}
    done = subprocess.run(command, **known, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def copy_changed(source: str, target: str) -> str:
    """Copies a changed tree. Equal files keep their time of change; otherwise ninja could miss that a bug was
    removed."""
    if not Path(target).exists() or Path(source).read_bytes() != Path(target).read_bytes():
        shutil.copyfile(source, target)
    return target


def build(tree: Path, jobs: int) -> None:
    out = tree / "build-planted"
    if not out.exists():
        out.mkdir()
        flags = [
            "-DCMAKE_BUILD_TYPE=Release",
            "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
            f"-DPython_EXECUTABLE={sys.executable}",
        ]
        status, text = run(["cmake", "-G", "Ninja", *flags, ".."], out)
        if status:
            raise SystemExit(text)
    status, text = run(["ninja", f"-j{jobs}"], out)
    if status:
        raise SystemExit(text[-4000:])
    for old in (tree / "structgen").glob("_core*.so"):
        old.unlink()
    for new in out.glob("_core*.so"):
        shutil.copy(new, tree / "structgen")


def failures(tree: Path) -> list[str]:
    """Returns the failing tests. The command names the copy's library, because Python would find an editable
    install first."""
    plugins = ["-p", "no:cacheprovider", "-p", "oracles.sanitized_core"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", *plugins, *TESTS]
    status, text = run(command, tree, {"STRUCTGEN_CORE": str(tree / "build-planted")})
    if status == 0:
        return []
    found = re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
    return found or [f"exit status {status}: {text.strip().splitlines()[-1] if text.strip() else ''}"]


def changed(text: str, bug: Bug) -> str:
    found = list(re.finditer(r"\s+".join(map(re.escape, bug.old.split())), text))
    if len(found) != 1:
        raise SystemExit(f"{bug.name}: the text to change stands {len(found)} times in {bug.file}")
    return text[: found[0].start()] + bug.new + text[found[0].end() :]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.planted", description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=Path, default=Path("build/planted"))
    parser.add_argument("--only", default="", help="bugs whose name contains this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="name the bugs and check that they still apply")
    options = parser.parse_args(arguments)
    bugs = [bug for bug in BUGS if options.only in bug.name]
    for bug in bugs:
        changed((ROOT / bug.file).read_text(encoding="utf-8"), bug)
    if options.list:
        print("\n".join(bug.name for bug in bugs))
        return 0
    tree = options.work.resolve()
    tree.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, copy_function=copy_changed, dirs_exist_ok=True)
        else:
            copy_changed(str(source), str(tree / name))
    build(tree, options.jobs)
    wrong = failures(tree)
    if wrong:
        raise SystemExit(f"the tests fail without a planted bug: {', '.join(wrong)}")
    print("without a planted bug: the tests pass", flush=True)
    missed = 0
    for bug in bugs:
        begin = time.monotonic()
        file = tree / bug.file
        kept = file.read_text(encoding="utf-8")
        file.write_text(changed(kept, bug), encoding="utf-8")
        try:
            build(tree, options.jobs)
            caught = failures(tree)
        finally:
            file.write_text(kept, encoding="utf-8")
        missed += not caught
        print(
            f"{'caught' if caught else 'MISSED'}  {bug.name}  ({time.monotonic() - begin:.0f} s)", flush=True
        )
        for test in caught:
            print(f"          {test}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
