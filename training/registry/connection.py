"""Connects to the tracking server: one URI for every command, a database that several may create at once."""

import hashlib
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from filelock import FileLock, Timeout

from corag.errors import RegistryError
from corag.settings import TrackingSettings

if TYPE_CHECKING:
    from mlflow import MlflowClient

LOCK_SECONDS = 300.0
"""How long a command waits for another that creates the database or moves an alias."""

SQLITE = "sqlite:///"


@dataclass(frozen=True, slots=True, eq=False)
class Tracking:
    """A connection: the URI that every command records, the experiment, and the lock that guards aliases."""

    client: "MlflowClient"
    uri: str
    experiment_id: str
    lock_path: Path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds this tracking URI's lock; the operating system releases it when its owner dies.

        Raises:
            RegistryError: another command held it for too long.
        """
        with _locked(self.lock_path):
            yield


def connect(settings: TrackingSettings) -> Tracking:
    """The connection to `MLFLOW_TRACKING_URI`, or to `settings.uri` where that is not set.

    The database, its folder and the experiment are made where they are missing, by one command at a time.

    Raises:
        RegistryError: the URI is a file store, or the server refuses or cannot be reached.
    """
    uri = tracking_uri(settings)
    artifacts = _artifact_root(settings)
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    database = Path(uri.removeprefix(SQLITE)) if uri.startswith(SQLITE) else None
    if database is not None:
        database.parent.mkdir(parents=True, exist_ok=True)
    lock_path = _lock_path(uri)
    with _locked(lock_path), registry_errors(f"tracking {uri}"):
        from mlflow import MlflowClient

        # MLflow's own loggers tell of table migrations at INFO; they are set up by the import above.
        for name in ("mlflow", "mlflow.store", "mlflow.store.db.utils", "alembic"):
            logging.getLogger(name).setLevel(logging.WARNING)
        if database is not None and not database.exists():
            _create(database)
        client = MlflowClient(tracking_uri=uri, registry_uri=uri)
        experiment = client.get_experiment_by_name(settings.experiment)
        if experiment is None:
            experiment_id = client.create_experiment(settings.experiment, artifact_location=artifacts)
        elif experiment.lifecycle_stage != "active":
            raise RegistryError(
                f"tracking {uri}: the experiment {settings.experiment!r} was deleted; restore it with "
                f"`mlflow experiments restore -x {experiment.experiment_id}`, or set tracking.experiment to another"
            )
        else:
            experiment_id = experiment.experiment_id
    return Tracking(client, uri, str(experiment_id), lock_path)


def _create(database: Path) -> None:
    """Make an empty tracking database aside and rename it: one half made by a killed command could not be mended."""
    from mlflow import MlflowClient

    aside = database.with_name(f".{database.name}.new")
    aside.unlink(missing_ok=True)
    uri = SQLITE + str(aside)
    # Asking for anything makes the tables.
    MlflowClient(tracking_uri=uri, registry_uri=uri).search_experiments()
    aside.replace(database)


def tracking_uri(settings: TrackingSettings) -> str:
    """The URI in use, a SQLite file's path made absolute.

    Raises:
        RegistryError: the URI names a file store, which MLflow no longer serves.
    """
    from_environment = os.environ.get("MLFLOW_TRACKING_URI")
    uri = from_environment or settings.uri
    where = "MLFLOW_TRACKING_URI" if from_environment else "tracking.uri"
    if uri.startswith("file:") or "://" not in uri:
        raise RegistryError(
            f"{where} is {uri!r}: MLflow no longer keeps runs in plain folders; "
            "use a database such as sqlite:///mlruns/mlflow.db, or a server's http:// address"
        )
    if uri.startswith(SQLITE):
        return SQLITE + str(Path(uri.removeprefix(SQLITE)).absolute())
    return uri


@contextmanager
def registry_errors(doing: str) -> Iterator[None]:
    """Turns what MLflow, its database or its file system raises into a RegistryError of one line."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, SQLAlchemyError, OSError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise RegistryError(
            f"{doing}: {reason[0]}; check tracking.uri, MLFLOW_TRACKING_URI and that the server runs"
        ) from error


def is_missing(error: Exception) -> bool:
    """Whether an MLflow error says that a model, version or alias does not exist."""
    return getattr(error, "error_code", "") in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE") and (
        "not found" in str(error).lower() or "does not exist" in str(error).lower()
    )


def local_path(uri: str) -> Path | None:
    """The path of a `file:` URI or plain path; None for any other scheme."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if "://" in uri or parts.scheme else Path(uri)


def _artifact_root(settings: TrackingSettings) -> str:
    path = local_path(settings.artifacts)
    return settings.artifacts if path is None else path.absolute().as_uri()


def _lock_path(uri: str) -> Path:
    """Beside the SQLite file; for a server, in the temporary folder of this machine, by the URI's hash."""
    if uri.startswith(SQLITE):
        return Path(uri.removeprefix(SQLITE) + ".lock")
    return Path(tempfile.gettempdir()) / f"corag-{hashlib.sha256(uri.encode()).hexdigest()[:16]}.lock"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = FileLock(path, timeout=LOCK_SECONDS)
    try:
        lock.acquire()
    except Timeout:
        raise RegistryError(f"{path}: another command has held this lock for {LOCK_SECONDS:.0f} s; try again") from None
    except OSError as error:
        raise RegistryError(f"{path}: cannot be locked ({error.strerror}); check tracking.uri") from None
    try:
        yield
    finally:
        lock.release()
