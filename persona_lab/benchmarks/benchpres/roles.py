"""Which roles the flows of a recipe ask, and settings of them that would ask nothing new."""

from __future__ import annotations

from persona_lab.benchmarks.benchpres.settings import BenchPreSSettings
from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import ModelSettings, RunSettings

HARDWARE = ("tensor_parallel_size", "gpu_memory_utilization", "max_num_seqs", "engine")
"""Settings that change no reply."""


def roles_of(run: RunSettings, settings: BenchPreSSettings) -> tuple[str, ...]:
    """The roles that the flows ask, upstream first."""
    if run.judge is None:
        raise ConfigError("BenchPreS needs a judge: add judge=NAME of configs/model")
    roles = ["target"]
    if True in settings.reasoning and run.thinking is not None:
        roles.append("thinking")
        if settings.reasoning == [True]:
            roles.remove("target")
        _require_different(run.target, run.thinking, "thinking", "the target")
    second = _checked_by_a_second_judge(run, settings)
    return (*roles, "judge", *(["second_judge"] if second else []))


def _checked_by_a_second_judge(run: RunSettings, settings: BenchPreSSettings) -> bool:
    """Whether a second judge is asked; settings that would do nothing are refused."""
    agreement, second = settings.agreement, run.second_judge
    if agreement.items and second is None and agreement.human_labels is None:
        raise ConfigError(
            "agreement.items: who is the judge held to? Add second_judge=NAME of configs/model, "
            "or agreement.human_labels=FILE"
        )
    if second is not None and not agreement.items:
        raise ConfigError("second_judge is asked about agreement.items=N instances: set it to 10")
    if agreement.reference == "second_judge" and second is None:
        raise ConfigError("agreement.reference=second_judge: add second_judge=NAME")
    if agreement.reference == "people" and agreement.human_labels is None:
        raise ConfigError("agreement.reference=people: add agreement.human_labels=FILE")
    if second is not None and run.judge is not None:
        _require_different(run.judge, second, "second_judge", "the judge")
    return second is not None


def _require_different(one: ModelSettings, other: ModelSettings, role: str, whose: str) -> None:
    """Two roles that would give the same replies are not compared."""
    left_out = {"name", "pair", "max_model_len", *HARDWARE}
    if one.model_dump(exclude=left_out) == other.model_dump(exclude=left_out):
        raise ConfigError(
            f"{role}={other.name} is the same model as {whose}, asked in the same way: every reply "
            "would be the same; name another, or change its temperature"
        )
