"""Rates on evaluators whose rule is known; values worked out by hand beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from persona_lab.benchmarks.persevalbench.records import FAMILIES, FAMILY_OF, SUBTYPES
from persona_lab.core.prompt import Reply, Request
from tests.benchmarks.persevalbench.scripted import (
    PAPER,
    VERDICT,
    always,
    estimate,
    rows,
    says,
    shown,
    summary_of,
    value,
    write_composition,
)

ONE_EACH = dict.fromkeys(SUBTYPES, 1)


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_composition(tmp_path_factory.mktemp("paper"), PAPER)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Nine scenarios, one of each subtype."""
    return write_composition(tmp_path / "small", ONE_EACH)


def perfect(request: Request) -> Reply:
    """Knows what it is shown; Under for misapplied errors, which either verdict recognises."""
    text = shown(request)
    if "right response of" in text:
        return says(VERDICT["right"])
    family = next(FAMILY_OF[s] for s in SUBTYPES if f", {s}" in text)
    return says(VERDICT["over" if family == "over" else "under"])


def test_constant_over_on_the_papers_composition(paper: Path, tmp_path: Path) -> None:
    """Table 3: 0 / 100 / 100, 67.7 in all, FAR 100. 151 + 122 of 403 are recognised."""
    found = summary_of(paper, tmp_path, always(VERDICT["over"]))
    for who in ("qwen3_32b", "constant_over"):
        families = [
            value(found, "ERR", evaluator=who, family=f) for f in ("under", "over", "misapplied")
        ]
        assert families == [0.0, 1.0, 1.0]
        assert value(found, "ERR", evaluator=who) == pytest.approx(273 / 403)
        assert round(100 * (value(found, "ERR", evaluator=who) or 0), 1) == 67.7
        assert value(found, "FAR", evaluator=who) == 1.0
        assert value(found, "pair_accuracy", evaluator=who) == 0.0
    counts = [estimate(found, "ERR", family=f).n for f in FAMILIES]
    assert counts == [130, 151, 122]
    # 130 under errors are all judged Over; of 44 underweighting ones none Under.
    assert value(found, "under_judged_over", "scored") == 1.0
    assert value(found, "underweighting_over", "scored") == 1.0
    # A rate whose items are each their own cluster gets Wilson's interval: scipy 1.17's
    # binomtest(273, 403).proportion_ci(method="wilson") gives 0.63025 and 0.72124.
    err = estimate(found, "ERR")
    assert (err.low, err.high) == pytest.approx((0.63025, 0.72124), abs=2e-4)


def test_constant_under_on_the_papers_composition(paper: Path, tmp_path: Path) -> None:
    """130 + 122 of 403 are recognised (either direction serves misapplied errors): 62.5 %."""
    found = summary_of(paper, tmp_path, always(VERDICT["under"]))
    assert value(found, "ERR") == pytest.approx(252 / 403)
    assert value(found, "ERR", family="over") == 0.0
    assert value(found, "ERR", family="misapplied") == 1.0
    assert value(found, "FAR") == 1.0
    assert value(found, "over_judged_under", "scored") == 1.0


def test_a_perfect_evaluator(paper: Path, tmp_path: Path) -> None:
    found = summary_of(paper, tmp_path, perfect)
    assert (value(found, "ERR"), value(found, "FAR")) == (1.0, 0.0)
    assert value(found, "pair_accuracy") == 1.0
    assert value(found, "under_judged_over", "scored") == 0.0
    assert value(found, "underweighting_under", "scored") == 1.0
    assert {k: e.value for k, e in found.card.items()} == {
        "ERR": 1.0,
        "FAR": 0.0,
        "pair_accuracy": 1.0,
    }


def test_rates_by_hand(small: Path, tmp_path: Path) -> None:
    """Nine scenarios, one a subtype. The evaluator flags two Right responses (s000 complete
    omission, s004 scope leakage), says Over to all under errors, Under to irrelevant use, and is
    right about the others.

    ERR: under 0/3, over 2/3, misapplied 3/3: 5/9. FAR 2/9. Pairs: s004 is recognised but its Right
    one is flagged: 4/9. Under judged Over 3/3, over judged Under 1/3.
    """

    def reply(request: Request) -> Reply:
        text = shown(request)
        if "right response of s000" in text or "right response of s004" in text:
            return says(VERDICT["over"])
        if any(
            f", {s}" in text
            for s in ("complete_omission", "partial_omission", "explicit_violation")
        ):
            return says(VERDICT["over"])
        if ", irrelevant_use" in text:
            return says(VERDICT["under"])
        return perfect(request)

    found = summary_of(small, tmp_path, reply)
    assert value(found, "ERR") == pytest.approx(5 / 9)
    assert value(found, "ERR", family="over") == pytest.approx(2 / 3)
    assert value(found, "FAR") == pytest.approx(2 / 9)
    assert value(found, "pair_accuracy") == pytest.approx(4 / 9)
    assert value(found, "under_judged_over", "scored") == 1.0
    assert value(found, "over_judged_under", "scored") == pytest.approx(1 / 3)
    [right] = rows(found, "Verdicts given", response="right response")
    assert (right["Right"], right["Under"], right["Over"], right["none"]) == (7, 0, 2, 0)
    # All nine relations are hard_vs_soft, so `graded` is the mean of one family: strength.
    assert value(found, "ERR", applicability_type="graded") == pytest.approx(5 / 9)


def test_lost_verdicts_count_as_the_worse_outcome(small: Path, tmp_path: Path) -> None:
    """No verdict on s000's Right response (no label) and on s001's error (cut off): FAR 1/9, ERR
    8/9, pairs 7/9; scored 0/8, 8/8, 7/7."""

    def reply(request: Request) -> Reply:
        text = shown(request)
        if "right response of s000" in text:
            return Reply('{"verdict": "fine", "confidence": 1.0}')
        if "error response of s001" in text:
            return Reply('{"verdict": "UND', "length", "truncated", "truncated")
        return perfect(request)

    found = summary_of(small, tmp_path, reply)
    assert value(found, "FAR") == pytest.approx(1 / 9)
    assert value(found, "ERR") == pytest.approx(8 / 9)
    assert value(found, "pair_accuracy") == pytest.approx(7 / 9)
    scored = [value(found, m, "scored") for m in ("FAR", "ERR", "pair_accuracy")]
    assert scored == [0.0, 1.0, 1.0]
    assert (estimate(found, "FAR").unparsed, estimate(found, "ERR").truncated) == (1, 1)
    assert len(found.notes) == 1


def test_group_means_are_unweighted(tmp_path: Path) -> None:
    """Two scope scenarios (one recognised) and one holder scenario (recognised): pooled 2/3, but
    the mean of the families' 1/2 and 1 is 3/4."""
    import json

    folder = write_composition(tmp_path / "data", {"irrelevant_use": 3})
    path = folder / "scenarios.json"
    content = json.loads(path.read_text())
    for scenario, relation in zip(content, ("scope", "scope", "object"), strict=True):
        scenario["state_relation"] = f"same_attribute_different_{relation}"
    path.write_text(json.dumps(content))

    def reply(request: Request) -> Reply:
        missed = "error response of s001" in shown(request)
        return says(VERDICT["right"]) if missed else perfect(request)

    found = summary_of(folder, tmp_path / "runs", reply)
    assert value(found, "ERR") == pytest.approx(2 / 3)
    assert value(found, "ERR", applicability_type="categorical") == pytest.approx(3 / 4)


def test_pointwise_and_pairwise(small: Path, tmp_path: Path) -> None:
    """Ratings: Right 4, error 2 for under errors, 4 (a tie) for over ones, 5 for misapplied ones:
    separated 3/9, tied 3/9. Choices: always the first one shown: half right, never consistent, but
    for complete omission, where Right is chosen in both orders: (1 + 8 / 2) / 9 and 1/9."""

    def reply(request: Request) -> Reply:
        text = shown(request)
        if "Response A:" in text:
            first_is_right = text.index("right response of") < text.index("error response of")
            chosen = "A" if first_is_right or ", complete_omission" not in text else "B"
            return Reply(f'{{"answer": "{chosen}"}}')
        if "right response of" in text:
            return Reply('{"score": 4}')
        family = next(FAMILY_OF[s] for s in SUBTYPES if f", {s}" in text)
        score = {"under": 2, "over": 4, "misapplied": 5}[family]
        return Reply(f'{{"score": {score}}}')

    found = summary_of(small, tmp_path, reply, "protocols=[pointwise,pairwise]")
    direct = {"formulation": "direct"}
    made = {e.metric: e.value for e in found.estimates if e.facets.items() >= direct.items()
            and e.basis == "all" and "family" not in e.facets}  # fmt: skip
    assert made["separated"] == pytest.approx(3 / 9)
    assert made["pairwise_accuracy"] == pytest.approx(5 / 9)
    assert made["order_consistency"] == pytest.approx(1 / 9)
    [tied] = [e.value for e in found.estimates if e.metric == "tied" and "family" not in e.facets]
    assert tied == pytest.approx(3 / 9)
    assert found.card == {}


def test_a_panel_is_scored_like_one(small: Path, tmp_path: Path) -> None:
    """Members: perfect, constant Over, constant Right. Majority: on Right responses Right; on over
    errors Over (2 of 3); on the others Under, Over and Right, no majority. ERR 3/9, FAR 0, scored
    ERR 3/3. Unanimity never flags: ERR 0, FAR 0."""
    replies = {"target": perfect, "judge": always(VERDICT["over"]), "second_judge": always("RIGHT")}
    found = summary_of(
        small, tmp_path, replies, "judge=qwen3_8b", "second_judge=gpt_oss_20b", "panel=true"
    )
    assert value(found, "ERR", evaluator="panel_majority") == pytest.approx(3 / 9)
    assert value(found, "ERR", "scored", evaluator="panel_majority") == 1.0
    assert estimate(found, "ERR", evaluator="panel_majority").unparsed == 6
    assert value(found, "FAR", evaluator="panel_majority") == 0.0
    assert value(found, "ERR", evaluator="panel_unanimity") == 0.0
    assert value(found, "pair_accuracy", evaluator="panel_majority") == pytest.approx(3 / 9)
    assert value(found, "FAR", evaluator="qwen3_8b") == 1.0


def test_samples_give_an_operating_curve(small: Path, tmp_path: Path) -> None:
    """Two samples: the first flags every error rightly and every Right response as Over, the second
    is perfect. Errors are flagged in full, Right ones by half: at full agreement ERR 1 and FAR 0,
    so the area is 1."""

    def reply(request: Request) -> Reply:
        if request.sample == 0 and "right response of" in shown(request):
            return says(VERDICT["over"])
        return perfect(request)

    found = summary_of(small, tmp_path, reply, "samples=2", "model.temperature=0.7")
    [area] = rows(found, "Operating curve: area", condition="qwen3_32b, full, end_to_end")
    assert (area["area"], area["errors"], area["rights"], area["lost"]) == (1.0, 9, 9, 0)
    points = rows(found, "Operating curve: points", condition="qwen3_32b, full, end_to_end")
    assert {(p["FAR"], p["ERR"]) for p in points} >= {(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)}
    # Averaged over samples first: every Right response is flagged once in two.
    assert value(found, "FAR") == pytest.approx(0.5)
    [stated] = rows(found, "Stated confidence")
    # 36 statements of confidence 0.9, of which 27 are right.
    assert (stated["stated"], stated["right"]) == (36, 0.75)
    assert stated["ECE"] == pytest.approx(0.15)
    # 27 x 0.1^2 + 9 x 0.9^2 = 7.56, over 36.
    assert stated["Brier"] == pytest.approx(0.21)


def test_verdict_probabilities_give_a_curve_from_one_sample(small: Path, tmp_path: Path) -> None:
    """The probability of an error verdict is 0.8 for errors, in the right direction, and 0.3 for
    Right responses: separated, area 1."""
    from math import log

    def reply(request: Request) -> Reply:
        right = "right response of" in shown(request)
        named = perfect(request).text.split('"')[3]
        main, rest = ("RIGHT", "OVER") if right else (named, "RIGHT")
        p = 0.7 if right else 0.8
        text = f'{{"verdict": "{main}"}}'
        tokens = (
            (('{"verdict": "', 0.0),),
            ((main, log(p)), (rest, log(1 - p))),
            (('"}', 0.0),),
        )
        return Reply(text, logprobs=tokens)

    found = summary_of(small, tmp_path, reply, "logprobs=5")
    [area] = rows(found, "Operating curve: area")
    assert area["area"] == 1.0
    points = rows(found, "Operating curve: points")
    assert [p["threshold"] for p in points][1:3] == pytest.approx([0.8, 0.3])
