"""Tests in the real serving engines. Each engine has an environment of its own: `make test-hosts
HOST=vllm`."""
