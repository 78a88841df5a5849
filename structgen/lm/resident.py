"""Rows of log-probabilities that stay on the device of their model. Sums and draws are computed there, too.

Enters: a tensor of torch, float32, shape (n, V), on any device with double precision; masks from the CPU, a
bit a token. Leaves: sums, the best tokens, single values, as numpy arrays. Cost: some passes over the rows on
their device. For each row 64 bytes go to the CPU, and 12 bytes for each token that is asked for; the row
itself has 4 V bytes.

The answers equal those of the core on the same rows (`csrc/mask/brief.h`), except for the rounding of sums:
ids and values are equal, and of equal values the lower id comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from .._draws import FIRST, SECOND, STEP, Shape
from ..logits import Brief

if TYPE_CHECKING:
    Doubles = npt.NDArray[np.float64]

_AT_ONCE = 8  # the most rows whose briefs are computed at once; each row needs ten times its size meanwhile
# the most nats between the most probable token and the most probable allowed one; the same limit as in
# brief.cc
_GAP = 300.0


class Resident:
    """Rows on their device. Some methods change the rows.

    Args:
        rows: float32, shape (n, V). No other code may use them.
    """

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows: Any = rows

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    @torch.inference_mode()
    def shape_by(self, law: Shape) -> None:
        """Turns each row into log P up to a constant, after temperature, top-k and top-p, like
        `Law.scores`."""
        if law.temperature == 1.0 and law.top_k is None and law.top_p is None:
            return
        wide = self.rows.double()
        wide -= wide.amax(-1, keepdim=True)
        wide /= law.temperature
        self.rows = wide.float()
        if law.top_k is None and (law.top_p is None or law.top_p >= 1):
            return
        held, order = torch.sort(self.rows, dim=-1, descending=True, stable=True)
        width = held.shape[-1]
        last = width if law.top_k is None else min(law.top_k, width)
        place = torch.arange(width, device=held.device)
        drop = (place >= last).expand_as(held)
        if law.top_p is not None and law.top_p < 1:
            weights = torch.exp(held.double() - held[:, :1].double()).masked_fill(drop, 0.0)
            sums = torch.cumsum(weights, -1)
            # A token stays if the tokens before it sum to less than top_p.
            enough = sums - weights >= law.top_p * sums[:, -1:] * (1 - 1e-12)
            drop = drop | enough
        self.rows = self.rows.masked_fill(torch.zeros_like(drop).scatter(-1, order, drop), float("-inf"))

    @torch.inference_mode()
    def take_out(self, ids: Sequence[int]) -> Doubles:
        """Returns the log of the summed probability of some tokens, shape (n,). Afterwards these tokens are
        -inf in the rows."""
        at = torch.tensor(list(ids), device=self.rows.device)
        together = torch.logsumexp(self.rows[:, at].double(), -1)
        self.rows[:, at] = float("-inf")
        found: Doubles = _here(together)
        return found

    @torch.inference_mode()
    def sums(self, masks: npt.NDArray[np.int32]) -> Doubles:
        """Returns for each row its log-sum-exp, and the most probable token that the mask refuses (the lowest
        id of equal ones) with its value, which is -inf if there is none; float64, shape (n, 3)."""
        refused = self.rows.masked_fill(self._allowed(self.rows, masks), float("-inf"))
        best = refused.argmax(-1)
        value = refused.gather(-1, best[:, None])[:, 0]
        found = [torch.logsumexp(self.rows.double(), -1), best.double(), value.double()]
        here: Doubles = _here(torch.stack(found, -1))
        return here

    @torch.inference_mode()
    def values(
        self, at: Sequence[int], ids: Sequence[npt.NDArray[np.int32]]
    ) -> list[npt.NDArray[np.float32]]:
        """Returns the values of some tokens of some rows, in one transfer."""
        width = self.rows.shape[-1]
        flat = [row * width + some.astype(np.int64) for row, some in zip(at, ids, strict=True)]
        if not flat:
            return []
        index = torch.from_numpy(np.concatenate(flat)).to(self.rows.device)
        found: npt.NDArray[np.float32] = _here(self.rows.reshape(-1)[index])
        return np.split(found, np.cumsum([len(some) for some in ids])[:-1])

    @torch.inference_mode()
    def draw(
        self,
        masks: npt.NDArray[np.int32] | None,
        temperatures: Sequence[float],
        words: Sequence[tuple[int, int] | None],
    ) -> list[tuple[int, float]]:
        """Draws a token for each row, as `structgen._draws.draw` does without top-k and top-p, and gives its
        log-probability. The token is -1 if every allowed token has the probability 0.

        Args:
            masks: one for each row; None allows everything.
            words: the keys of the noise at each place (`Noise.words`); None takes the most probable token.
        """
        rows = self.rows
        held = rows if masks is None else rows.masked_fill(~self._allowed(rows, masks), float("-inf"))
        best = held.argmax(-1)
        device = rows.device
        heat = [t if w is not None and t > 0 else 1.0 for t, w in zip(temperatures, words, strict=True)]
        scores = held.double() / torch.tensor(heat, dtype=torch.float64, device=device)[:, None]
        keys = torch.tensor([[_signed(x) for x in w or (0, 0)] for w in words], device=device)
        scores += _gumbel(keys, rows.shape[-1])
        drawn = scores.argmax(-1, keepdim=True)
        finite = torch.isfinite(scores.gather(-1, drawn))[:, 0]
        cold = [w is None or t == 0 for t, w in zip(temperatures, words, strict=True)]
        token = torch.where(torch.tensor(cold, device=device) | ~finite, best, drawn[:, 0])
        value = rows.gather(-1, token[:, None])[:, 0]
        fits = torch.isfinite(held.gather(-1, best[:, None])[:, 0])
        found = _here(torch.stack([torch.where(fits, token, -1).double(), value.double()], -1))
        return [(int(one), float(logprob)) for one, logprob in found]

    @torch.inference_mode()
    def rest(self, mask: npt.NDArray[np.int32], but: npt.NDArray[np.int32], size: int) -> Rest:
        """Returns the first row under a mask, without some tokens, in blocks of `size` ids."""
        allowed = self._allowed(self.rows[:1], mask)[0]
        allowed[torch.from_numpy(but.astype(np.int64)).to(allowed.device)] = False
        return Rest(self.rows[0].masked_fill(~allowed, float("-inf")), size)

    @torch.inference_mode()
    def briefs(self, at: Sequence[int], masks: npt.NDArray[np.int32], most: int) -> list[Brief | None]:
        """Returns rows in brief, as `brief_row` gives them, in one transfer for a few rows.

        Args:
            at: the numbers of the rows. masks: one mask for each row number.
        """
        if not len(at):
            return []
        if len(at) > _AT_ONCE:
            parts = [slice(first, first + _AT_ONCE) for first in range(0, len(at), _AT_ONCE)]
            return [brief for part in parts for brief in self.briefs(at[part], masks[part], most)]
        rows = self.rows[torch.tensor(list(at), device=self.rows.device)]
        allowed = self._allowed(rows, masks)
        wide = rows.double()
        inside = wide.masked_fill(~allowed, float("-inf"))
        best = inside.amax(-1, keepdim=True)
        least = torch.topk(inside, min(most, inside.shape[-1]), dim=-1).values[:, -1:]
        above = inside > least
        level = (inside == least) & (inside > float("-inf"))
        room = most - above.sum(-1, keepdim=True)
        kept = above | (level & (torch.cumsum(level, -1) <= room))
        below = inside - best
        weights = torch.where(inside > float("-inf"), torch.exp(below), 0.0)
        mass = weights.sum(-1)
        tail = weights.masked_fill(kept, 0.0).sum(-1)
        entropy = torch.log(mass) - (weights * below.clamp(min=-1e9)).sum(-1) / mass
        refused = wide.masked_fill(allowed, float("-inf"))
        lost = refused.argmax(-1, keepdim=True)
        # The sort puts the kept ids first, in ascending order, because all others get an id beyond the last.
        place = torch.arange(rows.shape[-1], device=rows.device)
        ids = torch.where(kept, place, place.numel()).sort(-1).values[:, :most]
        values = inside.gather(-1, ids.clamp(max=place.numel() - 1))
        columns = [torch.logsumexp(wide, -1), best[:, 0], tail, entropy, lost[:, 0].double()]
        columns += [refused.gather(-1, lost)[:, 0], kept.sum(-1).double()]
        packed = _here(torch.cat([torch.stack(columns, -1), ids.double(), values], -1))
        return [_brief(row, most) for row in packed]

    @staticmethod
    def _allowed(rows: torch.Tensor, masks: npt.NDArray[np.int32]) -> torch.Tensor:
        words = torch.from_numpy(np.ascontiguousarray(masks)).to(rows.device)
        bits = (words.unsqueeze(-1) >> torch.arange(32, device=rows.device, dtype=torch.int32)) & 1
        return bits.flatten(-2)[..., : rows.shape[-1]].bool()


class Block(NamedTuple):
    """The tokens first, first + 1, ...: their values, and the weights with which they are drawn."""

    first: int
    values: npt.NDArray[np.float32]
    weights: Doubles


class Rest:
    """Tokens to draw from, in blocks. The sums of all blocks are copied to the CPU first, and then one
    block."""

    @torch.inference_mode()
    def __init__(self, values: torch.Tensor, size: int) -> None:
        self._values, self._size = values, size
        self._weights = torch.exp(values.double() - values.amax().double())

    @torch.inference_mode()
    def weigh(self, factors: Mapping[int, float]) -> None:
        """Multiplies the weights of some tokens by exp(factor)."""
        if factors:
            at = torch.tensor(list(factors), device=self._weights.device)
            change = torch.tensor(list(factors.values()), dtype=torch.float64, device=self._weights.device)
            self._weights[at] *= torch.exp(change)

    @torch.inference_mode()
    def blocks(self) -> Doubles:
        """Returns the summed weight of each block."""
        short = -self._weights.numel() % self._size
        padded = torch.nn.functional.pad(self._weights, (0, short))
        found: Doubles = _here(padded.reshape(-1, self._size).sum(-1))
        return found

    @torch.inference_mode()
    def block(self, number: int) -> Block:
        span = slice(number * self._size, (number + 1) * self._size)
        return Block(span.start, _here(self._values[span]), _here(self._weights[span]))


def _brief(row: Doubles, most: int) -> Brief | None:
    shift, best, tail, entropy, lost, value, kept = row[:7].tolist()
    if not np.isfinite(best) or value - best > _GAP or not tail > 0 or kept < most:
        return None
    ids, values = row[7 : 7 + most].astype(np.int32), row[7 + most :].astype(np.float32)
    refused = None if value == -np.inf else (int(lost), value)
    return Brief(ids, values, shift, best, tail, max(0.0, entropy), refused)


def _signed(word: int) -> int:
    """Returns a 64-bit word as the signed number that torch's int64 takes."""
    return word - (1 << 64) if word >> 63 else word


def _gumbel(keys: torch.Tensor, width: int) -> torch.Tensor:
    """Returns the Gumbel numbers of `structgen._draws.Noise`: float64, shape (n, width).

    Args:
        keys: int64, shape (n, 2).
    """
    bits = torch.arange(width, device=keys.device) * _signed(STEP) + keys[:, :1]
    bits = _mix(_mix(bits) ^ keys[:, 1:])
    uniform = (_right(bits, 11).double() + 0.5) * 2.0**-53
    return -torch.log(-torch.log(uniform))


def _mix(bits: torch.Tensor) -> torch.Tensor:
    bits = (bits ^ _right(bits, 30)) * _signed(FIRST)
    bits = (bits ^ _right(bits, 27)) * _signed(SECOND)
    return bits ^ _right(bits, 31)


def _right(bits: torch.Tensor, count: int) -> torch.Tensor:
    """Returns a shift to the right that fills with zeros; torch's shift fills with the sign."""
    return (bits >> count) & ((1 << (64 - count)) - 1)


def _here(tensor: torch.Tensor) -> Any:
    """Copies a tensor to the CPU. Numbers leave the device only here."""
    return tensor.cpu().numpy()
