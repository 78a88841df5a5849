"""Tries in files, bit for bit.

Enters: a `Trie`, a path. Leaves: a file in numpy's .npz form (no pickles), or the trie back, which gives the
same draws as before. Cost: one pass over the nodes; a file is about as large as the trie in memory.

The file has the key of its target (prompt, grammar, sampling parameters, vocabulary), so another target is
refused. When the trie is used, the vectors of a few prefixes recognise the model.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from .._array_file import DAMAGED, load_arrays, save_arrays
from ..errors import StructgenError
from .trie import Edge, Node, Trie
from .vector import Vector

_FORMAT = 4


def save_trie(trie: Trie, path: str | os.PathLike[str]) -> None:
    """Writes a trie. The file appears whole or not at all."""
    order = {id(node): i for i, node in enumerate(trie._nodes)}
    nodes = list(trie.nodes())
    number = {id(node): i for i, node in enumerate(nodes)}
    rows = [node.row for node in nodes]
    shared = list({id(row.ids): row.ids for row in rows}.values())
    which = {id(ids): i for i, ids in enumerate(shared)}
    edges = [(i, token, edge) for i, node in enumerate(nodes) for token, edge in node.edges.items()]
    arrays: dict[str, Any] = {
        "meta": np.frombuffer(
            json.dumps({"format": _FORMAT, "key": trie.key, "max_bytes": trie.max_bytes}).encode(), np.uint8
        ),
        "bounds": np.array([trie.theta, trie.lower_bound, trie.upper_bound], np.float64),
        "parent": np.array([-1 if n.parent is None else number[id(n.parent)] for n in nodes], np.int64),
        "token": np.array([n.token for n in nodes], np.int64),
        "visited": np.array([n.visited for n in nodes], np.bool_),
        "lower": np.array([n.lower for n in nodes], np.float64),
        "order": np.array([order.get(id(n), 0) for n in nodes], np.int64),
        "allowed": np.array([which[id(row.ids)] for row in rows], np.int64),
        "sizes": np.array([len(ids) for ids in shared], np.int64),
        "ids": _joined(shared, np.int32),
        "wide": np.array([row.raw.dtype != np.float32 for row in rows], np.bool_),
        "raw": _joined([row.raw for row in rows if row.raw.dtype == np.float32], np.float32),
        "raw_wide": _joined([row.raw for row in rows if row.raw.dtype != np.float32], np.float64),
        "shift": np.array([row.shift for row in rows], np.float64),
        "shaped": np.array([row.factor is not None for row in rows], np.bool_),
        "factor": _joined([row.factor for row in rows if row.factor is not None], np.float64),
        "tail": np.array([row.tail for row in rows], np.float64),
        "entropy": np.array([row.entropy if row.thin else -1.0 for row in rows], np.float64),
        "more_node": np.array([i for i, row in enumerate(rows) for _ in row.more], np.int64),
        "more_token": np.array([t for row in rows for t in row.more], np.int64),
        "more_raw": np.array([x for row in rows for x in row.more.values()], np.float64),
        "notes": np.frombuffer(json.dumps([[row.reason, row.lost] for row in rows]).encode(), np.uint8),
        "edge_node": np.array([i for i, _, _ in edges], np.int64),
        "edge_token": np.array([token for _, token, _ in edges], np.int64),
        "edge_upper": np.array([e.upper for _, _, e in edges], np.float64),
        "edge_lower": np.array([e.lower for _, _, e in edges], np.float64),
        "edge_verdict": np.array([-1 if e.verdict is None else int(e.verdict) for _, _, e in edges], np.int8),
    }
    save_arrays(path, arrays)


def load_trie(path: str | os.PathLike[str]) -> Trie:
    """Reads a trie.

    Raises:
        StructgenError: the file is damaged or of another version.
    """
    os.stat(path)
    try:
        found = load_arrays(path)
        meta = json.loads(found["meta"].tobytes())
        if meta["format"] != _FORMAT:
            raise StructgenError(f"the trie {os.fspath(path)} has format {meta['format']}, not {_FORMAT}")
        return _built(meta, found)
    except StructgenError:
        raise
    except DAMAGED as error:
        raise StructgenError(f"the trie {os.fspath(path)} is damaged: {error}") from None


def _built(meta: dict[str, Any], found: dict[str, Any]) -> Trie:
    trie = Trie(int(meta["max_bytes"]))
    trie.key = meta["key"]
    ends = np.cumsum(found["sizes"])
    shared = [found["ids"][end - size : end].copy() for end, size in zip(ends, found["sizes"], strict=True)]
    for ids in shared:
        ids.flags.writeable = False
    count = found["sizes"][found["allowed"]]
    wide = found["wide"]
    plain, double, shaped = (_starts(count, which) for which in (~wide, wide, found["shaped"]))
    sizes = [len(found[name]) for name in ("raw", "raw_wide", "factor")]
    if [int(starts[-1]) for starts in (plain, double, shaped)] != sizes:
        raise ValueError("its arrays do not fit together")
    notes = json.loads(found["notes"].tobytes())
    nodes: list[Node] = []
    for i in range(len(count)):
        parent = int(found["parent"][i])
        node = trie.root if parent < 0 else Node(nodes[parent], int(found["token"][i]))
        reason, lost = notes[i]
        node.vector = Vector(
            shared[int(found["allowed"][i])],
            found["raw_wide"][double[i] : double[i + 1]].copy()
            if wide[i]
            else found["raw"][plain[i] : plain[i + 1]].copy(),
            float(found["shift"][i]),
            found["factor"][shaped[i] : shaped[i + 1]].copy() if found["shaped"][i] else None,
            tuple((int(t), float(p)) for t, p in lost),
            str(reason),
            float(found["tail"][i]),
            float(found["entropy"][i]),
        )
        node.visited = bool(found["visited"][i])
        nodes.append(node)
    more = (found[name].tolist() for name in ("more_node", "more_token", "more_raw"))
    for at, token, raw in zip(*more, strict=True):
        nodes[at].row.keep(int(token), float(raw))
    columns = ("edge_node", "edge_token", "edge_upper", "edge_lower", "edge_verdict")
    for at, token, upper, lower, verdict in zip(*(found[c].tolist() for c in columns), strict=True):
        edge: Edge = nodes[at].edge(token)
        nodes[at].bound(edge, upper)
        edge.lower = lower
        edge.verdict = None if verdict < 0 else bool(verdict)
    for node, lower in zip(nodes, found["lower"].tolist(), strict=True):
        node.lower = lower
        if node.parent is not None:
            node.parent.edges[node.token].node = node
    for i in np.argsort(found["order"], kind="stable"):
        trie.touch(nodes[i])
    trie.restore(*(float(x) for x in found["bounds"]))
    return trie


def _starts(count: Any, which: Any) -> Any:
    """Returns for each node, the place where its numbers begin in an array. Only some nodes have numbers."""
    return np.concatenate([[0], np.cumsum(np.where(which, count, 0))])


def _joined(arrays: list[Any], dtype: Any) -> np.ndarray:
    whole: np.ndarray = np.concatenate([np.empty(0, dtype), *arrays]).astype(dtype, copy=False)
    return whole
