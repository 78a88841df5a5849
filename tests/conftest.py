"""Fixtures of all tests: the data folder, the vocabulary of 131,000 tokens, and a rule about skipped tests.

A test whose data is absent is skipped on a developer's machine. In CI (`CI` is set) the test fails, so a
passing run in CI has read the corpus.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest

from oracles import data

ROOT = Path(__file__).resolve().parents[1]
_TOOLS = {
    "build",
    "dist",
    "__pycache__",
}  # what builds and imports leave behind; the check skips names that begin with a dot


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    """Tests write only into temporary folders: the run fails if a test leaves a file in the checkout."""
    before = set(os.listdir(ROOT))
    yield
    left = [n for n in set(os.listdir(ROOT)) - before - _TOOLS if not n.startswith((".", "build"))]
    assert not left, f"the tests left {', '.join(sorted(left))} in the checkout"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of the server with the embedded model, in this process."""
    pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
    pytest.importorskip("sse_starlette", reason="sse-starlette is not installed: it is in the extra serve")
    from starlette.testclient import TestClient

    from structgen.serve.app import create_app

    with TestClient(create_app(), raise_server_exceptions=False) as made:
        yield made


@pytest.fixture(scope="session")
def data_root() -> Path:
    data.need(data.root().is_dir(), "no data directory (STRUCTGEN_DATA or ../shared/data)")
    return data.root()


@pytest.fixture(scope="session")
def tekken() -> data.Tokens:
    try:
        return data.tekken()
    except ModuleNotFoundError:
        data.need(False, "mistral-common is not installed")
        raise


@pytest.fixture(scope="session")
def tekken_vocabulary(tekken):
    import structgen

    return structgen.Vocabulary.from_bytes(
        tekken.text, eos_token_ids=[tekken.eos], special_token_ids=tekken.special
    )
