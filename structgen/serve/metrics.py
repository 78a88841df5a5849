"""The numbers of `/metrics`, by prometheus-client. Each application has a registry of its own.

Enters: observations of the engine and the application. Leaves: Prometheus' text format. Cost: a lock for each
observation.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_SLOW = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Metrics:
    """The counters and histograms of one server; names begin with `structgen_`."""

    def __init__(self) -> None:
        self.registry: CollectorRegistry = CollectorRegistry()
        r = self.registry
        self.requests: Counter = Counter(
            "structgen_requests", "Requests answered.", ("endpoint", "status"), registry=r
        )
        self.seconds: Histogram = Histogram(
            "structgen_request_seconds", "Arrival to end.", ("endpoint",), buckets=_SLOW, registry=r
        )
        self.tokens: Counter = Counter("structgen_generated_tokens", "Tokens drawn.", registry=r)
        self.subsets: Counter = Counter(
            "structgen_subset_masks", "Masks from which something too much to tell was left out.", registry=r
        )
        self.prompt_tokens: Counter = Counter("structgen_prompt_tokens", "Prompt tokens read.", registry=r)
        self.cached_tokens: Counter = Counter(
            "structgen_cached_prompt_tokens", "Prompt tokens found.", registry=r
        )
        self.queued: Histogram = Histogram(
            "structgen_queue_seconds", "Waiting for a place.", buckets=_SLOW, registry=r
        )
        self.first_token: Histogram = Histogram(
            "structgen_first_token_seconds", "Arrival to first token.", buckets=_SLOW, registry=r
        )
        self.step: Histogram = Histogram(
            "structgen_step_seconds", "A step of the engine.", buckets=_FAST, registry=r
        )
        self.forward: Histogram = Histogram(
            "structgen_forward_seconds", "A forward.", buckets=_FAST, registry=r
        )
        self.batch: Histogram = Histogram(
            "structgen_batch", "Answers in a step.", buckets=(1, 2, 4, 8, 16, 32, 64, 128), registry=r
        )
        self.compile: Histogram = Histogram(
            "structgen_compile_seconds", "Compiling a grammar.", buckets=_FAST, registry=r
        )
        self.refused: Counter = Counter(
            "structgen_refused_constraints", "Constraints that were refused.", ("code",), registry=r
        )

    def watch(self, load: Callable[[], tuple[int, int]]) -> None:
        """Adds gauges of the engine's load: (live answers, waiting jobs)."""
        live = Gauge("structgen_live_answers", "Answers in the making.", registry=self.registry)
        live.set_function(lambda: load()[0])
        waiting = Gauge("structgen_waiting_requests", "Requests that wait.", registry=self.registry)
        waiting.set_function(lambda: load()[1])

    def text(self) -> bytes:
        found: bytes = generate_latest(self.registry)
        return found
