"""Reads a configuration file once, at the edge: YAML, overrides, environment, nearest-key hints."""

import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from corag.errors import ConfigError
from corag.settings import SAMPLE, Config

DEFAULT_CONFIG = Path("configs/default.yaml")


class _Loader(yaml.SafeLoader):
    """Reads 22:30 as text: YAML 1.1 takes it for the number 1350 in base 60."""


_CLOCK_TIME = ("tag:yaml.org,2002:str", re.compile(r"\d+(?::\d+)+$"))
_Loader.yaml_implicit_resolvers = {
    first: [_CLOCK_TIME, *resolvers] if first in "0123456789" else resolvers
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_config(path: Path | None = None, overrides: Sequence[str] = ()) -> Config:
    """The configuration of `path` with `a.b=value` overrides applied.

    Paths written in the file are relative to the file's folder; defaults, overrides and the environment's
    `CORAG_WORKSPACE` are relative to the current folder. Without `path`, `configs/default.yaml` is read where
    it exists and the built-in defaults (the same values) are used where it does not.

    Raises:
        ConfigError: the file is missing or no mapping, a key is unknown, or a value does not fit.
    """
    where = path or DEFAULT_CONFIG
    if path is None and not where.exists():
        raw: dict[str, Any] = {}
    else:
        raw = _read_yaml(where)
        _resolve_paths(raw, where.resolve().parent)
    given: dict[str, Any] = {}
    for override in overrides:
        _apply_override(given, override)
    _resolve_paths(given, Path.cwd())
    _merge(raw, given)
    if workspace := os.environ.get("CORAG_WORKSPACE"):
        raw["workspace"] = str(Path(workspace).absolute())
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(f"{where}: {_explain(error)}") from None
    return config


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        loaded = yaml.load(path.read_text(encoding="utf-8-sig"), Loader=_Loader)  # noqa: S506 - a safe loader
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the configuration ({error.strerror}); pass -c FILE") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: the configuration is not UTF-8 text; save it as UTF-8") from None
    except yaml.YAMLError as error:
        line = getattr(error, "problem_mark", None)
        where = f"{path}:{line.line + 1}" if line else str(path)
        raise ConfigError(f"{where}: not valid YAML ({getattr(error, 'problem', None) or error})") from None
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise ConfigError(f"{path}: the top level must be a mapping of sections, not {type(loaded).__name__}")
    return loaded


def _apply_override(raw: dict[str, Any], override: str) -> None:
    key, equals, value = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override}: write it as section.key=value")
    *sections, last = key.strip().split(".")
    target = raw
    for section in sections:
        target = target.setdefault(section, {})
        if not isinstance(target, dict):
            raise ConfigError(f"--set {override}: {section} is set to a value, not a section")
    try:
        target[last] = yaml.load(value, Loader=_Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        target[last] = value


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = value


PATH_KEYS = (
    ("questions", "train"),
    ("questions", "held_out"),
    ("store", "uri"),
    ("tracking", "artifacts"),
    ("schedule", "questions"),
    ("schedule", "out"),
)
"""Keys that hold one path."""


def _resolve_paths(raw: dict[str, Any], folder: Path) -> None:
    """Make the paths of `raw` absolute in place; URLs, hub names and the word `sample` stay as they are."""
    if "workspace" in raw:
        raw["workspace"] = _absolute(raw["workspace"], folder)
    for section, key in PATH_KEYS:
        held = raw.get(section)
        if isinstance(held, dict) and key in held:
            held[key] = _absolute(held[key], folder)
    corpus = raw.get("corpus")
    if isinstance(corpus, dict) and "paths" in corpus:
        paths = [corpus["paths"]] if isinstance(corpus["paths"], str) else corpus["paths"]
        corpus["paths"] = [_absolute(path, folder) for path in paths] if isinstance(paths, list) else paths
    tracking = raw.get("tracking")
    if isinstance(tracking, dict) and "uri" in tracking:
        tracking["uri"] = _absolute_sqlite(tracking["uri"], folder)
    models = [raw.get("embedder"), raw.get("generator"), *(raw.get("rerankers") or ())]
    for holder in models:
        for key in ("model", "tokenizer"):
            if isinstance(holder, dict) and key in holder:
                holder[key] = _absolute_if_present(holder[key], folder)


def _absolute(value: Any, folder: Path) -> Any:
    if not isinstance(value, str) or value == SAMPLE or "://" in value:
        return value
    return str((folder / Path(value).expanduser()).resolve())


def _absolute_sqlite(uri: Any, folder: Path) -> Any:
    prefix = "sqlite:///"
    if not isinstance(uri, str) or not uri.startswith(prefix) or uri.startswith(prefix + "/"):
        return uri
    return f"{prefix}{(folder / uri.removeprefix(prefix)).resolve()}"


def _absolute_if_present(value: Any, folder: Path) -> Any:
    """A model is a folder or a hub name: only what is written as a path, or is a folder, is a path."""
    if isinstance(value, str) and (value.startswith((".", "/", "~")) or (folder / value).is_dir()):
        return _absolute(value, folder)
    return value


def _explain(error: ValidationError) -> str:
    problems = []
    for detail in error.errors():
        key = ".".join(str(part) for part in detail["loc"])
        if detail["type"] == "extra_forbidden":
            near = difflib.get_close_matches(key, list(_known_keys(Config)), n=1, cutoff=0.5)
            if not near:
                near = difflib.get_close_matches(
                    key.rsplit(".", 1)[-1], [name.rsplit(".", 1)[-1] for name in _known_keys(Config)], n=1
                )
            hint = f"; did you mean {near[0]!r}?" if near else ""
            problems.append(f"unknown key {key!r}{hint}")
        elif detail["type"] == "missing":
            problems.append(f"key {key!r} is missing; add it")
        else:
            message = detail["msg"].removeprefix("Value error, ")
            value = detail["input"]
            shown = f" (got {value!r})" if isinstance(value, str | int | float | bool) else ""
            problems.append(f"{key}: {message}{shown}" if key else message)
    return "; ".join(problems)


def _known_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        yield prefix + name
        for inner in _models_in(info.annotation):
            yield from _known_keys(inner, f"{prefix}{name}.")


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (tuple, Union, UnionType):
        for argument in get_args(annotation):
            yield from _models_in(argument)
