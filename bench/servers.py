"""Compares servers that run the same tiny model, in requests per second and CPU time per token.

In: names of servers. Out: a table with one row per server and number of simultaneous requests. Cost: some
minutes.

    structgen               the embedded model in numpy
    structgen-torch         the same weights through transformers
    transformers            `transformers serve` (needs transformers[serving])
    transformers-cb         the same with --continuous-batching
    llama-cpp               llama-cpp-python's server, by the Python that STRUCTGEN_LLAMA_PYTHON names

Every server gets the same chats, with greedy decoding and without a constraint, because some servers have no
constraints. The chat template passes the message on unchanged. Each server uses one thread for its
arithmetic. `CPU` is the time of the server's process per token; other processes of the machine do not count.
The embedded tokenizer counts the tokens of all servers. `same` is the share of texts that equal the first
server's text. The servers take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.serve import ROOT, Requests, cpu_seconds

_TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"
_NAMES = ("structgen", "structgen-torch", "transformers", "transformers-cb", "llama-cpp")
_START = 180.0  # seconds that a server may take to start


@dataclass(frozen=True, slots=True)
class Server:
    """A running server that answers chats."""

    name: str
    address: str
    pid: int
    model: str


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as made:
        port: int = made.getsockname()[1]
        return port


def command(name: str, model: Path, port: int) -> list[str]:
    """Returns the command that starts a server."""
    if name == "structgen":
        return [sys.executable, "-m", "structgen", "serve", "--port", str(port)]
    if name == "structgen-torch":
        return [sys.executable, "-m", "structgen", "serve", str(model), "--port", str(port)]
    if name in ("transformers", "transformers-cb"):
        serve = [str(Path(sys.executable).with_name("transformers")), "serve", str(model)]
        batching = ["--continuous-batching"] if name.endswith("-cb") else []
        return [*serve, "--host", "127.0.0.1", "--port", str(port), "--device", "cpu", *batching]
    if name == "llama-cpp":
        python = os.environ.get("STRUCTGEN_LLAMA_PYTHON") or sys.executable
        made = str(model / "model.gguf")
        code = f"import pathlib, oracles.gguf_model as g; g.write(pathlib.Path({made!r}), {_TEMPLATE!r})"
        subprocess.run(
            [python, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True
        )
        limits = ["--n_ctx", "1024", "--n_threads", "1", "--n_threads_batch", "1"]
        return [python, "-m", "llama_cpp.server", "--model", made, "--port", str(port), *limits]
    raise SystemExit(f"no server is called {name!r}: there are {', '.join(_NAMES)}")


@contextmanager
def running(name: str, model: Path) -> Iterator[Server]:
    import httpx2

    port = free_port()
    process = subprocess.Popen(
        command(name, model, port),
        cwd=ROOT,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}/v1"
    try:
        until = time.monotonic() + _START
        while True:
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{name} did not start")
            try:
                httpx2.get(f"{address}/models", timeout=5)
                break
            except httpx2.HTTPError:
                time.sleep(0.3)
        known = {"structgen": "embedded"}.get(name, str(model) if name.startswith("transformers") else "")
        yield Server(name, address, process.pid, known)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def ask(server: Server, prompts: list[str], at_once: int) -> list[str]:
    import httpx2

    waiting = list(prompts)
    texts: list[str] = []
    async with httpx2.AsyncClient(timeout=300) as client:

        async def one() -> None:
            while waiting:
                body: dict[str, Any] = {
                    "messages": [{"role": "user", "content": waiting.pop()}],
                    "temperature": 0,
                    "max_tokens": 128,
                }
                if server.model:
                    body["model"] = server.model
                response = await client.post(f"{server.address}/chat/completions", json=body)
                response.raise_for_status()
                texts.append(response.json()["choices"][0]["message"]["content"] or "")

        await asyncio.gather(*(one() for _ in range(at_once)))
    return texts


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--servers", default="structgen,structgen-torch", help=f"of {', '.join(_NAMES)}")
    parser.add_argument("--at-once", default="1,8", help="requests at once (default: 1,8)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=0, help="of a round (default: by the number at once)")
    options = parser.parse_args()
    from structgen.lm import embedded

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        model = Path(folder) / "model"
        shutil.copytree(embedded.path("target"), model)
        (model / "chat_template.jinja").write_text(_TEMPLATE)
        servers = [stack.enter_context(running(name, model)) for name in options.servers.split(",")]
        heads = f"{'server':>16} {'at once':>7} {'requests/s':>10} {'tokens/s':>9}"
        print(f"{heads} {'CPU ms/token':>12} {'same':>6}", flush=True)
        for at_once in (int(n) for n in options.at_once.split(",")):
            compare(servers, at_once, options.rounds, options.requests or max(8, 2 * at_once))
    return 0


def compare(servers: list[Server], at_once: int, rounds: int, count: int) -> None:
    """Measures the servers and prints one row per server."""
    from structgen.lm import embedded
    from structgen.lm.load import language_model

    lm: Any = language_model(None)
    source = Requests()
    figures: dict[str, list[tuple[float, float, float]]] = {server.name: [] for server in servers}
    same: dict[str, list[float]] = {server.name: [] for server in servers}
    for number in range(rounds + 1):
        prompts = []
        for _ in range(count):
            text, schema = source.plain()
            prompts.append(embedded.format_prompt(text, schema))
        first: list[str] = []
        for server in servers:
            begin, before = time.perf_counter(), cpu_seconds(server.pid)
            texts = asyncio.run(ask(server, prompts, at_once))
            wall, used = time.perf_counter() - begin, cpu_seconds(server.pid) - before
            tokens = sum(len(lm.encode(text)) + 1 for text in texts)
            first = first or sorted(texts)
            if number:  # the first round warms up
                figures[server.name].append((count / wall, tokens / wall, 1e3 * used / tokens))
                same[server.name].append(len(set(first) & set(texts)) / len(set(first)))
    for server in servers:
        middle = [statistics.median(column) for column in zip(*figures[server.name], strict=True)]
        alike = statistics.mean(same[server.name])
        print(
            f"{server.name:>16} {at_once:7} {middle[0]:10.2f} {middle[1]:9.0f} {middle[2]:12.3f} "
            f"{alike:6.0%}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
