"""The flow on the scripted engine, with replies of every kind in every place."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from persona_lab.benchmarks.realpref.cases import RealPrefCase
from persona_lab.benchmarks.realpref.experiment import RealPref
from persona_lab.benchmarks.realpref.few_shot import EXAMPLES
from persona_lab.benchmarks.realpref.prompts import CHOICE, REMINDER, RUBRICS
from persona_lab.benchmarks.realpref.records import load_users
from persona_lab.benchmarks.realpref.scoring import METRICS
from persona_lab.core.drive import drive
from persona_lab.core.errors import ConfigError, DataError
from persona_lab.core.flow import Model, Outcome
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.scores import Score, Summary
from persona_lab.core.store import Store
from persona_lab.engines.scripted import ScriptedEngine, example_reply
from persona_lab.running.setup import configure
from tests.conftest import ROOT


def experiment(*overrides: str) -> RealPref:
    configured = configure(ROOT, ["recipe=quickstart", *overrides])
    return RealPref(configured.settings, configured.run, ROOT)


def outcomes_of(
    made: RealPref, tmp_path: Path, reply: Callable[[Request], Reply] = example_reply
) -> Sequence[Outcome[RealPrefCase, list[Score]]]:
    model = Model("m", "m", lambda: ScriptedEngine(reply))
    with Store(tmp_path, "w") as store:
        roles = dict.fromkeys(made.roles, model)
        return list(drive(made.cases(), made.flow, roles, store))


def summary_of(
    tmp_path: Path, reply: Callable[[Request], Reply] = example_reply, *overrides: str
) -> Summary:
    made = experiment(*overrides)
    return made.summarize(outcomes_of(made, tmp_path, reply))


def test_cases_of_the_quickstart() -> None:
    # 2 users x 13 queries x 2 methods x 3 tasks.
    cases = experiment().cases()
    assert len(cases) == 2 * 13 * 2 * 3 == len({case.id for case in cases})


def test_examples_are_accepted_by_their_parsers(tmp_path: Path) -> None:
    found = summary_of(tmp_path)
    assert {s.outcome for s in found.scores} == {"ok"}
    # 2 users x 13 queries x 2 methods: 1 choice, 2 statements, 3 dimensions and their mean.
    assert len(found.scores) == 2 * 13 * 2 * (1 + 2 + 4)
    accuracy = [e for e in found.estimates if e.metric == "accuracy"]
    assert {e.value for e in accuracy} == {1.0}
    assert {e.interval for e in accuracy} == {"n/a: 2 users"}


def test_requests_of_one_question(tmp_path: Path) -> None:
    made = experiment("benchmark.users=['00001']", "benchmark.preferences=[original]")
    by_id = {o.case.id: o for o in outcomes_of(made, tmp_path)}
    base = "00001-p01/experience_feedback/simple"
    choice = by_id[f"{base}/reminder/multiple_choice"].exchanges[0][0]
    query = made.users[0].asked[0].query
    listed = "\n".join(f"{label}. {query.options[label]}" for label in "ABCD")
    expected = f"{REMINDER}\n\n{query.query}\n\n{listed}\n\n{CHOICE}"
    assert [m.content for m in choice.prompt.tail] == [expected]
    assert (choice.sampling.max_tokens, choice.sampling.temperature, choice.schema) == (
        48,
        0.0,
        None,
    )
    open_ended = by_id[f"{base}/zero_shot/open_ended"].exchanges
    assert [r.role for r, _ in open_ended] == ["target", "judge", "judge", "judge"]
    assert open_ended[0][0].prompt.tail[0].content == query.query
    for (request, _), rubric in zip(open_ended[1:], RUBRICS.values(), strict=True):
        text = request.prompt.tail[0].content
        assert rubric in text
        assert query.preference in text
        assert request.prompt.history.length == 0
        assert json.loads(request.schema or "")["required"] == ["Judge_Reason", "Score"]


def test_all_questions_of_a_user_share_one_history(tmp_path: Path) -> None:
    made = experiment("task=multiple_choice")
    histories = {
        id(request.prompt.history)
        for outcome in outcomes_of(made, tmp_path)
        for request, _ in outcome.exchanges
    }
    assert len(histories) == 2


def judge(text: str) -> Callable[[Request], Reply]:
    return lambda r: Reply(text) if r.role == "judge" else example_reply(r)


def target(reply: Reply) -> Callable[[Request], Reply]:
    return lambda r: reply if r.role == "target" else example_reply(r)


OPEN = ("task=open_ended", "method=[zero_shot]")


@pytest.mark.parametrize(
    ("reply", "outcome", "reason"),
    [
        (judge("I cannot say"), "unparsed", "no_answer"),
        (judge('{"Score": 9}'), "unparsed", "out_of_range"),
        (judge('{"Judge_Reason": "it'), "truncated", "truncated"),
        (judge("<think>let me"), "truncated", "truncated_reasoning"),
        (target(Reply.failed("engine died")), "failed", "engine died"),
        (target(Reply("  \n")), "unparsed", "empty"),
        (
            target(Reply("", "length", "truncated", "truncated_reasoning")),
            "truncated",
            "truncated_reasoning",
        ),
    ],
)
def test_nothing_is_scored_that_was_not_said(
    tmp_path: Path, reply: Any, outcome: str, reason: str
) -> None:
    found = summary_of(tmp_path, reply, *OPEN)
    assert {(s.value, s.outcome, s.reason) for s in found.scores} == {(None, outcome, reason)}
    assert len(found.scores) == 2 * 13 * 4
    assert {e.value for e in found.estimates if e.metric in METRICS} == {None}


def test_overall_is_the_mean_of_three_dimensions(tmp_path: Path) -> None:
    values = dict(zip(RUBRICS.values(), (1, 3, 5), strict=True))

    def by_rubric(request: Request) -> Reply:
        if request.role == "target":
            return example_reply(request)
        text = request.prompt.tail[0].content
        return Reply(json.dumps({"Score": next(v for r, v in values.items() if r in text)}))

    made = summary_of(tmp_path, by_rubric, *OPEN).estimates
    assert {e.metric: e.value for e in made if e.metric in METRICS} == {
        "preference_awareness": 1.0, "preference_alignment": 3.0,
        "answer_quality": 5.0, "overall": 3.0,
    }  # fmt: skip


def test_a_missing_dimension_leaves_no_overall(tmp_path: Path) -> None:
    def one_is_lost(request: Request) -> Reply:
        lost = RUBRICS["answer_quality"] in request.prompt.tail[0].content
        return Reply("no idea") if lost else example_reply(request)

    originals = (*OPEN, "benchmark.preferences=[original]")  # 2 users x 10
    found = {e.metric: e for e in summary_of(tmp_path, one_is_lost, *originals).estimates}
    assert found["preference_awareness"].value == 4.0
    assert (found["overall"].value, found["overall"].unparsed) == (None, 20)


def test_an_answer_that_reached_its_budget_is_judged_and_said_so(tmp_path: Path) -> None:
    cut = Reply("A good start would be", "length", "truncated", "truncated")
    found = summary_of(tmp_path, target(cut), *OPEN)
    assert {s.reason for s in found.scores} == {"answer_cut"}
    assert found.notes == [
        "26 of 26 open-ended answers reached max_tokens (192) and were judged as far as they go."
    ]


@pytest.mark.parametrize(
    ("text", "accuracy", "scored", "unparsed"),
    [
        ("True", 0.5, 0.5, 0),  # one right and one wrong statement a query
        ("False", 0.5, 0.5, 0),
        ("I cannot know", 0.0, None, 52),
    ],
)
def test_constant_replies_to_statements(
    tmp_path: Path, text: str, accuracy: float, scored: float | None, unparsed: int
) -> None:
    overrides = ("task=true_or_false", "method=[zero_shot]")
    found = summary_of(tmp_path, target(Reply(text)), *overrides)
    made = [e for e in found.estimates if e.metric in METRICS]
    assert {e.value for e in made if e.basis == "all"} == {accuracy}
    assert {e.value for e in made if e.basis == "scored"} == {scored}
    assert sum(e.unparsed for e in made if e.basis == "all") == unparsed


def test_always_a_is_right_as_often_as_a_is(tmp_path: Path) -> None:
    overrides = ("task=multiple_choice", "method=[zero_shot]")
    found = summary_of(tmp_path, target(Reply("A")), *overrides)
    users = load_users(ROOT / "data" / "realpref_sample")
    right = [a.query.correct == "A" for u in users for a in u.asked if a.kind == "original"]
    estimate = next(
        e for e in found.estimates if (e.basis, e.facets["preference"]) == ("all", "original")
    )
    assert estimate.value == sum(right) / 20


def test_a_cut_choice_has_no_value(tmp_path: Path) -> None:
    overrides = ("task=multiple_choice", "method=[zero_shot]")
    cut = Reply("B, because on", "length", "truncated", "truncated")
    found = summary_of(tmp_path, target(cut), *overrides)
    assert {(s.value, s.outcome) for s in found.scores} == {(None, "truncated")}


def test_a_case_whose_flow_raised_is_failed_not_lost(tmp_path: Path) -> None:
    made = experiment(
        "task=[true_or_false,open_ended]", "method=[zero_shot]", "benchmark.users=['00001']"
    )
    broken = [
        Outcome[RealPrefCase, list[Score]](c, None, [], "ValueError: odd") for c in made.cases()
    ]
    found = made.summarize(broken)
    assert len(found.scores) == 13 * (2 + 4)
    assert {(s.outcome, s.reason) for s in found.scores} == {("failed", "ValueError: odd")}


def test_few_shot_examples_stand_before_the_question(tmp_path: Path) -> None:
    made = experiment("task=open_ended", "method=[zero_shot,few_shot_cot]", "benchmark.queries=1")
    texts = {
        o.case.method: o.exchanges[0][0].prompt.tail[0].content for o in outcomes_of(made, tmp_path)
    }
    assert texts["few_shot_cot"].startswith(REMINDER)
    assert texts["few_shot_cot"].endswith(texts["zero_shot"])
    assert texts["few_shot_cot"].count("- Good Response: ") == 3
    data = (ROOT / "data" / "realpref_sample" / "preferences.json").read_text()
    assert not any(e.preference in data for e in EXAMPLES)


def test_few_shot_is_refused_where_answers_are_not_open() -> None:
    with pytest.raises(ConfigError, match="few_shot_cot is for open-ended questions only"):
        experiment("method=[few_shot_cot]", "task=multiple_choice")


def test_shuffled_options_keep_their_right_answer(tmp_path: Path) -> None:
    made = experiment("task=multiple_choice", "shuffle_options=true", "method=[zero_shot]")
    found = outcomes_of(made, tmp_path)
    assert {s.value for o in found for s in o.result or []} == {1.0}
    orders = {o.case.options for o in found}
    assert len(orders) > 5
    for outcome in found:
        query = outcome.case.asked.query
        text = outcome.exchanges[0][0].prompt.tail[0].content
        right = outcome.case.questions[0].expected
        assert f"{right}. {query.options[query.correct]}" in text
    again = experiment("task=multiple_choice", "shuffle_options=true", "method=[zero_shot]")
    assert [c.options for c in again.cases()] == [c.options for c in made.cases()]


def test_scaled_contexts_and_filler_are_said(tmp_path: Path) -> None:
    pytest.importorskip("mistral_common")
    overrides = ("context=[normal,extended]", "context.scale=0.01", "benchmark.queries=1")
    made = experiment(*overrides, "task=open_ended", "benchmark.users=['00001']")
    [histories] = made.inventory()
    rows = histories.rows
    assert [(r["context"], r["expression"]) for r in rows] == [
        ("normal", "experience_feedback"),
        ("extended", "experience_feedback"),
    ]
    # Budgets of 350 and 1,050 tokens, each passed by less than one turn.
    assert 350 <= int(str(rows[0]["interval"])) == int(str(rows[1]["interval"])) < 2500
    assert 1050 <= int(str(rows[1]["tail"])) < 3500
    notes = made.summarize(outcomes_of(made, tmp_path)).notes
    assert any("it is not conversation" in note for note in notes)
    assert any("scaled to 1.0% of Table 2" in note for note in notes)
    plain = experiment(*overrides[1:])
    assert "filler" in made.data_hash
    assert "filler" not in plain.data_hash


def test_tokens_are_reported_by_method(tmp_path: Path) -> None:
    made = experiment("task=open_ended", "method=[zero_shot,reminder]", "benchmark.queries=1")
    found = made.summarize(outcomes_of(made, tmp_path))
    tokens = {
        e.facets["method"]: e.value
        for e in found.estimates
        if e.metric == "prompt_tokens" and e.facets["preference"] == "original"
    }
    # The scripted engine counts bytes: the reminder and the two line ends behind it.
    assert tokens["reminder"] - tokens["zero_shot"] == len(REMINDER) + 2  # type: ignore[operator]


def test_expression_types_are_tested_against_each_other(tmp_path: Path) -> None:
    worse = {"direct_statement": 5, "contextualized_mention": 4, "stylistic_expression": 2}
    made = experiment(
        "expression=[direct_statement,contextualized_mention,stylistic_expression]",
        "benchmark.preferences=[original]",
        *OPEN,
    )

    def falling(request: Request) -> Reply:
        if request.role == "target":
            return example_reply(request)
        text = request.prompt.tail[0].content
        return Reply(json.dumps({"Score": next(v for k, v in worse.items() if f"/{k}/" in text)}))

    found = made.summarize(outcomes_of(made, tmp_path, falling))
    pairs = {(t["greater"], t["lesser"]): t for t in found.tests}
    assert len(pairs) == 3
    # Two users whose means both fall: 1 of the 4 sign flips is as large, p = 0.25 in each.
    assert {t["p"] for t in pairs.values()} == {0.25}
    assert {t["significant"] for t in pairs.values()} == {False}
    assert {t["table"] for t in pairs.values()} == {"Table 13"}


def test_the_easy_test_shows_the_sessions_of_one_preference(tmp_path: Path) -> None:
    overrides = ("context=[easy_test]", "task=multiple_choice", "method=[zero_shot]")
    made = experiment(*overrides, "benchmark.preferences=[original]")
    for outcome in outcomes_of(made, tmp_path):
        case = outcome.case
        sessions = case.user.expressions[case.asked.query.preference][case.expression]
        said = [t.user for session in sessions for t in session.turns]
        history = outcome.exchanges[0][0].prompt.history
        assert [m.content for m in history.messages if m.role == "user"] == said
        assert case.facets["check"] == "easy_test"
    with pytest.raises(ConfigError, match="easy_test is for original preferences"):
        experiment(*overrides)


def test_the_blind_test_shows_nothing(tmp_path: Path) -> None:
    made = experiment("context=[blind_test]", "task=true_or_false", "method=[zero_shot]")
    histories = {
        request.prompt.history.length
        for outcome in outcomes_of(made, tmp_path)
        for request, _ in outcome.exchanges
    }
    assert histories == {0}


def test_repeats_make_table_16(tmp_path: Path) -> None:
    overrides = ("task=multiple_choice", "method=[zero_shot]", "repeats=3", "model.temperature=0.7")
    made = experiment(*overrides, "benchmark.preferences=[original]")

    def first_run_is_wrong(request: Request) -> Reply:
        return Reply("none of them") if request.sample == 0 else example_reply(request)

    found = made.summarize(outcomes_of(made, tmp_path, first_run_is_wrong))
    [table] = found.tables
    # Accuracies of the runs 0, 1, 1: mean 2/3, variance ((2/3)^2 + 2 (1/3)^2) / 2 = 1/3.
    row = next(r for r in table.rows if r["basis"] == "all")
    assert (row["runs"], row["mean"]) == (3, pytest.approx(2 / 3))
    assert row["variance"] == pytest.approx(1 / 3)
    # In the estimates repeats are averaged per question first: 20 questions of 2/3.
    estimate = next(e for e in found.estimates if e.basis == "all")
    assert (estimate.n, estimate.value) == (20, pytest.approx(2 / 3))
    with pytest.raises(ConfigError, match="at temperature 0 every repeat is the same answer"):
        experiment("repeats=3")


def test_a_share_of_the_users_is_stable() -> None:
    half = [experiment("benchmark.share=0.5").users for _ in range(2)]
    assert [u.id for u in half[0]] == [u.id for u in half[1]]
    assert len(half[0]) == 1
    assert len(experiment("benchmark.share=0.01").users) == 1


def second_judge(*overrides: str) -> RealPref:
    base = [
        "recipe=realpref_judge_agreement",
        "form=cpu",
        "context=[simple]",
        "benchmark.users=null",
    ]
    configured = configure(ROOT, [*base, "benchmark.queries=null", *overrides])
    return RealPref(configured.settings, configured.run, ROOT)


def test_two_judges_are_compared_and_not_mixed(tmp_path: Path) -> None:
    def judges(request: Request) -> Reply:
        if request.role == "target":
            return example_reply(request)
        number = len(request.prompt.tail[0].content) % 4 + 1
        return Reply(json.dumps({"Score": number if request.role == "judge" else number + 1}))

    made = second_judge()
    assert made.roles == ("target", "judge", "second_judge")
    models = {role: Model(role, role, lambda: ScriptedEngine(judges)) for role in made.roles}
    with Store(tmp_path, "w") as store:
        found = made.summarize(list(drive(made.cases(), made.flow, models, store)))
    own = [s for s in found.scores if s.metric == "answer_quality"]
    [quality] = [e for e in found.estimates if e.metric == "answer_quality"]
    assert quality.value == pytest.approx(sum(s.value or 0 for s in own) / len(own))
    agreement, histogram = found.tables
    # The second judge gives one more each time: r = 1, and they never agree.
    assert [r["pearson_r"] for r in agreement.rows] == [pytest.approx(1.0)] * 4
    assert [r["agreement"] for r in agreement.rows[:3]] == [0.0] * 3
    assert len(histogram.rows) == 6


def test_human_scores_are_read_from_a_sheet(tmp_path: Path) -> None:
    made = experiment(*OPEN, "benchmark.preferences=[original]")
    outcomes = outcomes_of(made, tmp_path / "store")
    sheet = tmp_path / "human.csv"
    lines = ["case,question,metric,value"]
    for number, outcome in enumerate(outcomes):
        for score in (outcome.result or [])[:3]:
            lines.append(f"{score.case},{score.question},{score.metric},{number % 5 + 1}")
    sheet.write_text("\n".join([*lines, "of/another/run,q,answer_quality,3"]))
    made = experiment(*OPEN, "benchmark.preferences=[original]", f"human_scores='{sheet}'")
    agreement, _ = made.summarize(outcomes).tables
    assert {(r["pairs"], r["pearson_r"]) for r in agreement.rows} == {(20, None)}
    assert all("constant" in str(r["why_not"]) for r in agreement.rows)  # the examples all say 4
    sheet.write_text("case,question,metric,value\n" + lines[1].rsplit(",", 1)[0] + ",x\n")
    with pytest.raises(DataError, match=r"human\.csv:2: value: 'x' is no number"):
        made.summarize(outcomes)
    for odd in ("nan", "9", "4.5"):
        sheet.write_text("case,question,metric,value\n" + lines[1].rsplit(",", 1)[0] + f",{odd}\n")
        with pytest.raises(DataError, match=r"human\.csv:2: value: .* is no whole number from 1"):
            made.summarize(outcomes)


def test_the_sample_passes_its_data_checks() -> None:
    text, findings = experiment().check_data()
    assert findings == 0
    assert "longest" in text


def test_a_context_must_be_chosen() -> None:
    with pytest.raises(ConfigError, match="choose a context: simple, normal"):
        experiment("~context")


def test_unknown_users_and_a_missing_judge_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"benchmark\.users: 00009 not in the data, which has"):
        experiment("benchmark.users=['00009']")
    with pytest.raises(ConfigError, match="need a judge"):
        experiment("~judge")
