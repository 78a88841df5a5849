"""Measures `apply_bitmask` beside torch's masked_fill and xgrammar's kernel, on the CPU, and on CUDA if there
is a GPU.

Enters: a shape. Leaves: a table by dtype. All kernels work in place, with half of the tokens allowed. torch
is measured twice: with a ready Boolean mask (its best case), and with bits that are unpacked first. Times are
medians; the kernels take turns.

    python -m bench.kernels [--rows 256] [--width 131072] [--repeat 15] [--threads 2] [--clock wall]

`--clock cpu` counts the processor time of all threads, which is the better figure on a busy machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

import structgen


def unpacked(bits: torch.Tensor, width: int) -> torch.Tensor:
    """Returns the bitmask as booleans, on its device."""
    shifts = torch.arange(32, device=bits.device, dtype=torch.int32)
    return ((bits.unsqueeze(-1) >> shifts) & 1).bool().flatten(1)[:, :width]


def ways(logits: torch.Tensor, bits: torch.Tensor, threads: int) -> dict[str, Callable[[], object]]:
    width = logits.shape[1]
    banned = ~unpacked(bits, width)
    found: dict[str, Callable[[], object]] = {
        "structgen": lambda: structgen.apply_bitmask(logits, bits, inplace=True, threads=threads),
        "torch masked_fill_, mask given": lambda: logits.masked_fill_(banned, -torch.inf),
        "torch unpack + masked_fill_": lambda: logits.masked_fill_(~unpacked(bits, width), -torch.inf),
    }
    try:
        import xgrammar
    except ImportError:
        return found
    found["xgrammar"] = lambda: xgrammar.apply_token_bitmask_inplace(logits, bits)
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.kernels", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--width", type=int, default=131_072)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--threads", type=int, default=0, help="of torch and structgen; 0: their choice")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    options = parser.parse_args(arguments)
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    if options.threads:
        torch.set_num_threads(options.threads)
    random = np.random.default_rng(0)
    words = random.integers(-(2**31), 2**31, size=(options.rows, options.width // 32), dtype=np.int64)
    for device in ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]:
        for dtype in (torch.float32, torch.bfloat16):
            bits = torch.from_numpy(words.astype(np.int32)).to(device)
            logits = torch.randn(options.rows, options.width, device=device).to(dtype)
            calls = ways(logits, bits, options.threads)
            times: dict[str, list[float]] = {name: [] for name in calls}
            for turn in range(options.repeat + 1):
                for name, call in calls.items():
                    if device == "cuda":
                        torch.cuda.synchronize()
                    start = clock()
                    call()
                    if device == "cuda":
                        torch.cuda.synchronize()
                    if turn:  # the first repetition warms up
                        times[name].append(1e3 * (clock() - start))
            threads = torch.get_num_threads()
            print(f"{device}, {dtype}, {tuple(logits.shape)}, torch threads: {threads}; {options.clock} ms")
            ours = statistics.median(times["structgen"])
            for name, found in times.items():
                middle = statistics.median(found)
                print(f"  {name:<34}{middle:>10.2f}   structgen/this {ours / middle:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
