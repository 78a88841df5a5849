"""The part of a report that explains how its figures were measured, and which choices favour which engine."""

from __future__ import annotations

METHOD = {
    "masks": [
        "Every engine gets the same schema text, the same vocabulary and the same token ids of the "
        "same instances. It runs in a process of its own; the engines of a lane take turns of some schemas "
        "(--turn, 20 unless told), and who goes first rotates, so noise of the machine hits all alike. "
        "MaskBench's own script runs one engine after the other. With turns of one schema each finds the "
        "processor's caches full of what another left, as after a model's step on the same core.",
        "First mask is compile + new sequence + first mask of a schema the engine has not seen. "
        "Between masks is mask + accept of one token; the end-of-sequence token is a token like "
        "others. The clock is Python's nanosecond counter around bound calls, so each figure holds "
        "about 0.1 µs of Python a call. Garbage collection is off.",
        "An invalid instance counts up to its refusal. A schema past its limit of time or memory, or "
        "a crash, is one row; the engine's process is started anew.",
        "On what both take means: the schemas both compile and, of each instance, the leading tokens "
        "both took.",
    ],
    "cases": [
        "In the tables of long outputs, growth is the median of the last tenth of the tokens over "
        "that of the first tenth: 1 where a token costs the same however long the text already is.",
    ],
    "generate": [
        "End to end: the model's most probable allowed token at each step, one sequence, no batching. "
        "Declared is the share of all schemas that the engine takes without a refusal, an error or a "
        "limit of time or memory; empirical, the share of all schemas whose text came to its end and is "
        "valid (jsonschema with formats); compliance is empirical over declared. Cut off counts texts that "
        "the limit of tokens ended; too small, those of which the engine said at once that no text "
        "of the schema is so short. Both are declared and not valid. Times are medians over the schemas "
        "that every engine takes: compile; from the start of compile to the first token (the forward of "
        "the prompt included); per further token.",
    ],
}
FLATTERS = {
    "masks": [
        "An engine that refuses hard schemas has better times over all that it takes, hence the "
        "tables on what both take, which in turn hide what only one can do.",
        "An engine that drops keywords has less to check: see the wrong verdicts.",
        "Figures of one process over many schemas flatter engines that share caches across grammars "
        "(structgen, xgrammar, grid-guardrail), as a server that serves many schemas does too.",
        "llguidance is called through its unchecked pointer call and keeps its lexer between "
        "instances; a server that builds a matcher per request finds it colder. xgrammar compiles "
        "with several threads.",
        "At these sizes the median between masks measures the call from Python more than the engine.",
    ],
    "generate": [
        "A small model runs on and repeats itself. A text that does not end within the limit counts against "
        "the engine. Engines that can be told the limit end in time, which flatters them beside those "
        "without such a feature; where nobody is told (--untold), the model is to blame as much as the "
        "engine, and one that forces compact JSON or cuts recursion off needs fewer tokens.",
        "A text that is steered to its end is valid, not good: the share of valid texts says nothing about "
        "what they say.",
    ],
}
