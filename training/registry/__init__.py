"""The MLflow edge: the only package that imports MLflow. Runs, registered versions, and the aliases that move.

Aliases: `challenger` the newest registered, `champion` the one that answers, `previous` the champion before it.
"""

from training.registry.connection import Tracking, connect
from training.registry.evaluation_runs import log_evaluation_run
from training.registry.night_runs import log_night_run
from training.registry.promotion import Promotion, promote, rollback
from training.registry.runs import log_training_run
from training.registry.sweep_runs import log_sweep_run
from training.registry.versions import Registered, load_agent, load_champion, newest_version, register

__all__ = [
    "Promotion",
    "Registered",
    "Tracking",
    "connect",
    "load_agent",
    "load_champion",
    "log_evaluation_run",
    "log_night_run",
    "log_sweep_run",
    "log_training_run",
    "newest_version",
    "promote",
    "register",
    "rollback",
]
