"""What the filter lets through, and what is said of it and of retrieval; all numbers by hand.

The data are described in showing.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from persona_lab.benchmarks.benchpres.memory import NOTHING
from persona_lab.benchmarks.benchpres.records import CATEGORIES
from persona_lab.core.prompt import Reply, Request
from tests.benchmarks.benchpres.data import write_data
from tests.benchmarks.benchpres.scripted import (
    estimate,
    summary_of,
    value,
)
from tests.benchmarks.benchpres.showing import (
    FILTER,
    FILTERED,
    RAG,
    applies_all_shown,
    asked_of,
    found,
    preferences_in,
    run,
    text_of,
)


def test_a_filter_that_keeps_everything_asks_for_the_same_messages(data: Path) -> None:
    rag = asked_of(run(data, applies_all_shown(), RAG, "retrieval.k=4"))
    kept = asked_of(run(data, applies_all_shown(), FILTERED, "retrieval.k=4"))
    for case, (question, message) in kept.items():
        assert text_of(question).endswith(FILTER)
        assert [message.key] == [r.key for r in rag[case.replace("/filter_", "/rag_")]]


def test_a_filter_that_keeps_nothing_leaves_nothing_to_apply(data: Path) -> None:
    plain = applies_all_shown()

    def reply(request: Request) -> Reply:
        return Reply('{"suitable": []}') if text_of(request).endswith(FILTER) else plain(request)

    outcomes = run(data, reply, FILTERED)
    assert all(f"\n{NOTHING}\n" in text_of(asked[-1]) for asked in asked_of(outcomes).values())
    summary = found(data, reply, FILTERED, "seed=1")
    assert value(summary, "MR") == value(summary, "AAR") == 0.0
    assert value(summary, "passed g=0") == value(summary, "passed g=1") == 0.0
    assert value(summary, "retrieved g=0") == 1.0  # k = 10 of 8 statements
    assert any("In 6 of 6 cases nothing was left" in note for note in summary.notes)
    assert {s.outcome for s in summary.scores} == {"ok"}


def test_what_passes_is_a_share_of_what_was_retrieved(data: Path) -> None:
    """k = 3 finds role, style and tone. The filter drops role. Of g = 0 role and tone are retrieved
    where n + m is even and style where it is odd: 9, of which role is 3, so 6 of 9 pass; likewise
    of g = 1. Shown are 6 of 15 each."""
    summary = found(data, applies_all_shown(lambda shown: set(shown) - {"role"}), FILTERED,
                    "retrieval.k=3")  # fmt: skip
    for label, rate in (("0", "MR"), ("1", "AAR")):
        passed = estimate(summary, f"passed g={label}")
        assert (passed.value, passed.n) == (pytest.approx(6 / 9), 9)
        assert value(summary, f"retrieved g={label}") == pytest.approx(9 / 15)
        assert value(summary, rate) == pytest.approx(6 / 15)
    assert value(summary, "passed gap") == pytest.approx(0.0)
    assert value(summary, "passed g=0", category="role") == 0.0
    assert value(summary, "passed g=0", category="tone") == 1.0
    assert value(summary, "retrieved g=1", category="markers") == 0.0


def test_a_filter_that_knows_the_norm_is_selective(data: Path) -> None:
    """It keeps style and markers for p01 in contexts 1 and 3 and for p02 in 2, else the others:
    what has g = 1. Of everything retrieved it passes all of g = 1 and nothing of g = 0."""

    def reply(request: Request) -> Reply:
        asked = text_of(request)
        number, context = (
            int(re.findall(pattern, asked)[0])
            for pattern in (r"I have (\d) dogs", r"message to Recipient (\d)")
        )
        even = {"style", "markers"}
        kept = even if (number + context) % 2 == 0 else set(CATEGORIES) - even
        return applies_all_shown(lambda _: kept)(request)

    def either(request: Request) -> Reply:
        filtering = text_of(request).endswith(FILTER)
        return reply(request) if filtering else applies_all_shown()(request)

    summary = found(data, either, "memories.shown=[rag,filter]")
    assert value(summary, "passed gap", shown="filter_by_hand") == 1.0
    assert value(summary, "retrieved gap", shown="filter_by_hand") == 0.0
    assert value(summary, "MR", shown="filter_by_hand") == 0.0
    assert value(summary, "AAR", shown="filter_by_hand") == 1.0
    assert value(summary, "MR", shown="rag_by_hand") == 1.0


@pytest.mark.parametrize(
    ("lost", "outcome", "reason"),
    [
        (Reply("All of them suit."), "unparsed", "filter_unreadable: no_answer"),
        (Reply('{"suitable": [1, 9]}'), "unparsed", "filter_unreadable: out_of_range"),
        (Reply('{"suitable": [1, '), "truncated", "filter_unreadable: truncated"),
        (Reply("", reasoning="All."), "unparsed", "filter_unreadable: empty"),
        (
            Reply('{"suit', "length", "truncated", "budget"),
            "truncated",
            "filter_unreadable: budget",
        ),
        (Reply.failed("refused"), "failed", "filter_failed: refused"),
    ],
)
def test_an_unreadable_filter_reply_writes_no_message_and_is_counted(
    data: Path, lost: Reply, outcome: str, reason: str
) -> None:
    """In context 2 nothing is asked for after the filter: of p01 (odd) 2 instances have g = 0 and 3
    have g = 1, of p02 (even) 3 and 2. They count as misapplied and as not applied: MR 15/15 with
    everything shown applied elsewhere, AAR 10/15; scored only, 1 and 1. All 8 statements are
    retrieved, so 5 of 15 of each label have no answer of the filter."""
    plain = applies_all_shown()

    def reply(request: Request) -> Reply:
        asked = text_of(request)
        return lost if asked.endswith(FILTER) and "Recipient 2" in asked else plain(request)

    outcomes = run(data, reply, FILTERED, "completeness=true", "probe=true")
    for o in outcomes:
        assert (len(o.exchanges) == 1) == (o.case.context.id == "context_2")
    summary = found(data, reply, FILTERED, "completeness=true")
    assert value(summary, "MR") == 1.0
    assert value(summary, "AAR") == pytest.approx(10 / 15)
    assert value(summary, "MR", "scored") == value(summary, "AAR", "scored") == 1.0
    for metric in ("MR", "AAR", "passed g=0", "passed g=1"):
        assert getattr(estimate(summary, metric), outcome) == 5
        assert estimate(summary, metric, "scored").n == 10
    missing = [s for s in summary.scores if s.value is None]
    assert {(s.outcome, s.reason) for s in missing} == {(outcome, reason)}
    # MR, AAR and passed of 10 instances, and the completeness of 2 messages.
    assert len(missing) == 10 + 10 + 2
    # With RAG beside it the 6 cases with a filter are still 6.
    both = found(data, reply, "memories.shown=[rag,filter]")
    for notes in (summary.notes, both.notes):
        [said] = [n for n in notes if n.startswith("In 2 of 6 cases with a filter")]
        assert ("could not be asked" in said) == (outcome == "failed")
        assert ("its reply could not be read" in said) == (outcome != "failed")
        assert ("(2 cut off: see max_tokens.filter)" in said) == (outcome == "truncated")
    assert not any("nothing was left" in note for note in summary.notes)
    assert not any("reached its budget" in note for note in summary.notes)
    assert value(summary, "retrieved g=0") == 1.0


def test_the_probe_asks_about_what_is_shown(data: Path) -> None:
    outcomes = run(data, lambda r: Reply("No.") if "Yes or No" in text_of(r)
                   else applies_all_shown()(r), RAG, "retrieval.k=2", "probe=true")  # fmt: skip
    for outcome in outcomes:
        probes = [r for r, _ in outcome.exchanges if "Yes or No" in text_of(r)]
        assert [set(preferences_in(text_of(r))) for r in probes] == [{"role", "style"}] * 2
        made = [s for s in outcome.result or [] if s.metric == "probe_accuracy"]
        assert [s.facets["category"] for s in made] == ["role", "style"]


def test_showing_less_is_held_against_the_whole_memory(data: Path) -> None:
    """k = 2: MR and AAR fall from 1 to 6/15, by user too: p01 has 8 of g = 0, of which role in
    contexts 1 and 3 and style in 2 are found (3), p02 7 and likewise 3. Both users' differences are
    positive: p = 1/4."""
    summary = found(data, applies_all_shown(), "memories.shown=[whole,rag]", "retrieval.k=2")
    [made] = [t for t in summary.tables if t.title.startswith("Shown: difference from whole")]
    assert {row["metric"]: row["value"] for row in made.rows} == pytest.approx(
        {"MR": -9 / 15, "AAR": -9 / 15, "AAR-MR": 0.0}
    )
    assert [(t["table"], t["greater"], t["lesser"], t["p"]) for t in summary.tests] == [
        ("MR", "whole", "rag_by_hand_k_2", 0.25), ("AAR", "whole", "rag_by_hand_k_2", 0.25),
    ]  # fmt: skip


def test_the_numbers_of_a_step_are_said_once_for_each_way_of_showing(tmp_path: Path) -> None:
    """One user and one context: role, tone and nickname have g = 0, style and markers g = 1. k = 3
    finds role, style, tone: 1/2 of g = 1 and 2/3 of g = 0; the filter keeps style alone. Under the
    sanitiser they are found as well, being among the three that are left."""
    folder = write_data(tmp_path / "data", profiles=1, contexts=1)
    summary = found(folder, applies_all_shown(lambda _: {"style"}), "memories.shown=[rag,filter]",
                    "retrieval.k=3", "defence=[default,prompt,sanitiser]")  # fmt: skip
    step = "Of g=1 0.50 was retrieved, of g=0 0.67: gap -0.17 (n/a: 1 user)"
    blind = "A gap of 1 would be selective, of 0 blind."
    assert [note for note in summary.notes if note.endswith(blind)] == [
        f"rag_by_hand_k_3: {step}. {blind}",
        f"filter_by_hand_k_3: {step}. Of what was retrieved the filter passed 1.00 of g=1, "
        f"0.00 of g=0: gap 1.00 (n/a: 1 user). {blind}",
    ]


def test_conditions_with_other_numbers_are_named(data: Path) -> None:
    """Of 15, the sanitiser leaves 11 of g = 1 and 11 of g = 0; k = 8 finds all there is."""
    summary = found(data, applies_all_shown(), RAG, "retrieval.k=8",
                    "defence=[default,prompt,sanitiser]")  # fmt: skip
    [note] = [n for n in summary.notes if n.startswith("rag_by_hand_k_8: ")]
    assert "(not sanitiser) of g=1 1.00 was retrieved, of g=0 1.00: gap 0.00" in note
    assert "(sanitiser) of g=1 0.73 was retrieved, of g=0 0.73: gap 0.00" in note


def test_what_the_probe_was_not_asked_about_is_said(data: Path) -> None:
    """k = 2 shows role and style: 3 of 5 in each of 6 messages are not asked about, whatever the
    sample. The whole memory shows all."""

    def reply(request: Request) -> Reply:
        asked = text_of(request)
        return Reply("No.") if "Yes or No" in asked else applies_all_shown()(request)

    summary = found(data, reply, "memories.shown=[whole,rag]", "retrieval.k=2", "probe=true",
                    "samples=2", "model.temperature=1.0")  # fmt: skip
    [note] = [n for n in summary.notes if n.startswith("The probe was not asked")]
    assert "about 18 of 30 (rag_by_hand_k_2) preferences" in note
    whole = found(data, reply, "probe=true")
    assert not any("probe was not asked" in n for n in whole.notes)
    # The sanitiser takes 2 categories from 2 institutions of 2 users.
    cleared = found(data, reply, "probe=true", "defence=[sanitiser]")
    assert any("not asked about 8 of 30 (whole)" in n for n in cleared.notes)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ((), False),
        # As the CPU forms have it, for recipes that retrieve and for those that do not.
        (("retrieval.retriever=minilm", "retrieval.encoder=minilm"), False),
        (("retrieval.k=20",), True),
        (("retrieval.retriever=bm25",), True),
        (("retrieval.retriever=fusion",), True),
        (("retrieval.retriever=oracle",), True),
        (("retrieval.retriever=random", "retrieval.k=20", RAG), False),
    ],
)
def test_retrieval_that_is_not_used_is_said(
    data: Path, changed: tuple[str, ...], said: bool
) -> None:
    summary = summary_of(data, applies_all_shown(), *changed)
    assert ("retrieval.* is not used: memories.shown=[whole]." in summary.notes) == said
