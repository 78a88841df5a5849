"""Language models: what a sampler asks of one (`base`), transformers models, the embedded pair.

Nothing heavy is imported here; `structgen.lm.transformers` loads torch when a model is made.
"""
