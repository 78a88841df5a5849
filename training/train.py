"""Train the target or the draft: resumable, checkpointed, the same for the same seed.

Enters: a config from `training/configs/`, the shared tokenizer (made if
missing). Leaves: checkpoints under `training/runs/`, a log under
`training/record/`.  Cost: target about 1.5 hours, draft about 40 minutes, on
one core with bf16 instructions.

    python -m training.train --model target            # starts or resumes
    python -m training.train --model target --steps 9000   # end (and decay) sooner or later
    python -m training.train --model target --from structgen/lm/embedded/target   # go on from weights

The learning rate is flat and falls in the last `decay` steps, so that a run may
be ended at any point by giving a smaller `--steps`, or extended by a larger one.
With `--minutes` the clock says when the run ends, and the rate falls in the last
three quarters of that time.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from training import attention, bpe
from training.batches import Batch, batches, encode, pad
from training.data import example
from training.prompt import END_MARK, PAD_MARK, ROOT

HERE = ROOT / "training"
RUNS = HERE / "runs"
RECORD = HERE / "record"
VOCABULARY = 2048
TOKENIZER_SEED = 7
TOKENIZER_EXAMPLES = 40_000
CHECK_EVERY = 200
SAVE_SECONDS = 150.0


def tokenizer(source: Path | None = None) -> Tokenizer:
    """The runs' shared tokenizer: that of the folder `source`, or one trained now, once."""
    folder = RUNS / "tokenizer"
    if source is not None:
        bpe.save(Tokenizer.from_file(str(source / "tokenizer.json")), folder)
    elif not (folder / "tokenizer.json").exists():
        print("training the tokenizer", flush=True)
        bpe.save(bpe.train(VOCABULARY, TOKENIZER_EXAMPLES, TOKENIZER_SEED), folder)
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def build(shape: dict[str, int], tokens: Tokenizer, seed: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        **shape,
        vocab_size=tokens.get_vocab_size(),
        num_key_value_heads=shape["num_attention_heads"],
        max_position_embeddings=bpe.CONTEXT,
        tie_word_embeddings=True,
        # The context is short; a small base spreads the angles over it.
        rope_parameters={"rope_type": "default", "rope_theta": 2000.0},
        initializer_range=0.04,
        bos_token_id=None,
        eos_token_id=tokens.token_to_id(END_MARK),
        pad_token_id=tokens.token_to_id(PAD_MARK),
    )
    model = LlamaForCausalLM(config)
    model.set_attn_implementation(attention.NAME)
    return model


def learning_rate(step: int, config: dict[str, Any], steps: int) -> float:
    """A factor: up, flat, and down in a straight line."""
    up = min(1.0, (step + 1) / config["warmup"])
    down = min(1.0, max(0.02, (steps - step) / config["decay"]))
    return up * down


def rate_of_clock(step: int, config: dict[str, Any], share: float) -> float:
    """A factor as in `learning_rate`, of the share of the time that has passed."""
    return min(1.0, (step + 1) / config["warmup"]) * min(1.0, max(0.01, (1 - share) / 0.75))


def optimizers(model: LlamaForCausalLM, config: dict[str, Any]) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, AdamW for embeddings and norms."""
    inner = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    outer = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    return [
        torch.optim.Muon(
            inner, lr=config["lr"], weight_decay=config["weight_decay"], adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(outer, lr=config["embedding_lr"], betas=(0.9, 0.98), weight_decay=0.0),
    ]


def answer_logits(
    model: LlamaForCausalLM, ids: torch.Tensor, answer: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and labels at answer positions only: the other logits would be thrown away.

    The positions are filled up to a round number, label -100, to keep shapes few.
    """
    places = answer.flatten().nonzero().flatten()
    missing = -len(places) % 128
    labels = functional.pad(ids[:, 1:][answer], (0, missing), value=-100)
    with torch.autocast("cpu", torch.bfloat16):
        hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
        picked = hidden.flatten(0, 1)[functional.pad(places, (0, missing))]
        logits = model.lm_head(picked)
    return logits.float(), labels


@torch.no_grad()
def check(model: LlamaForCausalLM, held: list[Batch]) -> dict[str, float]:
    """Loss, and the share of test answers that greedy decoding gets wholly right.

    Greedy decoding writes the exact answer just when every token of it is the
    most likely one after the true ones before; so one pass tells.
    """
    loss = tokens = right = rows = 0.0
    for batch in held:
        logits, labels = answer_logits(model, batch.ids, batch.answer)
        loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
        count = int(batch.answer.sum())
        tokens += count
        wrong = torch.zeros_like(batch.answer)
        wrong[batch.answer] = (logits.argmax(-1) != labels)[:count]
        right += float((~wrong.any(1)).sum())
        rows += len(batch.ids)
    return {"test_loss": loss / tokens, "test_exact": right / rows}


@torch.no_grad()
def sample(model: LlamaForCausalLM, tokens: Tokenizer, index: int) -> str:
    one = example("test", 99, index)
    ids, start = encode(tokens, one)
    line = ids[:start]
    for _ in range(80):
        following = int(model(input_ids=torch.tensor([line]), use_cache=False).logits[0, -1].argmax())
        if following == tokens.token_to_id(END_MARK):
            break
        line.append(following)
    return f"    {one.text}\n    -> {tokens.decode(line[start:])}\n    =  {one.answer_text()}"


def held_out(tokens: Tokenizer, count: int) -> list[Batch]:
    found = [example("test", 98, index) for index in range(count)]
    rows = sorted((encode(tokens, one) for one in found), key=lambda row: len(row[0]))
    result = []
    for at in range(0, count, 32):
        part = rows[at : at + 32]
        ids, answer = pad(part, tokens.token_to_id(PAD_MARK), -len(part[-1][0]) // 16 * -16)
        result.append(Batch(ids, answer, 0, []))
    return result


def save(path: Path, state: dict[str, Any]) -> None:
    """Through a second file, so that an interrupted write leaves the old checkpoint."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part")
    torch.save(state, half)
    half.replace(path)


def run(
    name: str,
    config: dict[str, Any],
    steps: int,
    label: str,
    stop_after: float,
    source: Path | None = None,
    minutes: float = 0.0,
) -> None:
    tokens = tokenizer(source)
    model = build(config["model"], tokens, config["seed"])
    if source is not None:
        weights = {n: p.float() for n, p in load_file(str(source / "model.safetensors")).items()}
        model.load_state_dict({**weights, "lm_head.weight": weights["model.embed_tokens.weight"]})
    print(f"{label}: {sum(p.numel() for p in model.parameters()):,} parameters, {steps} steps", flush=True)
    steppers = optimizers(model, config)
    base = [group["lr"] for stepper in steppers for group in stepper.param_groups]
    path = RUNS / label / "checkpoint.pt"
    step, index, spent, seen = 0, 0, 0.0, 0
    if path.exists():
        state = torch.load(path, weights_only=True)
        model.load_state_dict(state["model"])
        for stepper, kept in zip(steppers, state["optimizers"], strict=True):
            stepper.load_state_dict(kept)
        step, index, spent, seen = state["step"], state["index"], state["spent"], state["seen"]
        print(f"resumed at step {step}", flush=True)
    held = held_out(tokens, 256)
    log = RECORD / f"{label}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():  # lines after the checkpoint are about to be written again
        kept_lines = [x for x in log.read_text().splitlines() if json.loads(x)["step"] <= step]
        log.write_text("".join(x + "\n" for x in kept_lines))
    began = saved = time.monotonic()
    recent: list[float] = []

    def keep() -> None:
        state = {
            "model": model.state_dict(),
            "optimizers": [s.state_dict() for s in steppers],
            "step": step,
            "index": index,
            "spent": spent + time.monotonic() - began,
            "seen": seen,
            "config": config,
        }
        save(path, state)

    ended = False
    while step < steps and not ended:
        # Copying first: its share falls in a straight line to the usual one.
        copy_share = max(0.02, 0.6 * (1 - step / max(1, config["copy_steps"])))
        for batch in batches(tokens, "train", config["seed"], index, config["batch_tokens"], copy_share):
            if minutes:
                share = (spent + time.monotonic() - began) / (60 * minutes)
                ended = share >= 1
                factor = rate_of_clock(step, config, share)
            else:
                factor = learning_rate(step, config, steps)
            for group, full in zip((g for s in steppers for g in s.param_groups), base, strict=True):
                group["lr"] = full * factor
            logits, labels = answer_logits(model, batch.ids, batch.answer)
            loss = functional.cross_entropy(logits, labels)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for stepper in steppers:
                stepper.step()
                stepper.zero_grad(set_to_none=True)
            recent.append(loss.item())
            seen += batch.ids.numel()
            step += 1
            if step % CHECK_EVERY == 0 or step == steps or ended:
                model.eval()
                line = {
                    "step": step,
                    "loss": sum(recent) / len(recent),
                    **check(model, held),
                    "lr": base[0] * factor,
                    "tokens": seen,
                    "seconds": spent + time.monotonic() - began,
                }
                line = {k: round(v, 5) for k, v in line.items()}
                with log.open("a") as out:
                    out.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)
                if step % (4 * CHECK_EVERY) == 0:
                    print(sample(model, tokens, step), flush=True)
                recent.clear()
                model.train()
            if step >= steps or ended:
                break
        # Only between chunks: a resumed run then sees each example once.
        index = batch.next_index
        if time.monotonic() - saved > SAVE_SECONDS or step >= steps or ended:
            keep()
            saved = time.monotonic()
        if stop_after and time.monotonic() - began > stop_after:
            keep()
            return


def main() -> None:
    parser = argparse.ArgumentParser(description="train the embedded target or draft")
    parser.add_argument("--model", choices=("target", "draft"), required=True)
    parser.add_argument("--steps", type=int, help="total steps; the rate falls in the last of them")
    parser.add_argument("--label", help="name of the run (default: the model's)")
    parser.add_argument("--minutes", type=float, default=0.0, help="end after this time, whatever the step")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--stop-after", type=float, default=0.0, help="seconds, for short trials")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=NUMBER", help="change a config value"
    )
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FOLDER", help="exported weights that a run starts from"
    )
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    config: dict[str, Any] = json.loads((HERE / "configs" / f"{asked.model}.json").read_text())
    for change in asked.set:
        key, value = change.split("=", 1)
        (config["model"] if key in config["model"] else config)[key] = json.loads(value)
    steps = asked.steps or config["steps"]
    if asked.minutes and not asked.steps:
        steps = 10**9
    run(asked.model, config, steps, asked.label or asked.model, asked.stop_after, asked.source, asked.minutes)


if __name__ == "__main__":
    main()
