"""A task for training on constrained answers: a model with random weights, a schema, a reward.

Input: a seed. Output: a trainer of `structgen.integrations.trl`, ready to train. Time: seconds. The model has
0.2 million parameters and the tokenizer of the embedded model.

An answer is a record with one of eight colours. One colour has the reward 1, all others 0.
"""

from __future__ import annotations

from typing import Any

import structgen as sg
from oracles import closed
from structgen.lm import embedded

COLOURS = ["red", "green", "blue", "black", "white", "brown", "pink", "grey"]
WANTED = "grey"
SCHEMA = closed(
    {
        "colour": {"enum": COLOURS},
        "reviewed": {"type": "boolean"},
        "department": {"enum": ["furniture and fabrics"]},
    }
)


def trainer(seed: int, constrained: bool, steps: int, rate: float, folder: str, **options: Any) -> Any:
    """Returns a trainer of the module's task."""
    import torch
    import transformers
    import trl
    from datasets import Dataset

    from structgen.integrations.trl import GRPOTrainer

    tokenizer = transformers.AutoTokenizer.from_pretrained(str(embedded.path("draft")))
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    torch.set_num_threads(1)  # the model is tiny, and several threads would only wait for each other
    torch.manual_seed(seed)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=4, max_position_embeddings=256, tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, bos_token_id=None,
        )
    )  # fmt: skip
    if options.get("beta"):  # TRL loads the reference model from the policy's folder
        model.save_pretrained(folder)
        model.config._name_or_path = folder
    grammar = sg.Compiler(sg.Vocabulary.from_huggingface(tokenizer)).json_schema(
        SCHEMA, whitespace="compact", strings="plain"
    )

    def reward(completions: list[str], **_: Any) -> list[float]:
        return [float(f'"colour":"{WANTED}"' in text) for text in completions]

    config = trl.GRPOConfig(
        output_dir=folder, per_device_train_batch_size=64, num_generations=16, max_completion_length=64,
        max_steps=steps, learning_rate=rate, lr_scheduler_type="constant", logging_steps=1, report_to=[],
        save_strategy="no", use_cpu=True, seed=seed, bf16=False, disable_tqdm=True, **options,
    )  # fmt: skip
    rows = [{"prompt": f"a {colour} chair: "} for colour in COLOURS]
    return GRPOTrainer(
        model=model, processing_class=tokenizer, reward_funcs=reward, args=config,
        train_dataset=Dataset.from_list(rows * 50), grammar=grammar, constrained=constrained,
    )  # fmt: skip
