"""Every rule with data that passes and data that breaks it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from persona_lab.benchmarks.realpref.data_checks import (
    Finding,
    check_users,
    report,
)
from persona_lab.benchmarks.realpref.records import (
    Asked,
    LifeEvent,
    Preference,
    Profile,
    Query,
    Session,
    User,
    load_users,
)
from persona_lab.benchmarks.realpref.wording import stated_preference
from tests.benchmarks.realpref.test_wording import STATING
from tests.conftest import ROOT

SAMPLE = ROOT / "data" / "realpref_sample"
LIKING = "Prefers rowing at dawn over swimming, because cold air clears his head."
ASK = "What sport should I try next spring?"
OPTIONS = {
    "A": "A lane card for the pool in town.",
    "B": "A scull at the club before seven.",
    "C": "A pass to the lido by the harbour.",
    "D": "A water polo set with a coach.",
}
T = f"{ASK} Do you think a scull at the club before seven would be the one for me?"
F = f"{ASK} Do you think a pass to the lido by the harbour would be the one for me?"


def query(
    options: Mapping[str, str] = OPTIONS,
    correct: str = "B",
    *,
    ask: str = ASK,
    preference: str = LIKING,
    true: str = T,
    false: str = F,
) -> Query:
    return Query.model_validate(
        {
            "Preference": preference,
            "Query": ask,
            "Explanation": "",
            "MCQ_options": dict(options),
            "Correct_Answer": correct,
            "T_Query": true,
            "F_Query": false,
        }
    )


def session(day: str, *said: str) -> Session:
    turns = [{"User": text, "Assistant": "You prefer it, I see; I love that."} for text in said]
    return Session.model_validate({"Date": day, "Turns": turns})


VOICED = {
    "direct_statement": [session("2021/01/01", "I prefer rowing at dawn.")],
    "contextualized_mention": [session("2021/02/01", "Hello.", "The pool?", "I prefer rowing.")],
    "stylistic_expression": [session("2021/03/01", "Hello.", "Brr, lanes.", "Mist on the oars!")],
    "experience_feedback": [session("2020/05/01", "First go."), session("2020/07/01", "Again!")],
}


def user(
    asked: Query | None = None,
    voiced: Mapping[str, Sequence[Session]] | None = None,
    life_days: Sequence[str] = ("2015/01/01", "2015/01/01", "2016/01/01"),
) -> User:
    preference = {"Type": "relative", "Topic": "Lifestyle: Exercise", "Date": "2020/06/01"}
    events: list[dict[str, Any]] = [{"Date": day, "Event": "Moved."} for day in life_days]
    profile = {"Demographics": {}, "Original Persona": "a rower", "Extended Persona": "A rower."}
    asked = asked or query()
    return User(
        id="00007",
        profile=Profile.model_validate(profile),
        life_events=[LifeEvent.model_validate(event) for event in events],
        preferences=[
            Preference.model_validate({**preference, "Preference": LIKING, "Event": "Rowed."})
        ],
        asked=[Asked("00007-p01", "original", asked, "Lifestyle: Exercise", "relative")],
        life_sessions=[],
        expressions={LIKING: {**VOICED, **(voiced or {})}},  # type: ignore[dict-item]
    )


def found(checked: User, **options: float) -> list[tuple[str, str]]:
    return [(f.rule, f.problem) for f in check_users([checked], **options)]


def test_the_sample_passes() -> None:
    assert check_users(load_users(SAMPLE)) == []


def test_data_that_keeps_every_rule_passes() -> None:
    assert check_users([user()]) == []


# query_leak


def test_a_query_that_names_its_preference_is_found() -> None:
    ask = "Which clubs have the coldest air and row early?"
    leaking = query(ask=ask, true=T.replace(ASK, ask), false=F.replace(ASK, ask))
    assert check_users([user(leaking)]) == [
        Finding(
            "query_leak",
            "00007",
            "00007-p01",
            f'the query shares "air", "row" with its preference: "{ask}"',
        )
    ]


# option_lengths


def test_options_alike_in_length() -> None:
    # 40 characters, and 50 = 40 x 1.25, then 51.
    def of_length(longest: int) -> User:
        options = {"A": "a" * 40, "B": "b" * longest, "C": "c" * 45, "D": "d" * 44}
        return user(query(options))

    def rules(checked: User, **options: float) -> list[str]:
        return [rule for rule, _ in found(checked, **options) if rule != "statements"]

    assert rules(of_length(50)) == []
    assert rules(of_length(51)) == ["option_lengths"]
    assert rules(of_length(51), tolerance=0.3) == []
    assert rules(of_length(45), tolerance=0.1) == ["option_lengths"]
    problem = next(p for rule, p in found(of_length(51)) if rule == "option_lengths")
    expected = "option B has 51 characters and option A 40, more than 25% apart"
    assert problem == f'{expected}: "{"b" * 51}"'


# statements


@pytest.mark.parametrize(
    ("forms", "problem"),
    [
        ({"true": F, "false": T}, "T_Query states the wrong option C"),
        ({"false": T + " "}, "F_Query is not the query and"),
        ({"false": T.replace("me?", "you?")}, "F_Query is not the query and"),
        ({"true": T.removeprefix(ASK)}, "T_Query is not the query and"),
        ({"true": T.replace("a scull", "A scull")}, "T_Query states none of the options"),
        ({"true": T.replace("seven", "seven.")}, "T_Query states none of the options"),
        ({"true": T.replace("scull", "sculls")}, "T_Query states none of the options"),
        ({"true": f"{ASK} Do you think would be the one for me?"}, "T_Query states none"),
    ],
)
def test_a_statement_that_is_not_query_and_option(forms: dict[str, Any], problem: str) -> None:
    problems = [p for rule, p in found(user(query(**forms))) if rule == "statements"]
    assert any(p.startswith(problem) for p in problems)


def test_a_false_form_that_states_the_right_option() -> None:
    true = T.replace("club", "clubs")
    assert found(user(query(true=true, false=T))) == [
        ("statements", 'T_Query states none of the options: "a scull at the clubs before seven"'),
        ("statements", 'F_Query states the right option B: "a scull at the club before seven"'),
    ]


VERBS = {
    "A": "Plan three swims a week and try the slide.",
    "B": "Join a dawn crew and tie up when you tire.",
    "C": "Take a lane class and use the steam room.",
    "D": "Lie by the pool and change on the hour.",
}


@pytest.mark.parametrize(
    ("label", "said", "passes"),
    [
        ("A", "planning three swims a week and trying the slide", True),
        ("B", "joining a dawn crew and tying up when you tire", True),
        ("C", "taking a lane class and using the steam room", True),
        ("D", "lying by the pool and changing on the hour", True),
        ("D", "lying by the pool and change on the hour", True),
        ("D", "lying by the pool and changed on the hour", False),
        ("B", "joining a dawn crew", False),
        ("B", "joining a crew at dawn and tying up when you tire", False),
        ("B", "joins a dawn crew and ties up when you tire", False),
    ],
)
def test_verb_options_stand_in_their_ing_form(label: str, said: str, passes: bool) -> None:
    true = f"{ASK} Do you think {said} would be the one for me?"
    other = "A" if label != "A" else "B"
    plain = VERBS[other][0].lower() + VERBS[other][1:-1]
    false = f"{ASK} Do you think {plain} would be the one for me?"
    assert (found(user(query(VERBS, label, true=true, false=false))) == []) is passes


def test_a_word_of_capitals_keeps_its_first() -> None:
    options = {**OPTIONS, "B": "TV nights with the rowing crew."}
    true = T.replace("a scull at the club before seven", "TV nights with the rowing crew")
    assert found(user(query(options, true=true))) == []


# explicit_words


@pytest.mark.parametrize("message", STATING)
def test_a_user_who_states_a_preference_is_found(message: str) -> None:
    for expression, days in (
        ("stylistic_expression", ["2021/03/01"]),
        ("experience_feedback", ["2020/05/01", "2020/07/01"]),
    ):
        sessions = [session(day, "Hello.", message, "Bye.") for day in days]
        problems = found(user(voiced={expression: sessions}))
        assert [rule for rule, _ in problems] == ["explicit_words"] * len(days)
        assert "the user states a preference in session 1, round 2: " in problems[0][1]


def test_only_implicit_types_are_held_to_the_words() -> None:
    # VOICED states it in types 1 and 2; the assistant says "prefer" and "love" everywhere.
    assert stated_preference(VOICED["direct_statement"][0].turns[0].user)
    assert stated_preference(VOICED["stylistic_expression"][0].turns[0].assistant)
    assert found(user()) == []


# rounds, sessions, dates


@pytest.mark.parametrize(
    ("expression", "sessions", "problems"),
    [
        (
            "direct_statement",
            [session("2021/01/01", "I prefer oars.", "Yes.")],
            [("rounds", '2 rounds instead of one: "I prefer oars."')],
        ),
        ("direct_statement", [], [("rounds", "0 rounds instead of one.")]),
        (
            "contextualized_mention",
            [session("2021/01/01", "Hello.", "Oars.")],
            [("rounds", '2 of three rounds or more: "Hello."')],
        ),
        (
            "stylistic_expression",
            [session("2021/01/01", *["Hm."] * 4), session("2021/01/02", "x" * 61)],
            [("rounds", f'1 of three rounds or more: "{"x" * 57}..."')],
        ),
        ("stylistic_expression", [session("2021/01/01", *["Hm."] * 4)], []),
        (
            "experience_feedback",
            [session("2020/05/01", "Hello.")],
            [
                ("sessions", '1 of two sessions or more: "Hello."'),
                (
                    "dates",
                    "no session lies after its initialise event of 2020/06/01: 2020/05/01.",
                ),
            ],
        ),
        (
            "experience_feedback",
            [session("2020/06/01", "On the day."), session("2020/06/02", "After.")],
            [
                (
                    "dates",
                    "no session lies before its initialise event of 2020/06/01: "
                    "2020/06/01, 2020/06/02.",
                )
            ],
        ),
        (
            "experience_feedback",
            [session("2020/06/02", "After."), session("2020/05/02", "Before.")],
            [
                (
                    "dates",
                    "the sessions are not in the order of their dates: 2020/06/02, 2020/05/02.",
                )
            ],
        ),
        (
            "experience_feedback",
            [session(day, "Hm.") for day in ("2020/05/01", "2020/06/01", "2020/06/02")],
            [],
        ),
    ],
)
def test_rounds_sessions_and_dates(
    expression: str, sessions: list[Session], problems: list[tuple[str, str]]
) -> None:
    checked = user(voiced={expression: sessions})
    assert found(checked) == problems
    assert {f.item for f in check_users([checked])} <= {f"00007-p01/{expression}"}


def test_life_events_out_of_order() -> None:
    checked = user(life_days=("2015/01/01", "2016/02/03", "2015/06/01"))
    problem = "the event of 2015/06/01 follows that of 2016/02/03."
    assert check_users([checked]) == [Finding("dates", "00007", "00007/life_events", problem)]


# the paper's own examples, where its text lies beside the project


@pytest.mark.parametrize(("number", "problems"), [(1, 2), (2, 0)])
def test_the_papers_statements(paper: str, number: int, problems: int) -> None:
    # The two forms of the first leave out the last sentence of their query.
    after = paper.split(f"Preference Query Example {number} ⬇ ")[1]
    example = Query.model_validate(json.JSONDecoder().raw_decode(after)[0])
    statements = [problem for rule, problem in found(user(example)) if rule == "statements"]
    assert len(statements) == problems
    assert all("_Query is not the query and" in problem for problem in statements)
    whole = example.model_dump(by_alias=True)
    for form in ("T_Query", "F_Query"):
        said = whole[form][whole[form].index(" Do you think ") :]
        whole[form] = example.query + said
    assert "statements" not in [rule for rule, _ in found(user(Query.model_validate(whole)))]


# report


def test_report_of_clean_data() -> None:
    # Lengths 33, 33, 34, 30: C is longest, B is right: 0. Content words: A {lane, card, pool,
    # town}, B {scull, club, seven}, C {pas, lido, harbour}, D {water, polo, set, coach}: no word
    # is shared, so four are tied: 1/4.
    assert report([user()]) == (
        "1 users, 1 queries: 0 findings\n"
        "  query_leak          0\n"
        "  option_lengths      0\n"
        "  statements          0\n"
        "  explicit_words      0\n"
        "  rounds              0\n"
        "  sessions            0\n"
        "  dates               0\n"
        "\n"
        "multiple choice answered without the history (chance 0.250)\n"
        "  longest option  0.000  n=1\n"
        "  odd one out     0.250  n=1"
    )


def test_report_names_every_finding_within_100_columns() -> None:
    ask = "Shall I go rowing " + "very " * 40 + "soon, or to https://" + "x" * 150 + "?"
    sessions = [session("2020/06/02", "I love it."), session("2020/05/02", "My favourite!")]
    checked = user(query(ask=ask), {"experience_feedback": sessions}, ["2015/01/02", "2015/01/01"])
    text = report([checked])
    assert max(map(len, text.splitlines())) <= 100
    starts = [line.split(": ")[0] for line in text.splitlines() if re.match(r"  \w+  0", line)]
    assert starts == [
        "  dates  00007/life_events",
        "  query_leak  00007-p01",
        "  statements  00007-p01",
        "  statements  00007-p01",
        "  explicit_words  00007-p01/experience_feedback",
        "  explicit_words  00007-p01/experience_feedback",
        "  dates  00007-p01/experience_feedback",
    ]
    assert "7 findings" in text
    assert '"I love it."' in text


def test_report_of_nothing() -> None:
    assert "longest option  n/a  n=0" in report([])
