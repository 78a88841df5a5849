"""The engine's verdicts compared with two judges, over random schemas of every draft.

judge.py      a direct evaluator of JSON Schema, written from the specifications
schemas.py    random schemas over every keyword of a draft
targeted.py   classes of schemas that schemas.py rarely draws
instances.py  values near a schema, texts walked through the engine, every small value
check.py      one schema and its texts: engine, judge, jsonschema
shrink.py     makes a finding small
`python -m bench.differential` is the long run, `tests/test_differential.py` the short one.
"""
