"""The server as a Ray Serve deployment: replicas on many machines, each with a model of its own.

Enters: a model's name, options, the number of replicas. Leaves: an application for `ray.serve.run`. Cost: one
model for each replica; a request goes to the replica with the shortest queue.

    from ray import serve
    from structgen.serve.ray import application

    serve.run(application("path/to/model", replicas=2))

The model is loaded where the replica runs, so its name must mean the same model on every machine. Keys,
limits and errors are those of `structgen serve`. Replicas share no caches.
"""

from __future__ import annotations

from typing import Any

from .._extras import missing
from .app import create_app
from .options import ServerOptions


def application(
    model: str | None = None,
    options: ServerOptions | None = None,
    *,
    replicas: int | dict[str, Any] = 1,
    resources: dict[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """Returns an application of Ray Serve.

    Args:
        model: a folder or hub id; None: the embedded model.
        options, settings: as in `create_app`.
        replicas: how many, or Ray's `autoscaling_config`: {"min_replicas": 1, "max_replicas": 4, ...}. Ray
            counts ongoing requests; by default it wants as many a replica as `ServerOptions.sequences`.
        resources: Ray's `ray_actor_options`, such as {"num_gpus": 1}.

    Raises:
        MissingDependency: Ray Serve is not installed.
    """
    try:
        from ray import serve
    except ImportError as error:
        raise missing(error, "deployments") from None
    from dataclasses import replace

    chosen = replace(options or ServerOptions(), **settings)

    def build() -> Any:
        return create_app(model, chosen)

    arguments: dict[str, Any] = {
        "name": "structgen",
        # Ray may send more requests than the engine takes at once. So the engine's own queue decides, and
        # answers 429.
        "max_ongoing_requests": chosen.sequences + chosen.queue,
        "ray_actor_options": resources or {},
    }
    if isinstance(replicas, dict):
        wanted = {"target_ongoing_requests": chosen.sequences, **replicas}
        arguments["autoscaling_config"] = wanted
    else:
        arguments["num_replicas"] = replicas

    class Replica:
        pass

    return serve.deployment(**arguments)(serve.ingress(build)(Replica)).bind()
