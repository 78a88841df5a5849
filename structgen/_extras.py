"""The extras of the distribution, and the error message for a package that is not installed.

Enters: an import that failed, and the purpose of the import. Leaves: an error with the command that installs
the package. Cost: nothing.
"""

from __future__ import annotations

import sys

from .errors import MissingDependency

DISTRIBUTION = "structgen-engine"  # On PyPI the name `structgen` belongs to another project.

# Each package that is imported on demand, and the extra of pyproject.toml that installs it.
EXTRAS = {
    "torch": "hf",
    "transformers": "hf",
    "safetensors": "hf",
    "tokenizers": "hf",
    "sentencepiece": "hf",
    "pydantic": "types",
    "lark": "lark",
    "matplotlib": "plot",
    "rich": "display",
    "jsonschema": "bench",
    "mistral_common": "bench",
    "huggingface_hub": "bench",
    "pyarrow": "bench",
    "llguidance": "bench",
    "xgrammar": "bench",
    "outlines_core": "bench",
    "lmformatenforcer": "bench",
    "grid": "bench",
    "ray": "ray",
    "trl": "trl",
    "datasets": "trl",
    "fastapi": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "sse_starlette": "serve",
    "prometheus_client": "serve",
    "mcp": "mcp",
}

# Each engine that structgen has an adapter for, and the package to install if the engine is missing.
HOSTS = {
    "llama_cpp": "llama-cpp-python",
    "outlines": "outlines",
    "genlm": "genlm-control",
    "lm_eval": "lm-eval",
    "mlx": "mlx-lm",
    "onnxruntime_genai": "onnxruntime-genai",
    "sglang": "sglang",
}


def install(extra: str) -> str:
    """Returns the command that installs an extra. The name is quoted, because shells interpret brackets."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def missing(error: ImportError, purpose: str) -> ImportError:
    """Returns the error to raise in place of an import that failed.

    Args:
        error: the error of the import. The message depends on its cause: the package is missing, the package
            fails to load, or a file of the user has the package's name.
        purpose: what needs the package, such as "Lark grammars"; "" if unknown.

    Returns:
        `error` itself if it is such an error already, or if neither an extra nor a host brings the package.
    """
    if isinstance(error, MissingDependency):
        return error
    package = (error.name or "").split(".")[0]
    extra = EXTRAS.get(package)
    if extra is None and package not in HOSTS:
        return error
    command = install(extra) if extra is not None else f"pip install {HOSTS[package]}"
    hidden = sys.modules.get(package)
    if isinstance(error, ModuleNotFoundError) and error.name != package and hidden is not None:
        file = getattr(hidden, "__file__", None)
        if file is not None and not hasattr(hidden, "__path__"):  # A module hides the package.
            return MissingDependency(f"{file} hides the package {package}; rename that file", name=error.name)
    what = "is not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported ({error})"
    reason = f"{purpose} need it: " if purpose else ""
    return MissingDependency(f"the package {package} {what}; {reason}{command}", name=error.name)
