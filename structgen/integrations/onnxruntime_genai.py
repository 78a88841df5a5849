"""structgen with ONNX Runtime GenAI: the decoding loop with masks and jumps over forced text.

Enters: an `onnxruntime_genai.Model`, a prompt as ids, a request. Leaves: the ids of its text. Cost: a mask
and a copy of the logits for each token; forced tokens go through the model together.

    engine = HostEngine(tokenizer, vocab_size)
    request = engine.request(engine.compile("json_schema", schema), max_tokens=200)
    ids = list(generate(model, prompt_ids, request, max_tokens=200))

The host takes no constraint of a user, but it lets a loop read and write logits. Its tokenizer does not
support every pre-tokenizer; the package `tokenizers` does. Written for onnxruntime-genai 0.18.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

try:
    import onnxruntime_genai as genai
except ImportError as _missing:
    from .._extras import missing

    raise missing(_missing, "loops of ONNX Runtime GenAI") from None

from ..logits import allocate_bitmask, apply_bitmask
from .hosts import HostRequest


def generate(
    model: Any,
    prompt_ids: Sequence[int],
    request: HostRequest,
    *,
    max_tokens: int,
    jump: bool = True,
    **search_options: Any,
) -> Iterator[int]:
    """Yields the ids of the text as soon as they are known, without end tokens.

    Args:
        model: a model of onnxruntime-genai.
        prompt_ids: the prompt as ids of the model's tokenizer.
        request: at the start of its text.
        max_tokens: the most tokens of the text. If the request has the same limit, the text is complete
            within it.
        jump: whether several forced tokens go through the model together. The text does not change.
        search_options: options of `GeneratorParams.set_search_options`: `do_sample`, `temperature`, `top_p`,
            ...

    Raises:
        StructgenError: the text cannot go on.
    """
    params = genai.GeneratorParams(model)
    params.set_search_options(max_length=len(prompt_ids) + max_tokens + 1, **search_options)
    generator = genai.Generator(model, params)
    generator.append_tokens(list(prompt_ids))
    row = allocate_bitmask(1, request.matcher.grammar.vocabulary.vocab_size)
    written = 0
    while written < max_tokens:
        request.fill(row, 0)
        if request.ended and request.error is not None:
            raise request.error
        logits = generator.get_logits()
        generator.set_logits(apply_bitmask(logits.reshape(1, -1), row).reshape(logits.shape))
        generator.generate_next_token()
        token = int(generator.get_next_tokens()[0])
        if not request.accept([token]):
            raise request.error or RuntimeError(f"the model wrote token {token}, which the mask forbids")
        if request.is_terminated():
            return
        yield token
        written += 1
        forced = request.matcher.forced_tokens()[: max_tokens - written - 1] if jump else []
        if not forced or not request.accept(forced):
            continue
        # The newest token is not in the cache yet, so the tokens that are appended now would not attend to
        # it.
        generator.rewind_to(generator.token_count() - 1)
        generator.append_tokens(np.array([token, *forced], np.int32))
        yield from forced
        written += len(forced)
