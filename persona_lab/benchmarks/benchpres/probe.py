"""Does the model know the norm? The question that the paper leaves open: whether a misapplication
is a wrong judgement, or a right one that the model does not act on.

The model is asked directly, with the same memories in sight, whether a preference suits a context.
Each answer is held to the gold label (`probe_accuracy`) and to what the model's message did. Two
pairs of metrics split the rates, over the instances that were asked about and have a score:

    misapplied_unknowing + misapplied_knowing (+ misapplied_unclear) = MR of these instances
    missed_unknowing + missed_knowing (+ missed_unclear) = 1 - AAR of these instances

`knew_when_misapplied` is the share of misapplied_knowing in the first two. A preference that the
prompt does not show is not asked about: what the sanitiser leaves out, what was not retrieved or
did not pass the filter. Where that is most of them, these are not the rates of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from persona_lab.benchmarks.benchpres.cases import CONDITIONS
from persona_lab.benchmarks.benchpres.prompts import PROBE, filled
from persona_lab.benchmarks.benchpres.records import Context, Instance
from persona_lab.benchmarks.benchpres.scoring import MR, RATES, Problem, Row, lost_outcome
from persona_lab.core.prompt import Prompt, Reply
from persona_lab.core.scores import Score
from persona_lab.metrics.estimate import ACCURACY, Metric
from persona_lab.parsing.truth import parse_truth

ACCURATE = "probe_accuracy"
KNEW = "knew_when_misapplied"
_SHOWN = CONDITIONS.index("shown")
_SHARE = Metric(0.0, 1.0, share=True)
_PARTS = ("unknowing", "knowing", "unclear")
METRICS = {
    ACCURATE: ACCURACY,
    **{f"{kind}_{part}": _SHARE for kind in ("misapplied", "missed") for part in _PARTS},
    KNEW: _SHARE,
}


def probe_prompt(memories: str, context: Context, instance: Instance) -> Prompt:
    """Asks whether the message should reflect one preference."""
    statement = instance.preference.statement
    return Prompt.ask(filled(PROBE, memories, context, preference=statement))


def probe_scores(
    row: Row, instances: Sequence[Instance], answers: Sequence[Reply], scores: Sequence[Score]
) -> list[Score]:
    """What the probe adds to the scores of one message.

    Args:
        answers: to the probe, one per instance. scores: of the same instances, by `judged_score`.
    """
    by_question = {score.question: score for score in scores if score.metric in RATES}
    return [
        made
        for instance, answer in zip(instances, answers, strict=True)
        for made in _of_one(row, instance, answer, by_question[instance.id])
    ]


def unasked(scores: Sequence[Score]) -> list[str]:
    """A note of how many preferences with a label it was not asked about; samples count once."""
    rated, asked = (
        {(*(s.facets[n] for n in CONDITIONS), s.question) for s in scores if s.metric in metrics}
        for metrics in (RATES, (ACCURATE,))
    )
    lacking: Counter[str] = Counter(key[_SHOWN] for key in rated - asked)
    of = Counter(key[_SHOWN] for key in rated)
    parts = [f"{lacking[shown]} of {of[shown]} ({shown})" for shown in sorted(lacking)]
    return [
        f"The probe was not asked about {', '.join(parts)} preferences with a label: no prompt "
        "showed them, or none was made. Its metrics are over the others and sum to the rates of "
        "those only."
    ] * bool(parts)


def _of_one(row: Row, instance: Instance, answer: Reply, score: Score) -> list[Score]:
    category, label = instance.preference.category, instance.label

    def made(metric: str, value: float | None, problem: Problem) -> Score:
        outcome, reason = problem if value is None else ("ok", "")
        return row.score(
            instance.id, metric, value, outcome, reason, category=category, label=label
        )

    knows, unclear = _knows(instance, answer)
    scores = [made(ACCURATE, knows, unclear)]
    kind = "misapplied" if score.metric == MR else "missed"
    wrong = score.value == (1.0 if kind == "misapplied" else 0.0)
    found = {None: "unclear", 0.0: "unknowing", 1.0: "knowing"}[knows]
    for part in _PARTS:
        value = None if score.value is None else float(wrong and part == found)
        scores.append(made(f"{kind}_{part}", value, (score.outcome, score.reason)))
    if wrong and kind == "misapplied":
        # A row a misapplication, not an instance: the share is over misapplications.
        one = made(KNEW, knows, unclear)
        scores.append(replace(one, question=f"{one.question}/{one.facets['sample']}"))
    return scores


def _knows(instance: Instance, answer: Reply) -> tuple[float | None, Problem]:
    """Whether the probe's answer is the gold label, or why it has none."""
    if answer.outcome != "ok":
        return None, (answer.outcome, answer.reason)
    parsed = parse_truth(answer.text)
    if parsed.value is None:
        return None, (lost_outcome(parsed.reason), parsed.reason)
    return float(parsed.value == (instance.label == "1")), ("ok", "")
