"""Language models: what a sampler asks of one (`base`), models of transformers, the embedded pair in numpy.

Nothing heavy is imported here; `structgen.lm.transformers` loads torch when a model is made.
"""
