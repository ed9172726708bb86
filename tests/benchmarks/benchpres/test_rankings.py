"""How selective retrieval is, by the number of statements and by itself; all numbers by hand.

The data are described in showing.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from persona_lab.benchmarks.benchpres.rankings import shared
from persona_lab.benchmarks.benchpres.records import CATEGORIES
from tests.benchmarks.benchpres.data import write_data
from tests.benchmarks.benchpres.scripted import (
    estimate,
    experiment,
    outcomes_of,
    summary_of,
    value,
)
from tests.benchmarks.benchpres.showing import (
    BY_HAND,
    ENCODERS,
    FILTERED,
    RAG,
    applies_all_shown,
    asked_of,
    found,
    of,
    table,
    text_of,
)


@pytest.mark.parametrize(("k", "share"), [(1, 3), (2, 6), (3, 9), (5, 15)])
def test_similarity_by_category_is_not_selective(data: Path, k: int, share: int) -> None:
    """k = 1 finds role: g = 0 where n + m is even, 1 where it is odd, so 3 of 15 each. k = 2 finds
    style too, whose labels are the opposite: 6 of 15 each. Tone is as role: k = 3 gives 9 of both.
    A target that applies what it is shown has exactly these rates."""
    summary = found(data, applies_all_shown(), RAG, f"retrieval.k={k}")
    for metric in ("retrieved g=0", "retrieved g=1", "MR", "AAR"):
        assert value(summary, metric) == pytest.approx(share / 15)
        assert estimate(summary, metric).n == 15
    assert value(summary, "retrieved gap") == value(summary, "AAR-MR") == 0.0
    assert not of(summary.scores, "passed g=0")


def test_shares_and_chance_by_number(data: Path) -> None:
    """Of 8 statements; the ranking is the same whatever is shown of it, so it stands once. Of the
    six messages three have 2 preferences to apply and three have 3: one statement holds at most
    6 of the 15, two hold 12, five hold all."""
    summary = found(data, applies_all_shown(), "memories.shown=[whole,rag,filter]",
                    "defence=[default,prompt]", "retrieval.k=2")  # fmt: skip
    assert table(summary) == [
        ("by_hand", 1, 0.2, 0.2, 0.0, 0.125, 0.125),
        ("by_hand", 2, 0.4, 0.4, 0.0, 0.25, 0.25),
        ("by_hand", 5, 1.0, 1.0, 0.0, 0.625, 0.625),
        ("oracle", 1, 0.0, 0.4, 0.4, None, None),
        ("oracle", 2, 0.0, 0.8, 0.8, None, None),
        ("oracle", 5, 0.0, 1.0, 1.0, None, None),
    ]


def test_what_is_not_in_memory_is_not_retrieved_by_chance_either(data: Path) -> None:
    """The sanitiser leaves 6 of 8 statements for institutions (contexts 1 and 3) and no markers and
    nickname: by chance k = 2 finds 2/6 of what is left there and 2/8 in context 2.

    p01 is even in contexts 1 and 3: of g = 0 there role and tone are left, of g = 1 style; in
    context 2 two have g = 0 and three g = 1. p02 is odd there: style of g = 0, role and tone of
    g = 1; in context 2 three and two. g = 0: (4/3 + 2/4 + 2/3 + 3/4) / 15 = 3.25 / 15, and g = 1
    likewise 2/3 + 3/4 + 4/3 + 2/4. The oracle has one of g = 1 in each of the six memories with
    k = 1; with two 1 + 2 + 1 of p01's and 2 + 2 + 2 of p02's, and a third in p01's context 2. Its
    ranking stands beside the others', which are named by what they share."""
    summary = found(data, applies_all_shown(), RAG, "defence=[default,prompt,sanitiser]",
                    "retrieval.k=2")  # fmt: skip
    rows = table(summary)
    assert [r for r in rows if r[0] == "by_hand, sanitiser" and r[1] == 2] == [
        ("by_hand, sanitiser", 2, 6 / 15, 6 / 15, 0.0, *[pytest.approx(3.25 / 15)] * 2)
    ]
    assert [r[1:4] for r in rows if r[0] == "oracle, sanitiser"] == [
        (1, 0.0, pytest.approx(6 / 15)),
        (2, 0.0, pytest.approx(10 / 15)),
        (5, 0.0, pytest.approx(11 / 15)),
    ]
    assert [r[1:4] for r in rows if r[0] == "oracle, not sanitiser"] == [
        (1, 0.0, 0.4), (2, 0.0, 0.8), (5, 0.0, 1.0)
    ]  # fmt: skip
    gone = [s for s in summary.scores if s.reason == "not_in_memory"]
    # 2 users x 2 institutions x 2 categories.
    assert (len(gone), {s.value for s in gone}) == (8, {0.0})


def test_chance_is_of_each_label_by_itself(tmp_path: Path) -> None:
    """One user and one institution: markers and nickname, of which the sanitiser has none, have
    g = 1 and the rest g = 0. Of g = 0 a statement of 6 is drawn by chance, of g = 1 none is; an
    oracle has nothing to show."""
    labels = {("p01", "context_1", c): str(int(c in ("markers", "nickname"))) for c in CATEGORIES}
    folder = write_data(tmp_path / "data", profiles=1, contexts=1, labels=labels)
    summary = found(folder, applies_all_shown(), RAG, "defence=[sanitiser]", "retrieval.k=1")
    assert table(summary) == [
        ("by_hand", 1, round(1 / 3, 12), 0.0, round(-1 / 3, 12), round(1 / 6, 12), 0.0),
        ("by_hand", 5, 1.0, 0.0, -1.0, round(5 / 6, 12), 0.0),
        ("oracle", 1, 0.0, 0.0, 0.0, None, None),
    ]


@pytest.mark.parametrize("retriever", ["bm25", "random", "by_hand"])
def test_the_table_does_not_depend_on_the_order_of_replies(data: Path, retriever: str) -> None:
    """At k = 2 bm25 ranks alike in memories of 5 and of 10 preferences where those have no word in
    common with the request: what chance finds differs, so they stand apart."""
    made = experiment(
        data, RAG, f"retrieval.retriever={retriever}", "retrieval.k=2",
        "memories.density=[1,5,10]", "memories.order=[end,scattered]", "samples=2",
        "model.temperature=1.0", "defence=[sanitiser,prompt,default]",
    )  # fmt: skip
    outcomes = outcomes_of(made, data.parent / retriever, applies_all_shown(), ENCODERS)
    summary, reversed_ = made.summarize(outcomes), made.summarize(outcomes[::-1])
    assert table(summary) == table(reversed_)
    assert [t for t in summary.tables if t.title.startswith("Retrieval by itself")] == [
        t for t in reversed_.tables if t.title.startswith("Retrieval by itself")
    ]
    assert summary.notes == reversed_.notes
    assert len({row[:2] for row in table(summary)}) == len(table(summary))
    # By chance 2 of 4, of 8 and of 13 statements; the sanitiser's are others.
    own = [row for row in table(summary) if row[0].split(", ")[0] == retriever]
    chance = {row[0]: row[5] for row in own if row[1] == 2}
    for density, size in (("1", 4), ("5", 8), ("10", 13)):
        of_it = {n: c for n, c in chance.items() if {density, "not sanitiser"} <= {*n.split(", ")}}
        assert set(of_it.values()) == {round(2 / size, 12)}


def test_a_group_is_named_by_what_all_of_it_shares() -> None:
    everyone = [(d, n) for d in ("default", "prompt", "few_shot", "sanitiser") for n in ("5", "10")]
    assert shared([("sanitiser", "5")], everyone) == ["sanitiser", "5"]
    assert shared([("sanitiser", "5"), ("sanitiser", "10")], everyone) == ["sanitiser"]
    usual = [("default", "5"), ("prompt", "5"), ("few_shot", "5")]
    assert shared(usual, everyone) == ["not sanitiser", "5"]
    assert shared(usual[:2], everyone) == ["default/prompt", "5"]
    assert shared(everyone, everyone) == []


def test_random_finds_what_chance_finds(tmp_path: Path) -> None:
    """k = 4 of 8, 20 users x 5 contexts x 5 preferences: 500 draws of 1/2, of which the mean is
    within 0.1 but for one case in 100,000 (4.4 standard deviations of at most 0.0224)."""
    folder = write_data(tmp_path / "data", profiles=20, contexts=5)
    summary = summary_of(folder, applies_all_shown(), RAG, "retrieval.retriever=random",
                         "retrieval.k=4")  # fmt: skip
    scores = of(summary.scores, "retrieved g=0") + of(summary.scores, "retrieved g=1")
    assert len(scores) == 500
    assert sum(s.value or 0.0 for s in scores) / 500 == pytest.approx(0.5, abs=0.1)
    # Each memory and context has an order of its own.
    drawn = {(s.cluster, s.facets["context"]): set[str]() for s in scores}
    for s in scores:
        drawn[s.cluster, s.facets["context"]].add(f"{s.facets['category']}={s.facets['rank']}")
    assert len({frozenset(ranks) for ranks in drawn.values()}) > 90


def test_the_oracle_shows_what_is_to_be_applied_and_nothing_else(data: Path) -> None:
    oracle = ("retrieval.retriever=oracle", "memories.shown=[whole,rag]")
    made = experiment(data, *oracle)
    assert made.encoders == {}
    outcomes = outcomes_of(made, data.parent / "oracle", applies_all_shown())
    summary = made.summarize(outcomes)
    for metric, rate in (("MR", 0.0), ("AAR", 1.0), ("AAR-MR", 1.0)):
        assert value(summary, metric, shown="rag_oracle") == rate
        assert value(summary, metric, shown="whole") == (0.0 if metric == "AAR-MR" else 1.0)
    assert value(summary, "retrieved gap", shown="rag_oracle") == 1.0
    for case, [request] in asked_of(outcomes).items():
        if "/rag_oracle/" in case:
            assert "I have" not in text_of(request)


def test_a_lone_preference_and_distractors_are_retrieved_like_any(data: Path) -> None:
    """At density 1 each stands with 3 facts, and k = 1 finds it. At 10 the five of the other user
    are as similar: of each pair one, whichever stands first, is among k = 5."""
    alone = found(data, applies_all_shown(), RAG, "memories.density=[1]", "retrieval.k=1")
    assert value(alone, "retrieved g=0") == value(alone, "MR") == 1.0
    # Each is the only one of its own memory: one statement is enough for an oracle.
    assert table(alone)[-1] == ("oracle", 1, 0.0, 1.0, 1.0, None, None)
    many = found(data, applies_all_shown(), RAG, "memories.density=[10]", "retrieval.k=10")
    assert value(many, "retrieved g=0") == value(many, "retrieved g=1") == 1.0
    few = found(data, applies_all_shown(), RAG, "memories.density=[10]", "retrieval.k=2")
    # Both role statements, own and borrowed, come first: as k = 1 without distractors.
    assert value(few, "retrieved g=0") == pytest.approx(3 / 15)


def test_excluded_instances_are_in_no_share(tmp_path: Path) -> None:
    """Without p01/context_1/role, one of the 15 of g = 0: role is found there, 2 of 14 are left."""
    folder = write_data(tmp_path / "data", labels={("p01", "context_1", "role"): "excluded"})
    summary = found(folder, applies_all_shown(), RAG, "retrieval.k=1")
    assert value(summary, "retrieved g=0") == pytest.approx(2 / 14)
    assert value(summary, "retrieved g=1") == pytest.approx(3 / 15)


def test_scores_of_retrieval_are_a_case_of_their_own(data: Path) -> None:
    """What a model was asked is counted without them, and a failed encoder fails the case."""
    summary = found(data, applies_all_shown(), RAG)
    cases = {s.case for s in of(summary.scores, "retrieved g=0")}
    assert cases == {f"{c}/selection" for c in {s.case for s in of(summary.scores, "MR")}}


class Refusing:
    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.zeros((len(texts), 2), dtype=np.float32)


@pytest.mark.parametrize(
    ("shown", "metrics"),
    [
        (RAG, ("MR", "AAR", "retrieved g=0", "retrieved g=1")),
        (
            FILTERED,
            ("MR", "AAR", "retrieved g=0", "retrieved g=1", "passed g=0", "passed g=1"),
        ),
    ],
)
def test_what_cannot_be_retrieved_fails_its_cases_and_every_step(
    data: Path, shown: str, metrics: tuple[str, ...]
) -> None:
    """Each counts the worse outcome: all of g = 0 is let through, nothing of g = 1."""
    made = experiment(data, *BY_HAND, shown)
    outcomes = outcomes_of(made, data.parent, applies_all_shown(), {"by_hand": Refusing()})
    summary = made.summarize(outcomes)
    assert {s.outcome for s in summary.scores} == {"failed"}
    assert {"zero or not finite" in s.reason for s in summary.scores} == {True}
    assert {s.metric for s in summary.scores} == set(metrics)
    assert len(summary.scores) == 15 * len(metrics)
    for metric in metrics:
        made_of = estimate(summary, metric)
        assert (made_of.n, made_of.failed) == (15, 15)
        assert made_of.value == (1.0 if metric in ("MR", "retrieved g=0", "passed g=0") else 0.0)
    assert value(summary, "retrieved gap") == -1.0
    assert {s.facets["position"] for s in of(summary.scores, "MR")} == {"0"}


def test_a_case_that_failed_counts_in_retrieval_too(data: Path) -> None:
    """k = 2, and p01's context 2 (odd: style and markers have g = 0, role, tone and nickname g = 1)
    fails. Else 6 of 15 of either label are found, of which style and role there: 5 + 2 lost of
    g = 0, and 5 of g = 1. The memory is known, and with it chance and the oracle."""
    made = experiment(data, *BY_HAND, RAG, "retrieval.k=2")
    outcomes = outcomes_of(made, data.parent, applies_all_shown(), ENCODERS)
    lost = [
        replace(o, result=None, error="ValueError: no vectors")
        if (o.case.profile.id, o.case.context.id) == ("p01", "context_2")
        else o
        for o in outcomes
    ]
    summary = made.summarize(lost)
    assert value(summary, "retrieved g=0") == pytest.approx(7 / 15)
    assert value(summary, "retrieved g=1") == pytest.approx(5 / 15)
    assert value(summary, "retrieved g=0", "scored") == pytest.approx(5 / 13)
    assert (estimate(summary, "retrieved g=0").failed, estimate(summary, "MR").failed) == (2, 2)
    assert (estimate(summary, "retrieved g=1").failed, estimate(summary, "AAR").failed) == (3, 3)
    assert [row for row in table(summary) if row[1] == 2] == [
        ("by_hand", 2, round(7 / 15, 12), round(5 / 15, 12), round(2 / -15, 12), 0.25, 0.25),
        ("oracle", 2, 0.0, 0.8, 0.8, None, None),
    ]
    assert [s.outcome for s in of(summary.scores, "MR")].count("failed") == 2
    assert not any("with a filter" in note or "nothing was left" in note for note in summary.notes)


def test_one_of_several_samples_that_failed_hides_no_ranking(data: Path) -> None:
    made = experiment(data, *BY_HAND, RAG, "samples=2", "model.temperature=1.0", "retrieval.k=2")
    outcomes = outcomes_of(made, data.parent, applies_all_shown(), ENCODERS)
    whole = table(made.summarize(outcomes))
    for sample in (1, 2):
        lost = [
            replace(o, result=None, error="gone") if o.case.sample == sample else o
            for o in outcomes
        ]
        assert table(made.summarize(lost)) == whole


def test_bm25_finds_only_what_shares_a_word(data: Path) -> None:
    """`Purpose 1` shares its number with what p01 likes but for the nickname, `Purpose 2` with p02:
    two of the six, in which role and tone have g = 0, style and markers g = 1. Whatever k, the four
    other blocks are empty."""
    summary = summary_of(data, applies_all_shown(), RAG, "retrieval.retriever=bm25")
    for metric in ("retrieved g=0", "retrieved g=1", "MR", "AAR"):
        assert value(summary, metric) == pytest.approx(4 / 15)
    assert any("In 4 of 6 cases nothing was left" in note for note in summary.notes)
    ranks = [s.facets["rank"] for s in summary.scores if s.metric.startswith("retrieved")]
    assert ranks.count("") == 30 - 8
