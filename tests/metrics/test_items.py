from __future__ import annotations

import pytest

from persona_lab.core.scores import Score, ScoreOutcome
from persona_lab.metrics.items import grouped, item_values, lost, why_empty


def row(
    question: str, value: float | None, outcome: ScoreOutcome = "ok", context: str = "bank"
) -> Score:
    return Score(question, question, "rate", "ana", value, outcome, "", {"context": context})


def test_repeats_are_averaged_and_a_row_without_a_value_counts_as_the_worse_outcome() -> None:
    rows = [row("a", 1.0), row("a", 0.0), row("a", None, "failed"), row("b", None, "unparsed")]
    left_out = item_values(rows, None, "context")
    assert (left_out.keys, list(left_out.values)) == ([("ana", "a")], [0.5])
    assert (list(left_out.clusters), list(left_out.crossed)) == (["ana"], ["bank"])
    # Worse outcome 1: a (1 + 0 + 1) / 3, b 1.
    assert list(item_values(rows, 1.0).values) == [2 / 3, 1.0]
    assert len(item_values([], 1.0).values) == 0


def test_an_item_lies_in_one_of_the_second_clusters() -> None:
    rows = [row("a", 1.0), row("a", 0.0, context="court")]
    with pytest.raises(ValueError, match="has two values of 'context': 'bank' and 'court'"):
        item_values(rows, None, "context")
    assert list(item_values(rows, None).values) == [0.5]


def test_rows_are_grouped_by_metric_and_facets() -> None:
    a, b, c = row("a", 1.0), row("b", 1.0, context="court"), row("c", 1.0)
    assert grouped([a, b, c], {"rate"}, ["context"]) == {
        ("rate", "bank"): [a, c],
        ("rate", "court"): [b],
    }
    assert grouped([a], {"other"}, ["context"]) == {}


def test_rows_without_a_value_are_counted_by_outcome() -> None:
    rows = [row("a", None, "failed"), row("b", None, "failed"), row("c", None, "truncated")]
    assert lost([*rows, row("d", 1.0)]) == {"unparsed": 0, "truncated": 1, "failed": 2}
    assert (why_empty(rows), why_empty([])) == ("n/a: no item has a value", "n/a: no items")
