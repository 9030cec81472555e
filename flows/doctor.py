"""Doctor: every part of the configuration examined, tracking included."""

from collections.abc import Callable

from corag.doctor import examine_parts
from corag.errors import ConfigError
from flows.runtime import open_components
from training.registry import connect, load_champion


def examine(config_file: str | None, overrides: list[str], tell: Callable[[str], None]) -> None:
    """Tell one line a check.

    Raises:
        ConfigError: some check found a problem; its line has been told.
    """
    parts = open_components(config_file, overrides, "doctor")
    config = parts.config

    def tracking() -> str:
        return f"{connect(config.tracking).uri}"

    def champion() -> str:
        agent = load_champion(
            connect(config.tracking), config.agent.model_name, config.promotion.alias, fixed=parts.fixed
        )
        return "none yet: answers take the fixed configuration" if agent is None else f"version {agent.version}"

    findings = examine_parts(parts, [("tracking", tracking), ("champion", champion)])
    for finding in findings:
        tell(str(finding))
    bad = [finding.check for finding in findings if not finding.passed]
    if bad:
        raise ConfigError(
            f"{len(bad)} of {len(findings)} checks found a problem ({', '.join(bad)}); the remedy of each is told above"
        )
