"""The real serving engines; each in an environment of its own: `make test-hosts HOST=vllm`."""
