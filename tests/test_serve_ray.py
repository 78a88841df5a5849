"""The deployment for Ray Serve: two replicas on a local Ray behind one address. Skipped without Ray Serve."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")
serve = pytest.importorskip("ray.serve", reason="ray is not installed: it is in the extra ray")

REQUEST = Path(__file__).resolve().parents[1] / "examples" / "server" / "chat.json"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.fixture(scope="module")
def local_ray():
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    serve.shutdown()
    ray.shutdown()


def test_two_replicas(local_ray) -> None:
    httpx = pytest.importorskip("httpx2", reason="httpx2 is not installed: it is in the extra test")
    from structgen.serve.ray import application

    port = free_port()
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    made = application(replicas=2, resources={"num_cpus": 0.5}, api_keys=("key",))
    serve.run(made, name="structgen", route_prefix="/")
    status = serve.status().applications["structgen"]
    assert sum(status.deployments["structgen"].replica_states.values()) == 2
    address = f"http://127.0.0.1:{port}"
    body = json.loads(REQUEST.read_text())
    header = {"Authorization": "Bearer key"}
    assert httpx.post(f"{address}/v1/chat/completions", json=body, timeout=60).status_code == 401
    for _ in range(6):
        answer = httpx.post(f"{address}/v1/chat/completions", json=body, headers=header, timeout=60)
        assert answer.status_code == 200, answer.text
        value = json.loads(answer.json()["choices"][0]["message"]["content"])
        assert value["customer"] == "Ana"
    assert httpx.post(f"{address}/v1/chat/completions", json={}, headers=header).status_code == 400
    with httpx.stream(
        "POST", f"{address}/v1/chat/completions", json=body | {"stream": True}, headers=header, timeout=60
    ) as stream:
        assert "data: [DONE]" in "\n".join(stream.iter_lines())


def test_autoscaling_is_configured() -> None:
    from structgen.serve.ray import application

    made = application(replicas={"min_replicas": 1, "max_replicas": 3}, sequences=16)
    config = made._bound_deployment._deployment_config.autoscaling_config
    assert (config.min_replicas, config.max_replicas, config.target_ongoing_requests) == (1, 3, 16)
