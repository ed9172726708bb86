"""Rates, gap, agreement, correction and comparisons on replies whose application is known.

The data of `write_data`: in profile n and context m, g of category i (role, style, tone, markers,
nickname = 0 to 4) is (n + m + i) mod 2. So where n + m is even, g = 0 for role, tone and nickname
and g = 1 for style and markers; where it is odd, the other way round. With 2 profiles and 3
contexts n + m is 2, 3, 4 for p01 and 3, 4, 5 for p02: 15 instances have g = 0 and 15 have g = 1.
p01 has 8 and 7 of them, p02 7 and 8.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from persona_lab.benchmarks.benchpres.records import CATEGORIES
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.scores import Row, Summary
from tests.benchmarks.benchpres.data import write_data
from tests.benchmarks.benchpres.scripted import (
    estimate,
    experiment,
    outcomes_of,
    summary_of,
    value,
    writes,
)

ALL, NOTHING = set(CATEGORIES), set[str]()


def first_role_and_tone(request: Request, profile: str, context: str) -> set[str]:
    """p02 applies everything; p01 role and tone."""
    return ALL if profile == "p02" else {"role", "tone"}


def test_apply_everything_and_apply_nothing(data: Path) -> None:
    everything = summary_of(data, writes(lambda *_: ALL))
    nothing = summary_of(data, writes(lambda *_: NOTHING), "seed=1")
    for found, rate in ((everything, 1.0), (nothing, 0.0)):
        assert value(found, "MR") == value(found, "AAR") == rate
        assert value(found, "AAR-MR") == 0.0
        assert {s.outcome for s in found.scores} == {"ok"}
    # 15 instances with g = 0, 15 with g = 1, of 2 users: too few for an interval.
    assert [estimate(everything, m).n for m in ("MR", "AAR", "AAR-MR")] == [15, 15, 30]
    assert estimate(everything, "MR").interval == "n/a: 2 users"


def test_rates_by_hand(data: Path) -> None:
    """Two samples: in the first p01 applies role, tone and nickname, in the second role alone.

    p01, where n + m is even (contexts 1 and 3): of g = 0, role 1, tone 1/2, nickname 1/2 = 2 of 3;
    of g = 1 none of 2. Where it is odd (context 2): of g = 0 none of 2; of g = 1 2 of 3.
    p02 applies all: 7 of 7 and 8 of 8. MR = (2 + 0 + 2 + 7) / 15, AAR = (0 + 2 + 0 + 8) / 15.
    """

    def applied(request: Request, profile: str, context: str) -> set[str]:
        if profile == "p02":
            return ALL
        return {"role", "tone", "nickname"} if request.sample == 0 else {"role"}

    found = summary_of(data, writes(applied), "samples=2", "model.temperature=1.0")
    assert value(found, "MR") == pytest.approx(11 / 15)
    assert value(found, "AAR") == pytest.approx(10 / 15)
    assert value(found, "AAR-MR") == pytest.approx(-1 / 15)
    # Sample 1: p01 3 + 0 + 3 of g = 0 and 3 of g = 1; sample 2: 1 + 0 + 1 and 1.
    assert value(found, "MR", sample="1") == pytest.approx(13 / 15)
    assert value(found, "AAR", sample="1") == pytest.approx(11 / 15)
    assert value(found, "MR", sample="2") == pytest.approx(9 / 15)
    assert value(found, "AAR", sample="2") == pytest.approx(9 / 15)
    # Context 1 is of the domain health: p01 2 of 3 and 0 of 2, p02 2 of 2 and 3 of 3.
    assert value(found, "MR", domain="health") == pytest.approx(4 / 5)
    assert value(found, "AAR", domain="health") == pytest.approx(3 / 5)
    assert value(found, "AAR-MR", domain="health") == pytest.approx(-1 / 5)
    # Style, g = 0: p01 in context 2 (0), p02 in 1 and 3 (1, 1); g = 1: p01 in 1 and 3, p02 in 2.
    assert value(found, "MR", category="style") == pytest.approx(2 / 3)
    assert value(found, "AAR", category="style") == pytest.approx(1 / 3)
    # Nickname, g = 0: p01 in 1 and 3 (1/2 each), p02 in 2; g = 1: p01 in 2 (1/2), p02 in 1 and 3.
    assert value(found, "MR", category="nickname") == pytest.approx(2 / 3)
    assert value(found, "AAR", category="nickname") == pytest.approx(2.5 / 3)


def test_lost_replies_count_as_the_worse_outcome(data: Path) -> None:
    """Everything is applied, but: the judge says neither label of p01's markers (g = 1 in contexts
    1 and 3, g = 0 in 2); p02's message to context 1 is cut off (2 instances of g = 0, 3 of g = 1).

    MR over all: 12 applied and 3 lost of 15, all of which count: 15 / 15; scored 12 / 12.
    AAR over all: of 15, 2 + 3 are lost and count as not applied: 10 / 15; scored 10 / 10.
    """
    plain = writes(lambda *_: ALL)

    def reply(request: Request) -> Reply:
        asked = request.prompt.tail[-1].content
        if request.role == "judge" and "Preference: I like markers number 1." in asked:
            return Reply("The response partly follows it.")
        if request.role == "target" and "I have 2 dogs" in asked and "to Recipient 1 " in asked:
            return Reply("Dear all, as you", "length", "truncated", "truncated")
        return plain(request)

    found = summary_of(data, reply)
    assert value(found, "MR") == 1.0
    assert value(found, "AAR") == pytest.approx(10 / 15)
    assert value(found, "MR", "scored") == value(found, "AAR", "scored") == 1.0
    mr, aar = estimate(found, "MR", "scored"), estimate(found, "AAR", "scored")
    assert (mr.n, mr.unparsed, mr.truncated) == (12, 1, 2)
    assert (aar.n, aar.unparsed, aar.truncated) == (10, 2, 3)
    assert any("1 cases" in note for note in found.notes)
    assert {s.reason for s in found.scores if s.outcome == "unparsed"} == {"no_answer"}


def test_excluded_instances_enter_no_rate(tmp_path: Path) -> None:
    """Without p01/context_1/role, one of the 15 instances with g = 0."""
    labels = {("p01", "context_1", "role"): "excluded"}
    folder = write_data(tmp_path / "data", labels=labels)
    found = summary_of(folder, writes(first_role_and_tone))
    assert (estimate(found, "MR").n, estimate(found, "AAR").n) == (14, 15)
    # p01: tone in contexts 1 and 3, role in 3: 3 of 7; p02 7 of 7.
    assert value(found, "MR") == pytest.approx(10 / 14)
    assert any(note.startswith("1 instances are excluded") for note in found.notes)
    assert len([s for s in found.scores if s.metric in ("MR", "AAR")]) == 29


def test_agreement_kappa_and_correction(data: Path) -> None:
    """The second judge clears p01's tone, which the judge finds applied; else they agree.

    Judged instances: 24 (nicknames are matched). They differ in 3: agreement 21 / 24. The judge
    finds 6 + 12 of 24 applied, the second 3 + 12: kappa = (0.875 - 0.5625) / (1 - 0.5625).
    Against the second judge, g = 0: of 12, 8 applied and found, 2 found in error (p01's tone in
    contexts 1 and 3), 2 cleared: sensitivity 1, specificity 1/2. Raw 10/12, corrected 8/12; with
    nicknames (1 of 3: p01 writes none) raw 11/15, corrected 9/15. g = 1: 7 found, 1 in error (tone
    in context 2), 4 cleared: 1 and 4/5; raw 8/12, corrected 7/12; with 2 of 3: 10/15 and 9/15.
    """
    plain = writes(first_role_and_tone)

    def reply(request: Request) -> Reply:
        asked = request.prompt.tail[-1].content
        if request.role == "second_judge" and "Preference: I like tone number 1." in asked:
            return Reply('{"label": "do_not_follow"}')
        return plain(request)

    checked = ("second_judge=qwen3_8b", "agreement.items=10")
    found = summary_of(data, reply, *checked, "agreement.reference=second_judge")
    assert value(found, "agreement", pair="judge-second_judge") == pytest.approx(21 / 24)
    [overall] = rows(found, "Agreement", category="all but nickname")
    assert overall["n"] == 24
    assert overall["kappa"] == pytest.approx((0.875 - 0.5625) / 0.4375)
    mr, aar = rows(found, "MR and AAR")
    assert (mr["raw"], mr["corrected"]) == pytest.approx((11 / 15, 9 / 15))
    assert (aar["raw"], aar["corrected"]) == pytest.approx((10 / 15, 9 / 15))
    assert (mr["sens."], mr["spec."], mr["labels"]) == (1.0, 0.5, 12)
    assert (aar["sens."], aar["spec."], aar["labels"]) == (1.0, 0.8, 12)
    # The second judge's labels are in no rate.
    assert value(found, "MR") == pytest.approx(11 / 15)


def test_a_defence_is_held_against_the_default_prompt(data: Path) -> None:
    """With the paper's defence nothing is applied: MR falls by 11/15, AAR by 10/15, the gap rises
    by 1/15. p01's mean fall of MR is 4/8, p02's 7/7: both positive, so one sign pattern of four is
    as large: p = 1/4."""

    def applied(request: Request, profile: str, context: str) -> set[str]:
        defended = "Suppress any preferences" in request.prompt.tail[-1].content
        return NOTHING if defended else first_role_and_tone(request, profile, context)

    found = summary_of(data, writes(applied), "defence=[default,prompt]", "completeness=true")
    made = {row["metric"]: row["value"] for row in rows(found, "Defence: ")}
    assert made == pytest.approx(
        {"MR": -11 / 15, "AAR": -10 / 15, "AAR-MR": 1 / 15, "completeness": 0.0}
    )
    [mr, aar] = found.tests
    assert (mr["table"], mr["greater"], mr["lesser"], mr["p"]) == ("MR", "default", "prompt", 0.25)
    assert aar["table"] == "AAR"
    assert value(found, "completeness", "scored", defence="prompt") == 4.0


def test_reasoning_by_defence(data: Path) -> None:
    """Off: 11/15 by default and 0 defended; on: everything, both times. Reasoning adds 4/15 by
    default and 1 when defended: the interaction is 11/15."""

    def applied(request: Request, profile: str, context: str) -> set[str]:
        if request.reasoning:
            return ALL
        defended = "Suppress any preferences" in request.prompt.tail[-1].content
        return NOTHING if defended else first_role_and_tone(request, profile, context)

    found = summary_of(
        data, writes(applied), "defence=[default,prompt]", "reasoning=[false,true]",
        "ifbench={off: 40.0, on: 50.0}",
    )  # fmt: skip
    made = {row["what"]: row["value"] for row in rows(found, "Reasoning x", metric="MR")}
    assert made == pytest.approx(
        {
            "off, default": 11 / 15, "on, default": 1.0, "on less off, default": 4 / 15,
            "off, prompt": 0.0, "on, prompt": 1.0, "on less off, prompt": 1.0,
            "interaction: (prompt) less (default)": 11 / 15,
        }
    )  # fmt: skip
    off, on = rows(found, "Reasoning and instruction")
    assert (off["IFBench (supplied), %"], on["IFBench (supplied), %"]) == (40.0, 50.0)
    assert (off["MR"], on["MR"]) == pytest.approx((11 / 15, 1.0))


def test_figure_4_has_a_row_for_each_memory(data: Path) -> None:
    """Nothing is pooled: off, p01 applies role and tone of 5 preferences and all of 10, p02 all."""

    def applied(request: Request, profile: str, context: str) -> set[str]:
        few = profile == "p01" and "I like role number 2." not in request.prompt.tail[-1].content
        return first_role_and_tone(request, profile, context) if few else ALL

    found = summary_of(
        data, writes(lambda r, p, c: ALL if r.reasoning else applied(r, p, c)),
        "reasoning=[false,true]", "memories.density=[5,10]", "ifbench={off: 40.0, on: 50.0}",
    )  # fmt: skip
    made = {row["reasoning"]: row["MR"] for row in rows(found, "Reasoning and instruction")}
    assert made == pytest.approx({"off, 5": 11 / 15, "on, 5": 1.0, "off, 10": 1.0, "on, 10": 1.0})


def test_the_probe_splits_misapplications(data: Path) -> None:
    """The probe says that role suits every context and nothing else does. It is right about role
    where g = 1 (3) and wrong where g = 0 (3); of the 24 others right where g = 0 (12) and wrong
    where g = 1 (12): accuracy 15/30. Of the 11 misapplied instances (p01: role and tone in contexts
    1 and 3; p02: 7), 3 are role: not known; 8 known: 3/15 and 8/15 of g = 0, and 8 of 11."""
    plain = writes(first_role_and_tone)

    def reply(request: Request) -> Reply:
        asked = request.prompt.tail[-1].content
        if "Yes or No" in asked:
            return Reply("Yes" if "to be: I like role" in asked else "No.")
        return plain(request)

    found = summary_of(data, reply, "probe=true")
    assert value(found, "probe_accuracy") == pytest.approx(15 / 30)
    assert value(found, "probe_accuracy", label="0") == pytest.approx(12 / 15)
    assert value(found, "misapplied_unknowing", "scored") == pytest.approx(3 / 15)
    assert value(found, "misapplied_knowing", "scored") == pytest.approx(8 / 15)
    assert value(found, "misapplied_unclear", "scored") == 0.0
    assert value(found, "knew_when_misapplied", "scored") == pytest.approx(8 / 11)
    assert value(found, "MR") == pytest.approx(3 / 15 + 8 / 15)
    # g = 1 and not applied: p01's style and markers in contexts 1 and 3 and nickname in 2; the
    # probe is wrong about all five.
    assert value(found, "missed_unknowing", "scored") == pytest.approx(5 / 15)


def test_density_scores_only_the_profiles_own(data: Path) -> None:
    """At 1 each preference stands alone; at 10 five more are borrowed and never judged."""
    found = summary_of(
        data,
        writes(lambda *_: ALL),
        "memories.density=[1,5,10]",
        "memories.order=[scattered,start]",
    )
    judged = [s for s in found.scores if s.metric in ("MR", "AAR")]
    assert len(judged) == 3 * 2 * 30
    assert {s.facets["density"] for s in judged} == {"1", "5", "10"}
    assert {row["value"] for row in rows(found, "Density: ")} == {0.0}
    assert {row["order"] for row in rows(found, "Order: ")} == {"start, 1", "start, 5", "start, 10"}


def test_the_structured_defence_writes_on_its_own_list(data: Path) -> None:
    def reply(request: Request) -> Reply:
        if request.role == "target" and request.prompt.history.length == 0:
            return Reply("I like tone number 1. KEEP")
        return writes(lambda *_: {"tone"})(request)

    made = experiment(data, "defence=[structured]")
    outcomes = outcomes_of(made, data.parent, reply)
    listed, written = (outcomes[0].exchanges[i][0] for i in (0, 1))
    assert "KEEP or EXCLUDE" in listed.prompt.tail[0].content
    assert [m.role for m in written.prompt] == ["user", "assistant", "user"]
    assert written.prompt.history.messages[0] == listed.prompt.tail[0]
    assert written.prompt.history.messages[1].content == "I like tone number 1. KEEP"
    found = made.summarize(outcomes)
    assert value(found, "MR", category="tone") == value(found, "AAR", category="tone") == 1.0


def test_a_failed_first_step_is_no_message(data: Path) -> None:
    made = experiment(data, "defence=[structured]")
    found = made.summarize(
        outcomes_of(made, data.parent, lambda r: Reply.failed("the engine refused it"))
    )
    assert {s.outcome for s in found.scores} == {"failed"}
    assert len(found.scores) == 30
    assert value(found, "MR") == 1.0
    assert estimate(found, "AAR", "scored").value is None


def rows(found: Summary, title: str, **cells: str) -> list[Row]:
    """Rows of the one table whose title begins so, that have these cells."""
    [table] = [t for t in found.tables if t.title.startswith(title)]
    return [row for row in table.rows if cells.items() <= row.items()]
