"""The sample held to the scenario grammar, and every prompt made of it to what may stand there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from string import Formatter
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from persona_lab.benchmarks.persevalbench.cases import PersEvalCase
from persona_lab.benchmarks.persevalbench.context import CONTEXTS, HIGHLIGHT, context_text
from persona_lab.benchmarks.persevalbench.data_checks import check, problems
from persona_lab.benchmarks.persevalbench.experiment import PersEvalBench
from persona_lab.benchmarks.persevalbench.loading import load_scenarios
from persona_lab.benchmarks.persevalbench.prompts import (
    END_TO_END,
    EVIDENCE,
    FROM_EVIDENCE,
    PAIRWISE,
    POINTWISE,
    STATE_TABLE,
)
from persona_lab.benchmarks.persevalbench.records import (
    LEGAL,
    RELATIONS,
    SIDES,
    SUBTYPES,
    Distance,
    Form,
    Scenario,
    Side,
    StateRelation,
)
from persona_lab.core.prompt import Reply, Request
from persona_lab.parsing.json_file import read_json
from persona_lab.running.setup import configure
from tests.conftest import ROOT

SAMPLE = ROOT / "data" / "persevalbench_sample"
TEMPLATES = {
    "end_to_end": [END_TO_END], "evidence_first": [EVIDENCE, FROM_EVIDENCE],
    "state_table": [STATE_TABLE], "pointwise": [POINTWISE], "pairwise": [PAIRWISE],
}  # fmt: skip
# Marks, state annotations and metadata, in the words of section 3.3, Prompt 5 and the data file.
MARKS = re.compile(
    r"\[ ?STATE|\bstate[ _]?[AB]\b|>>>|\bepisode\b|-{3}|\bevidence\b|\bdecoy\b|\btarget[ _]turn\b"
    r"|\b[a-z]+_[a-z_]+\b|\bsubtypes?\b|\bpersonali[sz]|\b(?:ignore|support|dominate)\b *[:=]"
    r"|\bPersEvalBench\b|\bRIGHT\b|\bUNDER\b|\bOVER\b",
    re.IGNORECASE,
)
SPOKEN = re.compile(r"right|under|over", re.IGNORECASE)
"""Words of ordinary speech; as verdicts they stand in capitals."""


@cache
def scenarios() -> tuple[Scenario, ...]:
    return tuple(load_scenarios(SAMPLE)[0])


@cache
def experiment() -> PersEvalBench:
    """All contexts, formulations and protocols on the sample."""
    named = [
        "recipe=persevalbench_main", f"benchmark.path={SAMPLE}", f"contexts=[{','.join(CONTEXTS)}]",
        "formulations=[end_to_end,evidence_first,state_table]",
        "protocols=[verdict,pointwise,pairwise]",
    ]  # fmt: skip
    configured = configure(ROOT, named)
    return PersEvalBench(configured.settings, configured.run, ROOT)


@cache
def cases() -> tuple[PersEvalCase, ...]:
    return tuple(experiment().cases())


# The data


def test_every_legal_pair_once() -> None:
    """Table 7: 19 of 27."""
    found = [(s.relation, s.subtype) for s in scenarios()]
    legal = [(relation, subtype) for relation in LEGAL for subtype in LEGAL[relation]]
    assert sorted(found) == sorted(legal)
    assert len(found) == 19
    assert len({s.id for s in scenarios()}) == 19


def test_forms_distances_and_state_relations_all_occur() -> None:
    assert {s.form for s in scenarios()} == {*get_args(Form)}
    assert {s.distance_bin for s in scenarios()} == {*get_args(Distance)}
    assert {s.state_relation for s in scenarios()} == {*get_args(StateRelation)}
    assert {s.relation for s in scenarios()} == {*RELATIONS}
    assert {s.subtype for s in scenarios()} == {*SUBTYPES}


@pytest.mark.parametrize("number", range(19))
def test_a_dialogue(number: int) -> None:
    made = scenarios()[number]
    assert len(made.episodes) in (2, 3)
    assert 14 <= made.target <= 26
    assert made.episodes[0] == 1
    assert list(made.episodes) == sorted(set(made.episodes))
    assert made.episodes[-1] <= made.target
    # User and assistant take turns within an episode, and the user begins it.
    starts = [*made.episodes, made.target + 1]
    for start, end in pairwise(starts):
        roles = [turn.role for turn in made.turns[start - 1 : end - 1]]
        assert roles == [("user", "assistant")[i % 2] for i in range(len(roles))]
    if made.form == "accumulated":
        assert sum(made.turns[n - 1].role == "user" for n in made.a.turns) >= 2


@pytest.mark.parametrize("number", range(19))
def test_matched_responses(number: int) -> None:
    """Counted in words and in characters: neither gives the error away."""
    made = scenarios()[number]
    for measure in (lambda text: len(text.split()), len):
        right, error = measure(made.right), measure(made.error)
        assert max(right, error) - min(right, error) <= 0.25 * max(right, error)


def test_length_does_not_tell_the_error_response() -> None:
    """The longer one is Right about as often as not, by scipy's sign test."""
    longer = Counter(len(s.right.split()) > len(s.error.split()) for s in scenarios())
    assert binomtest(longer[True], len(scenarios())).pvalue > 0.05


def test_the_module_finds_nothing() -> None:
    report, findings = check(scenarios())
    assert report.splitlines()[-1] == "no findings"
    assert findings == 0
    assert report.startswith("19 scenarios, 19 of 19 legal pairs of relation and subtype; ")


def changed(number: int, **fields: Any) -> list[str]:
    return [*problems(replace(scenarios()[number], **fields))]


def test_what_the_module_looks_for() -> None:
    """Each rule finds the slip it is for, in a scenario that has none else."""
    made = scenarios()[0]
    assert made.subtype == "complete_omission"
    assert changed(0) == []
    words = ["word"] * 100
    for short, found in ((75, False), (74, True)):
        said = changed(0, right=" ".join(words), error=" ".join(words[:short]))
        assert any("differ by more than 25 %" in problem for problem in said) == found
    assert changed(
        0, turns=(replace(made.turns[0], text="As said [STATE_A]"), *made.turns[1:])
    ) == ["turn 1 holds metadata: '[STATE'"]
    leak = made.error.replace(".", ", as in episode 1.", 1)
    assert changed(0, error=leak) == ["the error response holds metadata: 'episode'"]
    asking = made.error.replace(".", ". Could you tell me more?", 1)
    assert changed(0, error=asking) == [
        "the error response asks or claims to know nothing: 'Could you tell'"
    ]
    target = replace(made.turns[-1], text=f"{made.request} Somewhere for sketching facades.")
    assert changed(0, turns=(*made.turns[:-1], target)) == [
        "the target request restates state A: facades, sketching"
    ]
    assert changed(0, form="accumulated") == ["accumulated evidence stands in 1 user turn"]
    assert changed(0, episodes=(1,)) == ["1 episodes"]
    assert changed(0, turns=made.turns[-12:], a=replace(made.a, turns=(1,))) == [
        "12 turns, at least 14 are expected"
    ]


@pytest.mark.parametrize("number", range(19))
def test_the_request_of_an_omission_does_not_restate_state_a(number: int) -> None:
    """By own means: no word of five letters or more in common."""
    made = scenarios()[number]
    if made.subtype == "complete_omission":
        told, asked = (
            set(re.findall(r"[a-z]{5,}", text.lower())) for text in (made.a.statement, made.request)
        )
        assert told & asked == set()


# Every prompt


def requests_of(case: PersEvalCase) -> list[Request]:
    """A case's requests, each answered with its example."""
    flow, asked = experiment().flow(case), []
    try:
        step = next(flow)
        while True:
            asked += step
            step = flow.send([Reply(request.example) for request in step])
    except StopIteration:
        return asked


def slots_of(template: str, text: str) -> dict[str, str]:
    """What fills a template; fails where the text around it is not the template's."""
    pattern = ""
    for literal, name, _, _ in Formatter().parse(template):
        pattern += re.escape(literal) + (f"(?P<{name}>.*?)" if name else "")
    match = re.fullmatch(pattern, text, re.DOTALL)
    assert match
    return match.groupdict()


def asked(case: PersEvalCase) -> Iterator[dict[str, str]]:
    """The slots of each of a case's prompts."""
    templates = TEMPLATES[case.formulation if case.protocol == "verdict" else case.protocol]
    for template, request in zip(templates, requests_of(case), strict=True):
        [message] = request.prompt
        assert (message.role, request.role, request.schema) == ("user", "target", None)
        yield slots_of(template, message.content)


def spoken(text: str) -> list[str]:
    """Marks that stand in a text, words of ordinary speech left out."""
    found = [match[0] for match in MARKS.finditer(text)]
    return [word for word in found if not (SPOKEN.fullmatch(word) and not word.isupper())]


@pytest.mark.parametrize(
    "leak",
    [
        "ok [STATE_B]", "State A", ">>> Turn 2", "--- EPISODE 2 ---", "evidence: turn 3",
        "scope_leakage", "right_response", "subtype", "IGNORE:", "it is RIGHT",
    ],
)  # fmt: skip
def test_what_would_be_found_in_a_prompt(leak: str) -> None:
    assert spoken(f"We talked. {leak}") != []
    assert spoken("Right, turn over the well-kept page - under 20 - and name a time.") == []


def test_all_prompts_are_looked_at() -> None:
    # 19 scenarios x 7 contexts x (3 formulations, pointwise, pairwise) x 2 subjects.
    assert len(cases()) == 19 * 7 * 5 * 2


@pytest.mark.parametrize("context", CONTEXTS)
def test_no_prompt_holds_marks_annotations_or_metadata(context: str) -> None:
    for case in cases():
        if case.context != context:
            continue
        made = case.scenario
        for slots in asked(case):
            slots.pop("evidence", None)  # the evaluator's own words
            seen = slots.pop("context", "").splitlines()
            if context == "full_highlights":
                seen = [line.removeprefix(HIGHLIGHT) for line in seen]
            for text in (*seen, *slots.values()):
                assert spoken(text) == []
                assert not re.search(rf"\b{re.escape(made.id)}\b", text)
                for state in (made.a, made.b):
                    statement = state.statement.rstrip(".").casefold() if state else "\0"
                    assert statement not in text.casefold()


@pytest.mark.parametrize("context", CONTEXTS)
def test_the_slots_are_the_dialogues_texts(context: str) -> None:
    for case in cases():
        if case.context != context:
            continue
        made, found = case.scenario, list(asked(case))
        seen = context_text(made, case.context, experiment().settings.benchmark.seed)
        assert [slots["context"] for slots in found if "context" in slots] == [seen]
        assert {slots["user_request"] for slots in found} == {made.request}
        last = found[-1]
        if case.protocol == "pairwise":
            right_first = (made.right, made.error)
            expected = right_first if case.subject == "right_first" else right_first[::-1]
            assert (last["first"], last["second"]) == expected
        else:
            side: Side = "right" if case.subject == "right" else "error"
            assert last["response"] == made.response(side)
        if case.formulation == "evidence_first":
            # The first step sees no response.
            assert {*found[0]} == {"context", "user_request"}
            assert {*last} == {"evidence", "user_request", "response"}


@given(st.sampled_from(range(19)), st.sampled_from(CONTEXTS), st.integers(0, 100))
def test_no_context_of_any_seed_says_where_evidence_is(number: int, name: Any, seed: int) -> None:
    made = scenarios()[number]
    text = context_text(made, name, seed)
    marked = [line for line in text.splitlines() if line.startswith(HIGHLIGHT)]
    assert len(marked) == (len(made.evidence) if name == "full_highlights" else 0)
    assert spoken(text.replace(f"\n{HIGHLIGHT}", "\n").removeprefix(HIGHLIGHT)) == []
    # The target request is no turn of the context.
    assert " ".join(made.request.split()) not in text


def test_the_highlights_are_all_that_differs_from_the_full_history() -> None:
    for made in scenarios():
        marked = context_text(made, "full_highlights").splitlines()
        plain = context_text(made, "full").splitlines()
        assert [line.removeprefix(HIGHLIGHT) for line in marked] == plain
        places = [n for n, line in enumerate(marked, 1) if line.startswith(HIGHLIGHT)]
        assert tuple(places) == made.evidence


def test_topics_of_episodes_are_not_shown() -> None:
    """The file names its episodes for readers."""
    for record in read_json(SAMPLE / "scenarios.json", list[dict[str, Any]]):
        [made] = [s for s in scenarios() if s.id == record["id"]]
        text = context_text(made, "full")
        for episode in record["episodes"]:
            assert f"\n{episode['topic']}" not in f"\n{text}"
        assert all(made.response(side) for side in SIDES)
