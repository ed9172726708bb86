from __future__ import annotations

from rich.console import Console

from persona_lab.core.plan import RolePlan
from persona_lab.core.scores import Estimate, Row, RowsTable
from persona_lab.reporting.tables import plan_table, results_tables, rows_table


def shown(estimates: list[Estimate]) -> str:
    console = Console(width=100)
    with console.capture() as capture:
        title = "quickstart: a_model_with_a_long_name"
        for table in results_tables(estimates, title, ("method", "expression", "context")):
            console.print(table)
    return capture.get()


def estimate(metric: str, method: str, basis: str = "scored", **changes: object) -> Estimate:
    fields: dict[str, object] = {
        "value": 3.25, "low": 2.5, "high": 4.125, "interval": "cluster jackknife", "n": 20,
        "clusters": 6, "facets": {"task": "open_ended", "method": method, "context": "simple"},
    }  # fmt: skip
    return Estimate(metric=metric, basis=basis, **(fields | changes))  # type: ignore[arg-type]


def test_values_intervals_and_counts_are_shown() -> None:
    text = shown([estimate("overall", "zero_shot"), estimate("overall", "reminder", failed=2)])
    assert "3.250 [2.500, 4.125]  n=20" in text
    assert "2 failed" in text
    assert "(open_ended, simple)" in text
    assert max(map(len, text.splitlines())) <= 100


def test_both_bases_of_a_rate_are_shown_where_they_differ() -> None:
    rate = {"metric": "accuracy", "method": "zero_shot"}
    both = [
        estimate(**rate, basis="all", value=0.8, low=0.7, high=0.9, n=100, unparsed=10),  # type: ignore[arg-type]
        estimate(**rate, basis="scored", value=80 / 90, low=0.8, high=0.9, n=90, unparsed=10),  # type: ignore[arg-type]
    ]
    text = shown(both)
    assert "0.800 [0.700, 0.900]  n=100" in text
    assert "scored only 0.889  n=90" in text
    assert "10 unparsed" in text


def test_five_contexts_fit_beside_each_other() -> None:
    rows = [
        estimate("preference_alignment", "zero_shot", failed=3, facets={
            "task": "open_ended", "method": "zero_shot", "context": context,
        })
        for context in ("simple", "normal", "long", "very_long", "extended")
    ]  # fmt: skip
    text = shown(rows)
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("[2.50, 4.12]") == 5
    assert "very long" in text


def test_what_does_not_exist_is_not_a_number() -> None:
    nothing = {"value": None, "low": None, "high": None, "n": 0, "interval": "n/a: no items"}
    assert "n/a" in shown([estimate("overall", "zero_shot", **nothing)])


def test_one_reason_for_no_interval_goes_to_the_title() -> None:
    none = {"low": None, "high": None, "interval": "n/a: 2 users"}
    text = shown([estimate("overall", m, **none) for m in ("zero_shot", "reminder")])
    assert text.count("n/a: 2 users") == 1


def test_markup_in_a_name_stays_text() -> None:
    assert "[bold]x" in shown([estimate("[bold]x", "zero_shot")])


def test_a_plan_cuts_no_number() -> None:
    # The paper's size: 1,300 queries under 4 methods, 250,417 tokens each, none of which fits.
    plan = RolePlan(requests=5_200, prompt_tokens=1_302_168_400, unique_tokens=24_950_417)
    plan.longest, plan.too_long = (250_417, 1_536), ["too long"] * 5_200
    console = Console(width=100)
    with console.capture() as capture:
        console.print(plan_table({"target": plan}, {"target": "qwen3_235b_a22b_instruct_2507"}))
    text = capture.get()
    for number in ("~1,302,168,400", "~24,950,417", "~250,417+1,536", "no fit"):
        assert number in text
    assert text.count("5,200") == 2  # requests, no fit
    assert max(map(len, text.splitlines())) <= 100


def test_an_empty_facet_leaves_no_gap() -> None:
    facets = {"task": "open_ended", "method": "zero_shot", "context": "simple", "check": ""}
    assert ", )" not in shown([estimate("overall", "zero_shot", facets=facets)])
    assert ", ," not in shown([estimate("overall", "zero_shot", facets=facets)])


def test_a_long_table_is_printed_in_part_and_says_so() -> None:
    rows: list[Row] = [{"turn": f"t{n}", "facts": n} for n in range(2_000)]
    console = Console(width=100)
    with console.capture() as capture:
        console.print(rows_table(RowsTable("Failures", rows, printed=3)))
    text = " ".join(capture.get().split())
    assert "t2" in text
    assert "t3" not in text
    assert "and 1,997 more in results.json" in text
