"""Files and reports from strangers: a reader of such a file runs no code, and ends in a result or an
error."""

from __future__ import annotations

import ast
import html
import pathlib

import structgen
from bench import damage

ROOT = pathlib.Path(structgen.__file__).parent
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}


def found_in(tree: ast.AST) -> list[str]:
    """Returns the calls and imports of a module that can run code from a file."""
    out = []
    # These modules write bytes with marshal to hash them; only reading such bytes can run code.
    written = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and (ast.unparse(node) == "marshal.dumps")
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in FORBIDDEN_MODULES and id(node) not in written:
            out.append(node.id)
        if isinstance(node, ast.Import):
            out += [a.name for a in node.names if a.name.split(".")[0] in FORBIDDEN_MODULES - {"marshal"}]
            out += [a.name for a in node.names if a.name == "marshal" and a.asname]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in FORBIDDEN_MODULES:
            out.append(str(node.module))
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            keywords = {k.arg: ast.unparse(k.value) for k in node.keywords}
            if name in ("eval", "exec", "yaml.load", "yaml.unsafe_load", "os.system"):
                out.append(name)
            if name in ("np.load", "numpy.load") and keywords.get("allow_pickle", "False") != "False":
                out.append(name)
            if name == "torch.load" and keywords.get("weights_only") != "True":
                out.append(name)
            if keywords.get("shell") == "True":
                out.append(f"{name}(shell=True)")
    return out


def test_nothing_runs_what_a_file_says() -> None:
    files = sorted(ROOT.rglob("*.py"))
    assert len(files) > 100
    found = {str(f.relative_to(ROOT)): w for f in files if (w := found_in(ast.parse(f.read_text("utf-8"))))}
    assert not found


def test_the_rule_sees_them() -> None:
    for text in (
        "import pickle",
        "eval(x)",
        "np.load(x, allow_pickle=True)",
        "torch.load(x)",
        "yaml.load(x)",
    ):
        assert found_in(ast.parse(text)), text
    assert not found_in(ast.parse("np.load(x)\ntorch.load(x, weights_only=True)\nmodel.eval()"))


def test_damaged_files_are_refused_or_harmless() -> None:
    """A short form of `python -m bench.damage`."""
    for target in damage.TARGETS:
        counts = damage.run(target, 150, seed=1)
        assert counts["refused"] > 50, (target, counts)
        assert not counts["bad"], (target, counts)


def test_what_a_report_shows_is_escaped() -> None:
    """Names of engines, schemas and corpora come from files, so a report escapes the names."""
    from structgen.maskbench import page
    from structgen.maskbench.report import Curve, Report, Table

    hostile = "<script>alert('x')</script>\"&"
    table = Table(hostile, [hostile, "n"], [[hostile, "1"]])
    filled = Report(
        title=hostile,
        lead=[hostile],
        warnings=[hostile],
        engines=[hostile],
        speed=[table],
        ttfm=[Curve(hostile, [(0.0, 1.0), (1.0, 2.0)], 3)],
        pairs=[table],
        coverage={hostile: {hostile: {hostile: 1}}},
        causes=table,
        worst=[table],
        cases=[table],
        endtoend=[table],
        method=[hostile],
    )
    shown = page.render(filled)
    assert "<script" not in shown and html.escape(hostile) in shown
    assert "alert('x')" not in shown
