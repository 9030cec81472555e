"""What every command needs around its flow: Prefect's environment, logging, and the effective configuration."""

import logging
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from corag.config import load_config
from corag.settings import Config
from corag.workspace import Workspace

if TYPE_CHECKING:
    from corag.components import Components

NOISY = ("httpx", "alembic", "mlflow", "lightning", "lightning.pytorch", "filelock", "matplotlib", "urllib3")


def set_up_logging(debug: bool) -> None:
    """Log to stderr, one line an event; libraries speak only of errors unless `debug`."""
    level = logging.DEBUG if debug else logging.INFO
    logging.basicConfig(
        stream=sys.stderr, level=level, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", force=True
    )
    if debug:
        return
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)
    # Prefect logs a traceback for every error that ends a flow; the command says it in one line instead.
    for name in ("prefect", "prefect.flow_runs", "prefect.task_runs"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")


def set_up_prefect(workspace: Workspace, debug: bool = False) -> None:
    """Prepare the environment in which Prefect is first imported; what the user has set is kept.

    Without a server or profile of the user's own, Prefect's state stays inside the workspace.
    """
    own_profile = Path.home() / ".prefect" / "profiles.toml"
    if "PREFECT_HOME" not in os.environ and "PREFECT_API_URL" not in os.environ and not own_profile.exists():
        os.environ["PREFECT_HOME"] = str(workspace.prefect)
    # The embedded server needs longer than its default 20 s on a busy machine.
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "180")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "DEBUG" if debug else "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_LOGGING_LEVEL", "DEBUG" if debug else "CRITICAL")


def open_config(config_file: str | None, overrides: list[str], command: str) -> tuple[Config, Workspace]:
    """The configuration and workspace of a command; the effective configuration is kept beside the reports."""
    import yaml

    config = load_config(Path(config_file) if config_file else None, overrides)
    workspace = Workspace(Path(config.workspace).absolute())
    record = workspace.folder("reports", "config") / f"{command}.yaml"
    text = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    record.write_text(text, encoding="utf-8")
    return config, workspace


def open_components(config_file: str | None, overrides: list[str], command: str) -> "Components":
    """The parts of a flow's configuration; nothing is loaded yet."""
    from corag.components import Components

    return Components(*open_config(config_file, overrides, command))
