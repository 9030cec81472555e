"""Promote: judge a version on the held-out trials and move the alias; and move it back."""

from prefect import flow

from flows.runtime import open_components
from flows.train import load_training_input
from training.registry import connect, promote, rollback


@flow(name="promote")
def promote_flow(config_file: str | None, overrides: list[str], version: int | None = None, force: bool = False) -> str:
    """Gate a version (the newest by default) against the champion on the same trials; the decision and why."""
    parts = open_components(config_file, overrides, "promote")
    outcome = promote(
        connect(parts.config.tracking),
        load_training_input(parts),
        parts.config.promotion,
        model_name=parts.config.agent.model_name,
        fixed=parts.fixed,
        seed=parts.config.seed,
        version=version,
        force=force,
    )
    return f"promote: {outcome}"


@flow(name="rollback")
def rollback_flow(config_file: str | None, overrides: list[str]) -> str:
    """Let champion and previous champion change places."""
    parts = open_components(config_file, overrides, "rollback")
    version = rollback(
        connect(parts.config.tracking),
        parts.config.promotion,
        model_name=parts.config.agent.model_name,
        fixed=parts.fixed,
    )
    return f"rollback: version {version} is {parts.config.promotion.alias} again"
