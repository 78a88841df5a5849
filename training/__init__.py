"""Training of the embedded model pair: data, tokenizer, runs, evaluation, export."""
