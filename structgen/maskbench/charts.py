"""Percentile curves as inline SVG, without scripts; colours come from the page's style sheet.

Enters: curves. Leaves: one `<svg>` string. The horizontal axis counts nines (p90 is 1, p99 is 2), the
vertical one is the logarithm of the time, so that a tail of one token in a thousand takes as much room as
the bulk.
"""

from __future__ import annotations

import math
from html import escape

from .report import Curve, duration

_WIDE, _HIGH = 760, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 172, 16, 44
_TICKS = ((0.30103, "p50"), (1.0, "p90"), (2.0, "p99"), (3.0, "p99.9"), (4.0, "p99.99"), (5.0, "p99.999"))
_GAP = 16.0  # the space between two labels at the right edge


def curves(found: list[Curve], title: str, slot: dict[str, int]) -> str:
    """Returns the chart of the curves. `slot` is each engine's place in the palette."""
    low = math.floor(min(math.log10(y) for c in found for _, y in c.points))
    high = math.ceil(max(math.log10(y) for c in found for _, y in c.points) + 1e-9)
    low, high = min(low, high - 1), max(high, low + 1)
    end = max(c.points[-1][0] for c in found)
    start = min(c.points[0][0] for c in found)

    def across(nines: float) -> float:
        return _LEFT + (nines - start) / (end - start) * (_WIDE - _LEFT - _RIGHT)

    def up(us: float) -> float:
        return _HIGH - _BOTTOM - (math.log10(us) - low) / (high - low) * (_HIGH - _TOP - _BOTTOM)

    parts = [
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-label="{escape(title)}" class="curves">',
        f"<title>{escape(title)}</title>",
    ]
    right = _WIDE - _RIGHT
    for decade in range(low, high + 1):
        y = up(10.0**decade)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text class="tick end" x="{_LEFT - 8}" y="{y + 4:.1f}">{duration(10.0**decade)}</text>'
        )
    for nines, label in _TICKS:
        if start <= nines <= end:
            x = across(nines)
            parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HIGH - _BOTTOM}"/>')
            parts.append(f'<text class="tick mid" x="{x:.1f}" y="{_HIGH - _BOTTOM + 18}">{label}</text>')
    middle = (_LEFT + right) / 2
    parts.append(f'<text class="tick mid" x="{middle}" y="{_HIGH - 6}">percentile (each nine as wide)</text>')
    ends = _spread([(up(c.points[-1][1]), c) for c in found])
    for y, curve in ends:
        number = slot[curve.engine]
        path = " ".join(f"{across(x):.1f},{up(v):.1f}" for x, v in curve.points)
        x_end, v_end = curve.points[-1]
        first = " first" if number == 0 else ""
        parts.append(f'<polyline class="line s{number}{first}" points="{path}"/>')
        parts.append(f'<circle class="dot s{number}" cx="{across(x_end):.1f}" cy="{up(v_end):.1f}" r="3.5"/>')
        for nines, label in _TICKS:
            near = min(curve.points, key=lambda p: abs(p[0] - nines))
            if abs(near[0] - nines) < (end - start) / 150:
                what = f"{curve.engine}, {label}: {duration(near[1])}"
                parts.append(
                    f'<circle class="dot s{number}" cx="{across(near[0]):.1f}" cy="{up(near[1]):.1f}" r="3">'
                    f"<title>{escape(what)}</title></circle>"
                )
        parts.append(
            f'<path class="lead s{number}" '
            f'd="M{across(x_end) + 4:.1f} {up(v_end):.1f} L{right + 8} {y:.1f}"/>'
            f'<text class="label s{number}{first}" x="{right + 11}" y="{y + 4:.1f}">{escape(curve.engine)}'
            f"<title>maximum {duration(v_end)} of {curve.count:,}</title></text>"
        )
    parts.append("</svg>")
    return "\n".join(parts)


def _spread(ends: list[tuple[float, Curve]]) -> list[tuple[float, Curve]]:
    """Returns label heights, moved apart so that no label covers another, and moved back into the frame."""
    placed: list[tuple[float, Curve]] = []
    for y, curve in sorted(ends, key=lambda end: end[0]):
        placed.append((max(y, placed[-1][0] + _GAP) if placed else y, curve))
    over = placed[-1][0] - (_HIGH - _BOTTOM) if placed else 0.0
    limit = float(_HIGH - _BOTTOM)
    if over > 0:
        for i in range(len(placed) - 1, -1, -1):
            y = min(placed[i][0], limit)
            placed[i] = (y, placed[i][1])
            limit = y - _GAP
    return placed
