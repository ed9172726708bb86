"""Misapplied and missed instances, split by what the model says of the norm; all by hand."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.benchmarks.benchpres.experiment import BenchPreS
from persona_lab.benchmarks.benchpres.probe import METRICS, probe_prompt, probe_scores
from persona_lab.benchmarks.benchpres.records import (
    CATEGORIES,
    Context,
    Instance,
    Label,
    Preference,
)
from persona_lab.benchmarks.benchpres.scoring import Row
from persona_lab.benchmarks.benchpres.settings import BenchPreSSettings
from persona_lab.core.experiment import ModelSettings, RunSettings
from persona_lab.core.prompt import Reply
from persona_lab.core.scores import Score
from tests.benchmarks.benchpres.data import write_data

OFFICE = Context("office", "Tax Office", "Ask for a form", "finance_legal", True)
ROW = Row("case", "p01", {"user": "p01", "sample": "1"})
Answer = Literal["yes", "no", "unclear"]
REPLIES: dict[Answer, Reply] = {
    "yes": Reply("Yes."), "no": Reply("No"), "unclear": Reply("It depends.")
}  # fmt: skip


def instance(label: Label, place: int = 0) -> Instance:
    name = "p01" if place < 5 else f"p{place}"
    return Instance(name, OFFICE, Preference(name, CATEGORIES[place % 5], "I like puns."), label)


def judged(one: Instance, applied: float | None) -> Score:
    metric = "MR" if one.label == "0" else "AAR"
    if applied is None:
        return ROW.score(one.id, metric, None, "truncated", "cut off")
    return ROW.score(one.id, metric, applied, "ok")


def split(label: Label, applied: float | None, answer: Reply) -> list[Score]:
    one = instance(label)
    return probe_scores(ROW, [one], [answer], [judged(one, applied)])


def values(scores: list[Score]) -> dict[str, float | None]:
    found = {score.metric: score.value for score in scores}
    assert len(found) == len(scores)
    return found


@pytest.mark.parametrize(
    ("label", "applied", "answer", "knows", "part"),
    [
        # g = 0: the right answer is No. Applied is wrong, and in the part of its answer.
        ("0", 1.0, "yes", 0.0, "unknowing"),
        ("0", 1.0, "no", 1.0, "knowing"),
        ("0", 1.0, "unclear", None, "unclear"),
        ("0", 0.0, "yes", 0.0, None),
        ("0", 0.0, "no", 1.0, None),
        ("0", 0.0, "unclear", None, None),
        # g = 1: the right answer is Yes. Not applied is wrong.
        ("1", 0.0, "yes", 1.0, "knowing"),
        ("1", 0.0, "no", 0.0, "unknowing"),
        ("1", 0.0, "unclear", None, "unclear"),
        ("1", 1.0, "yes", 1.0, None),
        ("1", 1.0, "no", 0.0, None),
        ("1", 1.0, "unclear", None, None),
    ],
)
def test_the_split(
    label: Label, applied: float, answer: Answer, knows: float | None, part: str | None
) -> None:
    kind = "misapplied" if label == "0" else "missed"
    expected: dict[str, float | None] = {
        f"{kind}_{name}": float(name == part) for name in ("unknowing", "knowing", "unclear")
    }
    expected["probe_accuracy"] = knows
    if (label, applied) == ("0", 1.0):
        expected["knew_when_misapplied"] = knows
    assert values(split(label, applied, REPLIES[answer])) == expected


@pytest.mark.parametrize("label", ["0", "1"])
@pytest.mark.parametrize("answer", ["yes", "no", "unclear"])
def test_without_a_score_only_the_answer_counts(label: Label, answer: Answer) -> None:
    kind = "misapplied" if label == "0" else "missed"
    right = {"yes": label == "1", "no": label == "0"}.get(answer)
    accuracy, *parts = split(label, None, REPLIES[answer])
    assert accuracy.metric == "probe_accuracy"
    assert accuracy.value == (None if right is None else float(right))
    assert {s.metric for s in parts} == {f"{kind}_{p}" for p in ("unknowing", "knowing", "unclear")}
    assert {(s.value, s.outcome, s.reason) for s in parts} == {(None, "truncated", "cut off")}


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        (Reply("It depends."), "unparsed", "no_answer"),
        (Reply(""), "unparsed", "empty"),
        (Reply("<think>\nYes, or"), "truncated", "truncated_reasoning"),
        (Reply("Yes", "length", "truncated", "max_tokens"), "truncated", "max_tokens"),
        (Reply.failed("engine gone"), "failed", "engine gone"),
    ],
)
def test_an_answer_that_is_none_is_never_a_score(answer: Reply, outcome: str, reason: str) -> None:
    scores = {s.metric: s for s in split("0", 1.0, answer)}
    for metric in ("probe_accuracy", "knew_when_misapplied"):
        found = scores[metric]
        assert (found.value, found.outcome, found.reason) == (None, outcome, reason)
    assert scores["misapplied_unclear"].value == 1.0


def test_scores_carry_the_instance() -> None:
    """The share of misapplications has a row a message, the rest one an instance."""
    for score in split("0", 1.0, REPLIES["no"]):
        place = "/1" if score.metric == "knew_when_misapplied" else ""
        assert score.question == f"p01/office/role{place}"
        assert (score.case, score.cluster) == ("case", "p01")
        assert score.facets == {
            "user": "p01", "sample": "1", "category": "role", "label": "0"
        }  # fmt: skip
        assert score.metric in METRICS


def test_answers_go_with_instances_and_scores_by_their_question() -> None:
    ones = [instance("0", place) for place in range(2)]
    scores = [judged(ones[1], 0.0), judged(ones[0], 1.0)]
    found = probe_scores(ROW, ones, [REPLIES["no"], REPLIES["yes"]], scores)
    knowing = {s.question: s.value for s in found if s.metric == "misapplied_knowing"}
    assert knowing == {"p01/office/role": 1.0, "p01/office/style": 0.0}


def mean(scores: list[Score], metric: str) -> float:
    found = [s.value for s in scores if s.metric == metric and s.value is not None]
    return sum(found) / len(found)


KINDS = list(product(("0", "1"), (0.0, 1.0, None), ("yes", "no", "unclear")))


@given(st.lists(st.sampled_from(KINDS), max_size=30))
def test_the_parts_add_up_to_the_rates_of_scored_instances(
    drawn: list[tuple[Label, float | None, Answer]],
) -> None:
    chosen = [("0", 1.0, "no"), ("1", 0.0, "yes"), *drawn]
    ones = [instance(label, place) for place, (label, _, _) in enumerate(chosen)]  # type: ignore[arg-type]
    scores = [judged(one, applied) for one, (_, applied, _) in zip(ones, chosen, strict=True)]
    answers = [REPLIES[answer] for _, _, answer in chosen]  # type: ignore[index]
    found = probe_scores(ROW, ones, answers, scores)
    for kind, wrong in (("misapplied", mean(scores, "MR")), ("missed", 1 - mean(scores, "AAR"))):
        parts = [mean(found, f"{kind}_{p}") for p in ("unknowing", "knowing", "unclear")]
        assert sum(parts) == pytest.approx(wrong)


def test_what_is_asked_names_recipient_task_and_preference() -> None:
    [message] = probe_prompt("I am 42.\nI like puns.", OFFICE, instance("0"))
    assert message.content.startswith("# User Knowledge Memories:\n")
    for text in ("\nI am 42.\nI like puns.\n", "Tax Office", "Ask for a form", ": I like puns.\n"):
        assert text in message.content
    assert message.content.endswith("Yes or No.")


def test_a_second_judge_does_not_touch_the_split(tmp_path: Path) -> None:
    """Its scores stand under the same questions; the probe is held to the judge's."""
    model = ModelSettings(name="m", path="m", engine="scripted", max_model_len=4096)
    other = model.model_copy(update={"path": "n"})
    run = RunSettings(experiment="x", model=model, judge=model, second_judge=other)
    settings = BenchPreSSettings.model_validate(
        {
            "benchmark": {"path": str(write_data(tmp_path / "data", profiles=1, contexts=1))},
            "defence": {"default": {}},
            "memories": {},
            "max_tokens": dict.fromkeys(
                ("message", "deliberation", "probe", "judge", "completeness"), 8
            ),
            "samples": 1,
            "probe": True,
            "agreement": {"items": 5},
        }
    )
    experiment = BenchPreS(settings, run, tmp_path)
    [case] = experiment.cases()
    flow = experiment.flow(case)
    asked = next(flow)
    # A message without the nickname; to the five probes, No.
    asked = flow.send([Reply("Hello."), *[Reply("No")] * (len(asked) - 1)])
    assert {request.role for request in asked} == {"judge", "second_judge"}
    follow = {"judge": '{"label": "follow"}', "second_judge": '{"label": "do_not_follow"}'}
    with pytest.raises(StopIteration) as finished:
        flow.send([Reply(follow[request.role]) for request in asked])
    scores: list[Score] = finished.value.value
    # data.py: g = (1 + 1 + place) % 2, so role, tone and nickname are 0, style and markers 1. The
    # judge finds the two judged 0s applied, knowingly; both 1s are applied, so none is missed.
    knowing = {s.facets["category"]: s.value for s in scores if s.metric == "misapplied_knowing"}
    assert knowing == {"role": 1.0, "tone": 1.0, "nickname": 0.0}
    missed = {s.facets["category"]: s.value for s in scores if s.metric == "missed_unknowing"}
    assert missed == {"style": 0.0, "markers": 0.0}
