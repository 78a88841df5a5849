"""Write a checkpoint as a `transformers` folder under `structgen/lm/embedded/`.

Enters: `training/runs/<label>/checkpoint.pt` and the shared tokenizer.
Leaves: config.json, generation_config.json, model.safetensors (fp16),
tokenizer.json, tokenizer_config.json.  Cost: seconds.

    python -m training.export --model target [--label target] [--to FOLDER]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from training import bpe
from training.prompt import EMBEDDED
from training.train import RUNS, build, tokenizer


def export(label: str, folder: Path) -> None:
    tokens = tokenizer()
    state = torch.load(RUNS / label / "checkpoint.pt", weights_only=True)
    model = build(state["config"]["model"], tokens, 0)
    model.load_state_dict(state["model"])
    folder.mkdir(parents=True, exist_ok=True)
    config = model.config.to_dict()
    for machine_only in ("_name_or_path", "_attn_implementation_internal", "attn_implementation"):
        config.pop(machine_only, None)
    config.update(architectures=["LlamaForCausalLM"], dtype="float16")
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    generation = {
        "eos_token_id": model.config.eos_token_id,
        "pad_token_id": model.config.pad_token_id,
        "do_sample": False,
        "max_new_tokens": 256,
    }
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    # The output layer is the embedding, so it is stored once.
    weights = {
        n: p.to(torch.float16).contiguous() for n, p in model.state_dict().items() if n != "lm_head.weight"
    }
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)  # the writer makes it readable by its owner only
    bpe.save(tokens, folder)
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"step {state['step']} of {label}: {size / 1e6:.2f} MB written")


def main() -> None:
    parser = argparse.ArgumentParser(description="write a checkpoint as a model folder")
    parser.add_argument("--model", choices=("target", "draft"), required=True)
    parser.add_argument("--label", help="name of the run (default: the model's)")
    parser.add_argument("--to", type=Path, help="folder (default: the package's own)")
    asked = parser.parse_args()
    export(asked.label or asked.model, asked.to or EMBEDDED / asked.model)


if __name__ == "__main__":
    main()
