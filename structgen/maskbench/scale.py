"""The lanes of `drive` as Ray actors: a run on a cluster in place of this machine's cores.

Enters: a task and jobs. A job carries its schema and instances, so no node needs the data. Leaves: (job,
rows) in the order in which jobs end. An actor is one lane. Its engines run in child processes under the usual
limits, so a hang costs one row. If an actor's node dies, the actor is started again and repeats its job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .._extras import missing

_AHEAD = 2  # the jobs queued on an actor, so that it never waits for the driver


def each(
    lane: type[Any],
    task: Any,
    jobs: Iterable[list[dict[str, Any]]],
    *,
    lanes: int = 0,
    address: str | None = None,
) -> Iterator[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Runs jobs, which are turns of `drive`, on `lanes` actors of one CPU each; 0 takes what the cluster has.

    `lane` is the class `drive.Lane`, which is made of the task. `address` is Ray's: "auto" for the cluster of
    this node, None starts a local one.
    MissingDependency: Ray is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise missing(error, "lanes on a cluster") from None
    started = not ray.is_initialized()
    if started:
        local = {"num_cpus": lanes or None, "include_dashboard": False} if address is None else {}
        ray.init(address=address, log_to_driver=False, **local)
    count = lanes or max(1, int(ray.cluster_resources().get("CPU", 1)))
    actor = ray.remote(num_cpus=1, max_restarts=4, max_task_retries=2)(lane)
    made = [actor.remote(task) for _ in range(count)]
    todo = iter(jobs)
    pending: dict[Any, tuple[Any, list[dict[str, Any]]]] = {}

    def feed(one: Any) -> None:
        job = next(todo, None)
        if job is not None:
            pending[one.run.remote(job)] = (one, job)

    try:
        for _ in range(_AHEAD):
            for one in made:
                feed(one)
        while pending:
            ready, _ = ray.wait(list(pending), num_returns=1)
            one, job = pending.pop(ready[0])
            rows = ray.get(ready[0])
            feed(one)
            yield job, rows
    finally:
        for one in made:
            ray.kill(one)
        if started:
            ray.shutdown()
