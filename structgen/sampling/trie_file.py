"""Tries in files, bit for bit.

Enters: a `Trie`, a path. Leaves: a file in numpy's .npz form (no pickles), or the trie back, which gives the
same draws as before. Cost: one pass over the nodes; a file is about as large as the trie in memory.

The file holds the key of its target (prompt, grammar, sampling parameters, vocabulary), so that the wrong
target is refused. The model itself is recognised by the vector of the empty text, when the trie is used.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ..errors import StructgenError
from .trie import Edge, Node, Trie

__all__ = ["load_trie", "save_trie"]

_FORMAT = 1


def save_trie(trie: Trie, path: str | os.PathLike[str]) -> None:
    """Write a trie. The file appears whole or not at all."""
    order = {id(node): i for i, node in enumerate(trie._nodes)}
    nodes = list(trie.nodes())
    number = {id(node): i for i, node in enumerate(nodes)}
    edges = [(i, token, edge) for i, node in enumerate(nodes) for token, edge in node.edges.items()]
    arrays: dict[str, Any] = {
        "meta": np.frombuffer(
            json.dumps({"format": _FORMAT, "key": trie.key, "max_bytes": trie.max_bytes}).encode(), np.uint8
        ),
        "bounds": np.array([trie.theta, trie.lower_bound, trie.upper_bound], np.float64),
        "parent": np.array([-1 if n.parent is None else number[id(n.parent)] for n in nodes], np.int64),
        "token": np.array([n.token for n in nodes], np.int64),
        "visited": np.array([n.visited for n in nodes], np.bool_),
        "log_mass": np.array([n.log_mass for n in nodes], np.float64),
        "order": np.array([order.get(id(n), 0) for n in nodes], np.int64),
        "count": np.array([0 if n.ids is None else len(n.ids) for n in nodes], np.int64),
        "shaped": np.array([n.score is not n.logp for n in nodes], np.bool_),
        "ids": _joined([n.ids for n in nodes], np.int32),
        "logp": _joined([n.logp for n in nodes], np.float64),
        "score": _joined([n.score for n in nodes if n.score is not n.logp], np.float64),
        "notes": np.frombuffer(json.dumps([[n.reason, n.lost] for n in nodes]).encode(), np.uint8),
        "edge_node": np.array([i for i, _, _ in edges], np.int64),
        "edge_token": np.array([token for _, token, _ in edges], np.int64),
        "edge_upper": np.array([e.upper for _, _, e in edges], np.float64),
        "edge_lower": np.array([e.lower for _, _, e in edges], np.float64),
        "edge_verdict": np.array([-1 if e.verdict is None else int(e.verdict) for _, _, e in edges], np.int8),
    }
    path = Path(path)
    partial = path.with_name(path.name + ".part")
    with open(partial, "wb") as stream:
        np.savez(stream, **arrays)
    os.replace(partial, path)


def load_trie(path: str | os.PathLike[str]) -> Trie:
    """Read a trie.

    Raises:
        StructgenError: the file is damaged or of another version.
    """
    try:
        with np.load(path, allow_pickle=False) as data:
            found = {name: data[name] for name in data.files}
        meta = json.loads(found["meta"].tobytes())
        if meta["format"] != _FORMAT:
            raise StructgenError(f"the trie {os.fspath(path)} has format {meta['format']}, not {_FORMAT}")
        return _built(meta, found)
    except (ValueError, KeyError, IndexError, EOFError, BadZipFile, TypeError, AttributeError) as error:
        raise StructgenError(f"the trie {os.fspath(path)} is damaged: {error}") from None


def _built(meta: dict[str, Any], found: dict[str, Any]) -> Trie:
    trie = Trie(int(meta["max_bytes"]))
    trie.key = meta["key"]
    trie.unverified = True
    count = found["count"]
    starts = np.concatenate([[0], np.cumsum(count)])
    shaped = np.concatenate([[0], np.cumsum(np.where(found["shaped"], count, 0))])
    notes = json.loads(found["notes"].tobytes())
    nodes: list[Node] = []
    for i in range(len(count)):
        parent = int(found["parent"][i])
        node = trie.root if parent < 0 else Node(nodes[parent], int(found["token"][i]))
        span = slice(starts[i], starts[i + 1])
        logp = found["logp"][span].copy()
        score = found["score"][shaped[i] : shaped[i + 1]].copy() if found["shaped"][i] else logp
        reason, lost = notes[i]
        node.restore(
            found["ids"][span].copy(), logp, score, float(found["log_mass"][i]),
            tuple((int(t), float(p)) for t, p in lost), str(reason), bool(found["visited"][i]),
        )  # fmt: skip
        nodes.append(node)
    columns = ("edge_node", "edge_token", "edge_upper", "edge_lower", "edge_verdict")
    for at, token, upper, lower, verdict in zip(*(found[c].tolist() for c in columns), strict=True):
        edge: Edge = nodes[at].edge(token)
        edge.upper, edge.lower = upper, lower
        edge.verdict = None if verdict < 0 else bool(verdict)
    for node in nodes:
        if node.parent is not None:
            node.parent.edges[node.token].node = node
    for i in np.argsort(found["order"], kind="stable"):
        trie.touch(nodes[i])
    trie.restore(*(float(x) for x in found["bounds"]))
    return trie


def _joined(arrays: list[Any], dtype: Any) -> np.ndarray:
    whole: np.ndarray = np.concatenate([np.empty(0, dtype), *arrays]).astype(dtype, copy=False)
    return whole
