"""The published figures are the paper's."""

from __future__ import annotations

from collections import Counter

import pytest

from persona_lab.benchmarks.persevalbench.baseline import CONSTANT_OVER
from persona_lab.benchmarks.persevalbench.experiment import PersEvalBench
from persona_lab.core.scores import Estimate
from persona_lab.reporting.published import PublishedRow, load_published, matching
from tests.conftest import ROOT

FILE = ROOT / "data" / "published" / PersEvalBench.published
COUNTS = {"Und.": 130, "Ov.": 151, "Mis.": 122, "All": 403, "FAR": 403}

# Typed from the paper, in percent.
SUBTYPES = ("CO", "PO", "EV", "Und.", "IU", "SL", "UI", "Ov.", "SS", "OD", "UW", "Mis.", "All")
TABLE_3 = {
    "Kimi K2.5": "63.6 48.7 44.7 52.3 78.1 70.5 90.7 79.5 61.3 42.6 93.2 65.6 66.5 24.6",
    "GLM-5": "50.0 61.5 53.2 54.6 76.6 63.6 86.0 75.5 74.2 27.7 86.4 60.7 64.3 12.2",
    "DeepSeek-V3.2": "65.9 51.3 57.4 58.5 62.5 50.0 86.0 65.6 77.4 25.5 93.2 63.1 62.5 10.9",
    "Qwen3-32B": "15.9 17.9 23.4 19.2 35.9 29.5 62.8 41.7 25.8 10.6 63.6 33.6 32.0 2.5",
}
BASELINE = {
    "Constant-Over": "0.0 0.0 0.0 0.0 100.0 100.0 100.0 100.0 100.0 100.0 100.0 100.0 67.7 100.0"
}
PEOPLE = ("Und.", "Ov.", "Mis.", "All", "FAR")
TABLE_4 = {
    "Kimi K2.5": "63.9 70.0 70.8 68.0 26.0",
    "GLM-5": "58.3 60.0 54.2 58.0 9.0",
    "DeepSeek-V3.2": "58.3 52.5 54.2 55.0 11.0",
    "Qwen3-32B": "25.0 32.5 29.2 29.0 1.0",
    "Annotator A": "94.4 62.5 83.3 79.0 4.0",
    "Annotator B": "94.4 50.0 79.2 73.0 7.0",
    "Human mean": "94.4 56.3 81.3 76.0 5.5",
}
CONTEXTS = ("Target Only", "Recent", "Full", "Full + Highl.", "Gold Ev. Only")
PARTS = ("Re-entry", "Cross-domain", "Out-of-scope", "Categorical", "Graded")
TABLE_5 = {
    "Kimi K2.5": "63.5 70.7 66.5 70.5 69.0 62.6 64.5 82.5 72.9 58.8",
    "GLM-5": "46.7 66.3 64.3 65.8 62.8 62.6 61.4 76.2 69.6 58.7",
    "DeepSeek-V3.2": "50.4 58.3 62.5 65.0 63.0 60.3 64.5 63.5 67.6 56.9",
    "Qwen3-32B": "28.0 34.0 32.0 35.2 33.0 31.6 31.9 33.3 33.3 31.2",
}
TABLE_5_FAR = {"Mean of five evaluators": "22.1 30.6 12.5 24.0"}
FORMULATIONS = ("E2E ERR", "E2E FAR", "EvF ERR", "EvF FAR", "ST ERR", "ST FAR")
TABLE_10 = {
    "Kimi K2.5": "66.5 24.6 71.0 29.0 60.3 16.1",
    "GLM-5": "64.3 12.2 65.8 16.1 62.5 10.9",
    "DeepSeek-V3.2": "62.5 10.9 65.0 16.4 54.8 11.4",
    "Qwen3-32B": "32.0 2.5 42.4 6.0 18.1 1.5",
}
TABLE_11 = {
    "Target Only": "46.0 20.8 38.8",
    "Full - relevant history": "60.8 67.6 19.6",
    "Full - unrelated context": "62.8 14.4 60.8",
    "Full": "64.4 12.4 64.0",
}
# n and confirmed.
TABLE_12 = {
    "Complete omission": (12, 83), "Partial omission": (12, 100), "Explicit violation": (12, 67),
    "Irrelevant use": (18, 89), "Scope leakage": (10, 70), "Unsupported inference": (12, 100),
    "Stale/superseded": (6, 100), "Over-dominance": (12, 92), "Underweighting": (6, 100),
    "Overall": (100, 88),
}  # fmt: skip
NAMES = {
    "CO": "complete_omission", "PO": "partial_omission", "EV": "explicit_violation",
    "IU": "irrelevant_use", "SL": "scope_leakage", "UI": "unsupported_inference",
    "SS": "stale_superseded", "OD": "over_dominance", "UW": "underweighting",
    "Und.": "under", "Ov.": "over", "Mis.": "misapplied",
}  # fmt: skip

REVISED = {
    "Complete omission": 2, "Explicit violation": 4, "Irrelevant use": 2, "Scope leakage": 3,
    "Over-dominance": 1, "Overall": 12,
}  # fmt: skip
"""Table 12, scenarios revised; none of the other subtypes."""


@pytest.fixture(scope="module")
def rows() -> list[PublishedRow]:
    return load_published(FILE)


def by_row(
    rows: list[PublishedRow], table: str, columns: tuple[str, ...]
) -> dict[str, list[float]]:
    """Row -> its numbers in the order of the columns."""
    found = {(r.row, r.column): r.value for r in rows if r.table == table}
    assert {column for _, column in found} == {*columns}
    names = dict.fromkeys(name for name, _ in found)
    return {name: [found[name, column] for column in columns] for name in names}


def typed(table: dict[str, str]) -> dict[str, list[float]]:
    return {
        name: [round(float(cell) / 100, 4) for cell in cells.split()]
        for name, cells in table.items()
    }


def test_every_table_is_whole(rows: list[PublishedRow]) -> None:
    # 4 models x 14; one baseline; 7 judges x 5; 4 x 10, and 4 means; 4 x 6; 4 x 3; 9 and all, x 2;
    # one share; 3 figures pointwise and 2 pairwise.
    sizes = {
        "Table 3": 56, "Table 3 (baseline)": 14, "Table 4": 35, "Table 5": 40, "Table 5 (FAR)": 4,
        "Table 10": 24, "Table 11": 12, "Table 12": 20, "Figure 3": 1, "Appendix C.5": 5,
    }  # fmt: skip
    assert Counter(row.table for row in rows) == sizes
    assert {(row.judge, row.variance) for row in rows} == {("", None)}


def test_table_3(rows: list[PublishedRow]) -> None:
    columns = (*SUBTYPES, "FAR")
    assert by_row(rows, "Table 3", columns) == typed(TABLE_3)
    assert by_row(rows, "Table 3 (baseline)", columns) == typed(BASELINE)


def test_conditions_of_table_3(rows: list[PublishedRow]) -> None:
    for row in rows:
        if not row.table.startswith("Table 3"):
            continue
        main = {"context": "full", "formulation": "end_to_end"}
        kind = "family" if row.column in ("Und.", "Ov.", "Mis.") else "subtype"
        part = {kind: NAMES[row.column]} if row.column in NAMES else {}
        metric = {"metric": "FAR" if row.column == "FAR" else "ERR"}
        baseline = row.table.endswith("(baseline)")
        named = {"evaluator": CONSTANT_OVER}
        assert row.facets == {**main, **part, **metric, **(named if baseline else {})}
        assert row.unlike == ({} if baseline else named)
        assert row.n == COUNTS.get(row.column)


def test_the_constant_baseline_follows_from_the_composition(rows: list[PublishedRow]) -> None:
    """Table 2: it recognises over and misapplied errors, (151 + 122) / 403 = 67.7 %."""
    [found] = [r for r in rows if r.table == "Table 3 (baseline)" and r.column == "All"]
    assert found.value == round((151 + 122) / 403, 3)


def test_families_of_table_3_make_up_all(rows: list[PublishedRow]) -> None:
    """All pools 130 + 151 + 122 responses; three rates of one decimal allow for 0.1 points."""
    for name, cells in by_row(rows, "Table 3", (*SUBTYPES, "FAR")).items():
        rates = dict(zip(SUBTYPES, cells, strict=False))
        pooled = sum(rates[f] * COUNTS[f] for f in ("Und.", "Ov.", "Mis.")) / 403
        assert pooled == pytest.approx(rates["All"], abs=1.01e-3), name


def test_table_4(rows: list[PublishedRow]) -> None:
    assert by_row(rows, "Table 4", PEOPLE) == typed(TABLE_4)
    sizes = {"Und.": 36, "Ov.": 40, "Mis.": 24, "All": 100, "FAR": 100}
    for row in rows:
        if row.table == "Table 4":
            assert (row.n, row.facets["check"]) == (sizes[row.column], "study_3")
            assert row.facets["metric"] == ("FAR" if row.column == "FAR" else "ERR")


def test_table_5(rows: list[PublishedRow]) -> None:
    assert by_row(rows, "Table 5", (*CONTEXTS, *PARTS)) == typed(TABLE_5)
    # The mean FAR of Full is not printed.
    augmented = tuple(c for c in CONTEXTS if c != "Full")
    assert by_row(rows, "Table 5 (FAR)", augmented) == typed(TABLE_5_FAR)


def test_conditions_of_table_5(rows: list[PublishedRow]) -> None:
    conditions = {
        "Target Only": {"context": "target_only"}, "Recent": {"context": "recent"},
        "Full": {"context": "full"}, "Full + Highl.": {"context": "full_highlights"},
        "Gold Ev. Only": {"context": "gold_only"},
        "Re-entry": {"context": "full", "relation": "re_entry"},
        "Cross-domain": {"context": "full", "relation": "cross_domain"},
        "Out-of-scope": {"context": "full", "relation": "out_of_scope"},
        "Categorical": {"context": "full", "applicability_type": "categorical"},
        "Graded": {"context": "full", "applicability_type": "graded"},
    }  # fmt: skip
    sizes = {"Re-entry": 174, "Cross-domain": 166, "Out-of-scope": 63}
    for row in rows:
        if row.table.startswith("Table 5"):
            metric = "FAR" if row.table.endswith("(FAR)") else "ERR"
            rest = {"formulation": "end_to_end", "metric": metric}
            assert row.facets == {**conditions[row.column], **rest}
            assert row.n == sizes.get(row.column)


def test_table_10(rows: list[PublishedRow]) -> None:
    assert by_row(rows, "Table 10", FORMULATIONS) == typed(TABLE_10)
    names = {"E2E": "end_to_end", "EvF": "evidence_first", "ST": "state_table"}
    for row in rows:
        if row.table == "Table 10":
            name, metric = row.column.split()
            condition = {"context": "full", "formulation": names[name], "metric": metric}
            assert row.facets == condition


def test_table_11(rows: list[PublishedRow]) -> None:
    assert by_row(rows, "Table 11", ("ERR", "FAR", "Pair acc.")) == typed(TABLE_11)
    contexts = {
        "Target Only": "target_only", "Full - relevant history": "full_minus_relevant",
        "Full - unrelated context": "full_minus_unrelated", "Full": "full",
    }  # fmt: skip
    for row in rows:
        if row.table == "Table 11":
            metric = "pair_accuracy" if row.column == "Pair acc." else row.column
            assert row.facets == {
                "context": contexts[row.row], "formulation": "end_to_end", "metric": metric,
            }  # fmt: skip
            assert row.n == 50


def test_table_12(rows: list[PublishedRow]) -> None:
    columns = by_row(rows, "Table 12", ("Confirmed", "Revised"))
    found = {r.row: (r.n, *columns[r.row]) for r in rows if r.table == "Table 12"}
    assert found == {
        name: (n, share / 100, REVISED.get(name, 0)) for name, (n, share) in TABLE_12.items()
    }
    for row in rows:
        if row.table == "Table 12":
            named = row.row.lower().replace("/", "_").replace(" ", "_").replace("-", "_")
            part = {} if row.row == "Overall" else {"subtype": named}
            metric = {"Confirmed": "valid", "Revised": "revised"}[row.column]
            assert row.facets == {"check": "study_1", "metric": metric, **part}


def test_directions_and_other_protocols(rows: list[PublishedRow]) -> None:
    """Section 5.1 and Appendix C.5."""
    found = {
        (row.facets["metric"], row.facets.get("family")): (row.value, row.n)
        for row in rows
        if row.table in ("Figure 3", "Appendix C.5")
    }
    assert found == {
        ("under_judged_over", None): (0.266, None),
        ("separated", None): (0.630, 403),
        ("tied", None): (0.359, 403),
        # 122 of the 403 pairs are misapplied-state errors (Table 2).
        ("tied", "misapplied"): (0.505, 122),
        ("pairwise_accuracy", None): (0.890, 403),
        ("order_consistency", None): (0.905, 403),
    }


def estimate(evaluator: str, value: float) -> Estimate:
    facets = {"evaluator": evaluator, "context": "full", "formulation": "end_to_end"}
    return Estimate("ERR", value, None, None, "", "all", 403, 403, facets=facets)


def test_figures_of_models_are_not_paired_with_the_baseline(rows: list[PublishedRow]) -> None:
    ours = [estimate("qwen3_32b", 0.3), estimate(CONSTANT_OVER, 0.677)]
    pairs = matching([r for r in rows if r.table in ("Table 3", "Table 3 (baseline)")], ours)
    found = {(p.row.row, p.estimate.facets["evaluator"]) for p in pairs}
    assert found == {
        *((name, "qwen3_32b") for name in TABLE_3), ("Constant-Over", CONSTANT_OVER),
    }  # fmt: skip
    assert {p.row.column for p in pairs} == {"All"}
