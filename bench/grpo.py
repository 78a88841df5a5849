"""Trains with GRPO on constrained answers, with the loss under the masks and with TRL's own loss
(`structgen.integrations.trl`).

Enters: seeds. Leaves: a line for each seed and loss: the mean reward of the first and the last steps, the
largest |log ratio| of trainer and sampler before an update, and the median norm of gradients before they are
clipped to 1. Cost: a minute on one core for each line.

    python -m bench.grpo [--seeds 0,1,2] [--steps 60] [--rate 1e-3] [--curve]

The task is that of `oracles/grpo.py`. Seeds, batches, clipping of gradients and learning rate are equal in
both runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings

import numpy as np

from oracles.grpo import trainer


def run(seed: int, constrained: bool, steps: int, rate: float) -> tuple[list[float], str]:
    """Returns the rewards of the steps, and the line that the run prints."""
    with tempfile.TemporaryDirectory() as folder:
        made = trainer(seed, constrained, steps, rate, folder)
        made.train()
    logs = [entry for entry in made.state.log_history if "reward" in entry]
    rewards = [entry["reward"] for entry in logs]
    ratio = max(entry["structgen/log_ratio"] for entry in logs)
    norm = float(np.median([entry["grad_norm"] for entry in logs]))
    tenth = max(1, len(rewards) // 10)
    line = (
        f"seed {seed}  {'masks' if constrained else 'TRL':5}  reward {np.mean(rewards[:tenth]):.2f} -> "
        f"{np.mean(rewards[-tenth:]):.2f}  log ratio {ratio:8.1e}  gradient norm {norm:.2f}"
    )
    return rewards, line


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.grpo")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--curve", action="store_true", help="the mean reward of every tenth of the steps")
    asked = parser.parse_args(argv)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    warnings.simplefilter("ignore")
    for seed in map(int, asked.seeds.split(",")):
        for constrained in (True, False):
            rewards, line = run(seed, constrained, asked.steps, asked.rate)
            print(line, flush=True)
            if asked.curve:
                print("   ", " ".join(f"{np.mean(part):.2f}" for part in np.array_split(rewards, 10)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
