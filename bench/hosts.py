"""Measures the cost of structured output for a batch step of the real vLLM, with structgen and with xgrammar.

Enters: backends. Leaves: ten rows (five constraints, batches of 8 and 64), each with the time of compiling
and with the mean and the worst step, cold and warm. Cost: three minutes; vLLM with structgen installed
(docs/hosts.md).

    python -m bench.hosts [--backends structgen,xgrammar] [--batches 8,64] [--cases "schema, large;tools"]

A step is vLLM's `grammar_bitmask` (the rows of the batch) and the following `accept_tokens`, in CPU time of
the engine's thread. The model has the 131,072 tokens of tekken and one layer, and is written to a temporary
folder. In every context it draws the token of rank r with a weight of 1 / r. *Cold* is a batch on a new
backend; *warm* is the same batch again with the same seeds. The compiles come before the steps and are timed
separately: the compiles of all requests of the cold batch, each made in the host's way.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oracles import data

ROOT = Path(__file__).resolve().parents[1]
_SIZE, _HEADS = 64, 2
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
}


def constraints() -> dict[str, tuple[dict[str, Any], int]]:
    """Returns a dict of label -> vLLM's `structured_outputs`, and `max_tokens`."""
    easy = json.loads((ROOT / "examples" / "order.schema.json").read_text("utf-8"))
    leaf: dict[str, Any] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 40},
            "count": {"type": "integer", "minimum": 0, "maximum": 5000},
            "kind": {"enum": ["small", "medium", "large", None]},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 8},
        },
        "required": ["name", "kind"],
        "additionalProperties": False,
    }
    names = [f"part_{i:03}" for i in range(150)]
    large = leaf | {"properties": dict.fromkeys(names, leaf), "required": names[::3]}
    gbnf = r"""root ::= sum
sum ::= term (" " [-+] " " term)*
term ::= factor (" " [*/] " " factor)*
factor ::= [0-9]+ | [a-z]+ | "(" sum ")" | [a-z]+ "(" sum ("," " " sum)* ")"
"""
    tags = [
        {
            "type": "tag",
            "begin": f'<tool_call>\n{{"name": "{name}", "arguments": ',
            "content": {"type": "json_schema", "json_schema": schema},
            "end": "}\n</tool_call>",
        }
        for name, schema in (("order", easy), ("describe", leaf))
    ]
    calls = {"type": "tags_with_separator", "tags": tags, "separator": "\n", "at_least_one": True}
    return {
        "schema, easy": ({"json": json.dumps(easy)}, 64),
        "schema, large": ({"json": json.dumps(large)}, 64),
        "regex [a-z ]{400}": ({"regex": "[a-z ]{400}"}, 32),
        "gbnf": ({"grammar": gbnf}, 64),
        "tools": ({"structural_tag": json.dumps({"type": "structural_tag", "format": calls})}, 64),
    }


def write_model(folder: Path) -> int:
    """Writes the model and its tokenizer, and returns the id that ends a text."""
    import torch
    from safetensors.torch import save_file
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = data.tekken()
    shown = _bytes_shown()
    words = {
        "".join(shown[byte] for byte in text) if text else f"<special_{i}>": i
        for i, text in enumerate(tokens.text)
    }
    made = Tokenizer(models.BPE(words, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(
        [AddedToken(f"<special_{i}>", special=True) for i, text in enumerate(tokens.text) if not text]
    )
    made.save(str(folder / "tokenizer.json"))
    end = f"<special_{tokens.eos}>"
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    width = len(tokens.text)
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "hidden_size": _SIZE, "intermediate_size": _SIZE, "num_hidden_layers": 1,
        "num_attention_heads": _HEADS, "num_key_value_heads": _HEADS, "head_dim": _SIZE // _HEADS,
        "max_position_embeddings": 1024, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
        "vocab_size": width, "eos_token_id": tokens.eos, "tie_word_embeddings": False, "dtype": "float32",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    part = {f"self_attn.{name}_proj": torch.zeros(_SIZE, _SIZE) for name in "qkvo"}
    part |= {f"mlp.{name}_proj": torch.zeros(_SIZE, _SIZE) for name in ("gate", "up", "down")}
    part |= {name: torch.ones(_SIZE) for name in ("input_layernorm", "post_attention_layernorm")}
    weights = {f"model.layers.0.{name}.weight": tensor for name, tensor in part.items()}
    ranks = torch.arange(width, dtype=torch.float32) - len(tokens.special)
    head = torch.zeros(width, _SIZE)
    head[:, 0] = -torch.log(ranks.clamp(min=1)) / _SIZE**0.5  # the norm scales the 1 to sqrt(size)
    embedded = torch.zeros(width, _SIZE)
    embedded[:, 0] = 1
    weights |= {"model.norm.weight": torch.ones(_SIZE), "model.embed_tokens.weight": embedded}
    save_file(weights | {"lm_head.weight": head}, folder / "model.safetensors", metadata={"format": "pt"})
    return tokens.eos


def _bytes_shown() -> list[str]:
    """Returns a dict of byte -> the character of byte-level BPE, taken from the tokenizers package."""
    from tokenizers import pre_tokenizers

    plain = {ord(c): c for c in pre_tokenizers.ByteLevel.alphabet() if ord(c) < 256}
    rest = iter(range(256, 512))
    return [plain.get(byte) or chr(next(rest)) for byte in range(256)]


class Clock:
    """CPU seconds of the thread in the calls that the clock wraps.

    Attributes:
        steps: the seconds of each batch step.
        compiling: the seconds of all compiles.
    """

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.compiling: float = 0.0

    def step(self, call: Callable[..., Any], begins: bool) -> Callable[..., Any]:
        """Wraps a call of a step. `begins` says whether the call is the first of a step."""

        @functools.wraps(call)
        def timed(*given: Any, **named: Any) -> Any:
            begun = time.thread_time()
            answer = call(*given, **named)
            spent = time.thread_time() - begun
            if answer is None:
                return answer  # no row of the batch has a constraint
            if begins:
                self.steps.append(0.0)
            self.steps[-1] += spent
            return answer

        return timed

    def compile(self, create: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps a compile. From then on the clock also times the accepts of the compiled grammar."""

        def timed(request: Any) -> Any:
            begun = time.thread_time()
            grammar = create(request)
            self.compiling += time.thread_time() - begun
            kind = type(grammar)
            if not hasattr(kind.accept_tokens, "__wrapped__"):
                kind.accept_tokens = self.step(kind.accept_tokens, begins=False)
            return grammar

        return timed


def measure(backend: str, folder: Path, batches: list[int], cases: list[str]) -> list[dict[str, Any]]:
    """Returns the rows of one backend, measured in the running process."""
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    llm = LLM(
        model=str(folder),
        dtype="float32",
        enforce_eager=True,
        max_model_len=256,
        max_num_seqs=max(batches),
        enable_prefix_caching=False,
        structured_outputs_config={"backend": backend},
    )
    manager = llm.llm_engine.engine_core.engine_core.structured_output_manager
    clock = Clock()
    manager.grammar_bitmask = clock.step(manager.grammar_bitmask, begins=True)
    manager._create_grammar = clock.compile(manager._create_grammar)
    manager._use_async_grammar_compilation = False

    def run(asked: dict[str, Any], most: int, batch: int) -> dict[str, float]:
        clock.steps.clear()
        clock.compiling = 0.0
        params = [
            SamplingParams(
                max_tokens=most,
                seed=seed,
                structured_outputs=StructuredOutputsParams(**asked),
                detokenize=False,
            )
            for seed in range(batch)
        ]
        prompts = [{"prompt_token_ids": [1100, 1101]}] * batch
        llm.generate(prompts, params, use_tqdm=False)
        return {
            "compile": 1e3 * clock.compiling,
            "mean": 1e3 * statistics.fmean(clock.steps),
            "worst": 1e3 * max(clock.steps),
        }

    rows = []
    for label in cases:
        asked, most = constraints()[label]
        print(f"{backend}: {label}", file=sys.stderr, flush=True)
        for batch in batches:
            if manager.backend is not None:
                manager.backend.destroy()
                manager.backend = manager._grammar_bitmask = None
            run({"choice": ["a"]}, 4, 1)  # builds the backend and reads the vocabulary
            cold, warm = run(asked, most, batch), run(asked, most, batch)
            rows.append({"case": label, "batch": batch, "cold": cold, "warm": warm})
    return rows


def table(found: dict[str, list[dict[str, Any]]]) -> str:
    """Returns a table with the backends side by side."""
    titles = "".join(f"{title:>8}" for title in ("compile", "cold", "worst", "warm", "worst"))
    lines = [f"{'':<25}" + "".join(f"  {backend:>40}" for backend in found)]
    lines.append(f"{'ms a batch step':<18}{'batch':>7}" + f"  {titles}" * len(found))
    for same in zip(*found.values(), strict=True):
        line = f"{same[0]['case']:<18}{same[0]['batch']:>7}"
        for row in same:
            cold, warm = row["cold"], row["warm"]
            cells = (cold["compile"], cold["mean"], cold["worst"], warm["mean"], warm["worst"])
            line += "  " + "".join(f"{cell:>8.2f}" for cell in cells)
        lines.append(line)
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.hosts", description=__doc__.split("\n")[0])
    parser.add_argument("--backends", default="structgen,xgrammar")
    parser.add_argument("--batches", default="8,64")
    parser.add_argument("--cases", default=";".join(constraints()))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    batches = [int(size) for size in options.batches.split(",")]
    os.environ.update(_ENVIRONMENT)
    if options.child:
        cases = options.cases.split(";")
        print(json.dumps(measure(options.backends, Path(options.child), batches, cases)))
        return 0
    found = {}
    with tempfile.TemporaryDirectory() as name:
        write_model(Path(name))
        for backend in options.backends.split(","):
            command = [sys.executable, "-m", "bench.hosts", "--child", name, "--backends", backend]
            command += ["--batches", options.batches, "--cases", options.cases]
            told = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
            found[backend] = json.loads(told.stdout.strip().split("\n")[-1])
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
