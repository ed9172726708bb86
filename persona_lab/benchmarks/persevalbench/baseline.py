"""Built-in rows: constant evaluators, which show what a rate is worth (Table 3, section 5.1)."""

from __future__ import annotations

from collections.abc import Sequence

from persona_lab.benchmarks.persevalbench.cases import PersEvalCase
from persona_lab.benchmarks.persevalbench.context import RETRIEVED, ContextName
from persona_lab.benchmarks.persevalbench.records import SIDES, Scenario
from persona_lab.benchmarks.persevalbench.scoring import ERR, FAR, Row, verdict_value
from persona_lab.benchmarks.persevalbench.settings import Formulation
from persona_lab.benchmarks.persevalbench.verdicts import OVER
from persona_lab.core.scores import Score

CONSTANT_OVER = "constant_over"
Condition = tuple[ContextName, Formulation]


def constant_scores(
    scenarios: Sequence[Scenario],
    conditions: Sequence[Condition],
    name: str = CONSTANT_OVER,
    verdict: str = OVER,
    variant: str = "",
) -> list[Score]:
    """What an evaluator that always gives one verdict would score on these scenarios.

    Args:
        conditions: (context, formulation) of the run; the rows are the same under each.
        variant: of the context `retrieved`, where it is one.
    """
    made = []
    for scenario in scenarios:
        for side in SIDES:
            for context, formulation in conditions:
                case = PersEvalCase(
                    scenario, name, name, context, "verdict", formulation, side, 1,
                    variant if context == RETRIEVED else "",
                )  # fmt: skip
                metric = ERR if side == "error" else FAR
                value = verdict_value(case, verdict)
                made.append(Row(case).score(metric, value, "ok", more={"verdict": verdict}))
    return made
