"""Language models: the protocol (`base`), models of transformers, the embedded pair in numpy.

The import loads no heavy package; `structgen.lm.transformers` loads torch when a model is made.
"""
