"""Language models: the protocol (`base`), models of transformers, the embedded pair in numpy.

Nothing heavy is imported here; `structgen.lm.transformers` loads torch when a model is made.
"""
