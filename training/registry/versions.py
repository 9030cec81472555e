"""Registered versions of the agent: registering without silent doubles, and loading by number or alias."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from corag.errors import ModelError, RegistryError
from corag.values import Configuration
from training.agent import TrainedAgent
from training.bundle import AgentCard, load_bundle
from training.registry.connection import Tracking, is_missing, local_path, registry_errors
from training.registry.runs import BUNDLE

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

CHALLENGER = "challenger"
FINGERPRINT_TAG = "fingerprint"


@dataclass(frozen=True, slots=True)
class Registered:
    """A version, and whether this call made it: False where one of identical content existed already."""

    version: int
    created: bool


def register(tracking: Tracking, model_name: str, run_id: str, card: AgentCard) -> Registered:
    """The version that holds the bundle of run `run_id`, with the alias `challenger`.

    A usable version of identical content is returned instead of a new one; its aliases stay as they are.

    Raises:
        RegistryError: the server refuses.
    """
    with tracking.locked(), registry_errors(f"registering {model_name!r} at {tracking.uri}"):
        for held in _versions(tracking, model_name):
            if held.tags.get(FINGERPRINT_TAG) == card.fingerprint and _is_usable(tracking, model_name, held.version):
                return Registered(int(held.version), created=False)
        _ensure_model(tracking, model_name)
        run = tracking.client.get_run(run_id)
        made = tracking.client.create_model_version(
            model_name,
            source=f"{run.info.artifact_uri}/{BUNDLE}",
            run_id=run_id,
            tags={
                FINGERPRINT_TAG: card.fingerprint,
                "data_fingerprint": card.data_fingerprint,
                "embedder": card.embedder,
                "dimension": str(card.dimension),
                "rerankers": ", ".join(card.rerankers),
            },
        )
        tracking.client.set_registered_model_alias(model_name, CHALLENGER, str(made.version))
        return Registered(int(made.version), created=True)


def newest_version(tracking: Tracking, model_name: str) -> int:
    """The greatest version number, compared as a number.

    Raises:
        RegistryError: nothing is registered.
    """
    with registry_errors(f"listing {model_name!r} at {tracking.uri}"):
        numbers = [int(held.version) for held in _versions(tracking, model_name)]
    if not numbers:
        raise RegistryError(f"{tracking.uri}: no version of {model_name!r} is registered; run `corag train` first")
    return max(numbers)


def version_of(tracking: Tracking, model_name: str, alias: str) -> int | None:
    """The version that an alias points to; None where the model or the alias does not exist."""
    from mlflow.exceptions import MlflowException

    with registry_errors(f"alias {alias!r} of {model_name!r} at {tracking.uri}"):
        try:
            return int(tracking.client.get_model_version_by_alias(model_name, alias).version)
        except MlflowException as error:
            if is_missing(error):
                return None
            raise


def load_champion(tracking: Tracking, model_name: str, alias: str, *, fixed: Configuration) -> TrainedAgent | None:
    """The agent behind `models:/MODEL_NAME@ALIAS`; None where there is no champion yet, or its version was deleted.

    `fixed` is the configuration for questions far from its training data.

    Raises:
        RegistryError: the alias points to a version whose artifact is gone.
        ModelError: the artifact is not a whole agent.
    """
    version = version_of(tracking, model_name, alias)
    return None if version is None else load_agent(tracking, model_name, version, fixed=fixed)


def load_agent(tracking: Tracking, model_name: str, version: int, *, fixed: Configuration) -> TrainedAgent:
    """The agent of one version; nothing is unpickled.

    Raises:
        RegistryError: there is no such version, or its artifact is gone.
        ModelError: the artifact is not a whole agent.
    """
    with _bundle_folder(tracking, model_name, version) as folder:
        return TrainedAgent(load_bundle(folder), fixed, model_name, str(version))


@contextmanager
def _bundle_folder(tracking: Tracking, model_name: str, version: int) -> Iterator[Path]:
    """A folder with the version's files: the artifact itself where it is local, a download elsewhere."""
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    who = f"version {version} of {model_name!r}"
    with registry_errors(f"{who} at {tracking.uri}"):
        try:
            uri = tracking.client.get_model_version_download_uri(model_name, str(version))
        except MlflowException as error:
            if is_missing(error):
                raise RegistryError(
                    f"{tracking.uri}: {who} does not exist; `mlflow ui` lists the versions that do"
                ) from None
            raise
    gone = f"{who}: its artifact {uri} is gone; restore it, promote another version, or train again"
    if (folder := local_path(uri)) is not None:
        if not folder.is_dir():
            raise RegistryError(gone)
        yield folder
        return
    with tempfile.TemporaryDirectory() as target:
        try:
            fetched = download_artifacts(artifact_uri=uri, dst_path=target, tracking_uri=tracking.uri)
        except (MlflowException, OSError) as error:
            raise RegistryError(f"{gone} ({str(error).splitlines()[0]})") from None
        yield Path(fetched)


def _versions(tracking: Tracking, model_name: str) -> list["ModelVersion"]:
    quoted = model_name.replace("'", "''")
    found: list[ModelVersion] = []
    token = None
    while True:
        page = tracking.client.search_model_versions(f"name='{quoted}'", max_results=200, page_token=token)
        found.extend(page)
        token = page.token
        if not token:
            return sorted(found, key=lambda held: -int(held.version))


def _ensure_model(tracking: Tracking, model_name: str) -> None:
    from mlflow.exceptions import MlflowException

    try:
        tracking.client.create_registered_model(
            model_name, description="Chooses a reranker and search settings from a question's vector."
        )
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise


def _is_usable(tracking: Tracking, model_name: str, version: int | str) -> bool:
    try:
        with _bundle_folder(tracking, model_name, int(version)) as folder:
            load_bundle(folder)
    except (ModelError, RegistryError):
        return False
    return True
