"""Which weights a model folder holds, told without reading all of them."""

import hashlib
from pathlib import Path

_EDGE_BYTES = 1 << 20
_SMALL_FILES = ("config.json", "tokenizer.json", "vocab.txt", "1_Pooling/config.json")
_WEIGHT_SUFFIXES = (".safetensors", ".bin", ".gguf")


def folder_revision(folder: Path) -> str:
    """Twelve hex digits that change with the configuration, tokenizer or weights in `folder`.

    Of each weight file the size and the first and last megabyte count, so that large models cost milliseconds;
    names of folders and times of files do not count.
    """
    digest = hashlib.sha256()
    files = [folder / name for name in _SMALL_FILES if (folder / name).is_file()]
    for path in files:
        digest.update(path.read_bytes())
    for path in sorted(one for one in folder.iterdir() if one.suffix in _WEIGHT_SUFFIXES):
        size = path.stat().st_size
        digest.update(f"{path.name}:{size}".encode())
        with path.open("rb") as stream:
            digest.update(stream.read(_EDGE_BYTES))
            stream.seek(max(0, size - _EDGE_BYTES))
            digest.update(stream.read(_EDGE_BYTES))
    return digest.hexdigest()[:12]
