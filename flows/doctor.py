"""Doctor: every part of the configuration examined, tracking included."""

from corag.doctor import examine_parts
from corag.errors import ConfigError
from flows.runtime import open_components
from training.registry import connect, load_champion


def examine(config_file: str | None, overrides: list[str]) -> str:
    """One line a check.

    Raises:
        ConfigError: some check found a problem; the lines are in the message.
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
    report = "\n".join(str(finding) for finding in findings)
    bad = [finding for finding in findings if not finding.passed]
    if bad:
        raise ConfigError(f"{report}\n{len(bad)} of {len(findings)} checks found a problem")
    return report
