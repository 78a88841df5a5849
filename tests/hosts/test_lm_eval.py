"""structgen as a model of the real lm-evaluation-harness, on a task that has the metrics of JSON bench.

`make test-hosts HOST=lm_eval`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

lm_eval = pytest.importorskip("lm_eval", reason="make test-hosts HOST=lm_eval")
sys.path.append(str(Path(__file__).parent))

import torch  # noqa: E402
from contract import EXPECTED, HARD, MODEL, ORDER, PROMPT, TEXT, Asked, Budgets  # noqa: E402
from lm_eval.api.instance import Instance  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402

from structgen.integrations.lm_eval import ConstrainedHFLM  # noqa: E402
from structgen.lm import embedded  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def model() -> Any:
    return ConstrainedHFLM(pretrained=MODEL, device="cpu", dtype="float32", batch_size=2)


def request(prompt: str, doc: dict[str, Any], index: int = 0, **options: Any) -> Instance:
    return Instance("generate_until", doc, (prompt, {"max_gen_toks": 150, **options}), index)


class TestContract(Budgets):
    @pytest.fixture(autouse=True)
    def host(self, model: Any) -> None:
        self.model = model

    kinds = ("json_schema", "regex", "choice", "gbnf", "lark", "structural_tag")

    def host_answer(self, asked: Asked) -> str:
        torch.manual_seed(asked.seed)
        options = {"max_gen_toks": asked.max_tokens, "until": ["\n\n", "}"], **asked.torch_sampling}
        one = request(asked.prompt, {asked.kind: asked.text}, **options)
        (made,) = self.model.generate_until([one], disable_tqdm=True)
        return str(made)


def test_documents_with_and_without_a_constraint(model: Any) -> None:
    docs: list[dict[str, Any]] = [
        {"json_schema": ORDER},
        {},
        {"choice": ["yes", "no"]},
        {"json_schema": None},
    ]
    asked = [request(PROMPT, doc, i, until=["\n\n"]) for i, doc in enumerate(docs)]
    found = model.generate_until(asked, disable_tqdm=True)
    assert found[0] == EXPECTED and found[2] in ("yes", "no")
    plain = super(ConstrainedHFLM, model).generate_until([asked[1], asked[3]], disable_tqdm=True)
    assert [found[1], found[3]] == plain
    assert asked[0].args[1]["until"] == ["\n\n"], "requests stay as they are"


TASK = """
task: orders
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
doc_to_text: "{{{{prompt}}}}"
doc_to_target: "{{{{json_schema}}}}"
output_type: generate_until
generation_kwargs:
  max_gen_toks: 100
  do_sample: false
  until: ["\\n\\n"]
metric_list:
  - metric: !function {metrics}.json_validity
    aggregation: mean
    higher_is_better: true
  - metric: !function {metrics}.schema_compliance
    aggregation: mean
    higher_is_better: true
"""


def test_a_task(model: Any, tmp_path: Path) -> None:
    """By the harness's own metrics all constrained texts comply, and some unconstrained texts fail."""
    schemas = [ORDER, *HARD.values()]
    rows = [
        {"prompt": embedded.format_prompt(TEXT, schema), "json_schema": json.dumps(schema)}
        for schema in schemas
    ]
    (tmp_path / "rows.json").write_text("\n".join(map(json.dumps, rows)))
    source = Path(lm_eval.__file__).parent / "tasks" / "jsonschema_bench" / "metrics.py"
    (tmp_path / "metrics.py").write_text(source.read_text())
    (tmp_path / "orders.yaml").write_text(TASK.format(data=tmp_path / "rows.json", metrics="metrics"))
    found = {}
    for name, one in (("constrained", model), ("free", lm_eval.models.huggingface.HFLM)):
        if name == "free":
            one = one(pretrained=MODEL, device="cpu", dtype="float32", batch_size=1)
        results = lm_eval.simple_evaluate(
            model=one, tasks=["orders"], task_manager=TaskManager(include_path=str(tmp_path))
        )
        found[name] = results["results"]["orders"]
    print(found)
    assert found["constrained"]["schema_compliance,none"] == 1.0
    assert found["constrained"]["json_validity,none"] == 1.0
    assert found["free"]["schema_compliance,none"] < 1.0


def test_by_name() -> None:
    from lm_eval.api.registry import get_model

    assert get_model("structgen-hf") is ConstrainedHFLM


KEPT = """
import ctypes, sys
from lm_eval.api.instance import Instance
from structgen.integrations.lm_eval import ConstrainedHFLM
model = ConstrainedHFLM(pretrained=sys.argv[1], device="cpu", dtype="float32")
print(model.generate_until([Instance("generate_until", {"regex": "[0-9]"}, ("a", {"max_gen_toks": 5}), 0)]))
ctypes.pythonapi.Py_IncRef(ctypes.py_object(model))  # nobody frees it
"""


def test_it_exits_in_silence() -> None:
    done = subprocess.run([sys.executable, "-c", KEPT, MODEL], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "nanobind" not in done.stderr, done.stderr[-2000:]
