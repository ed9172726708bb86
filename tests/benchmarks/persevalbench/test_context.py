"""What an evaluator sees of a history, written out by hand; and what it never sees."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.benchmarks.persevalbench.context import (
    CONTEXTS,
    HIGHLIGHT,
    NOTHING,
    RECENT,
    PaperContext,
    context_text,
    removed,
    shown_turns,
)
from persona_lab.benchmarks.persevalbench.records import Scenario, State, Turn

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def state(*turns: int) -> State:
    fields = ("Likes it quiet.", "user", "evenings", "current", "strong", "none")
    return State(*fields, role="Dominate", turns=turns)


def scenario(
    texts: Sequence[str] = WORDS,
    a: Sequence[int] = (3, 7),
    b: Sequence[int] = (5,),
    users: Sequence[int] | None = None,
) -> Scenario:
    """These turns, user and assistant in turn but for `users`, and a target request."""
    speaks = set(range(1, len(texts) + 1, 2) if users is None else users)
    turns = [Turn("user" if n in speaks else "assistant", text) for n, text in enumerate(texts, 1)]
    return Scenario(
        id="s01",
        relation="re_entry",
        subtype="stale_superseded",
        state_relation="old_vs_new_value",
        form="explicit",
        a=state(*a),
        b=state(*b) if b else None,
        turns=(*turns, Turn("user", "the target request")),
        episodes=(1, 5),
        right="Right.",
        error="Wrong.",
    )


# Ten turns of one word; A stands in turns 3 and 7, B in turn 5, the second episode begins at 5.
BY_HAND: dict[PaperContext, list[str]] = {
    "target_only": [NOTHING],
    # The preceding six turns.
    "recent": [
        "Turn 1 (user): five", "Turn 2 (assistant): six", "Turn 3 (user): seven",
        "Turn 4 (assistant): eight", "Turn 5 (user): nine", "Turn 6 (assistant): ten",
    ],
    "full": [
        "Turn 1 (user): one", "Turn 2 (assistant): two", "Turn 3 (user): three",
        "Turn 4 (assistant): four", "Turn 5 (user): five", "Turn 6 (assistant): six",
        "Turn 7 (user): seven", "Turn 8 (assistant): eight", "Turn 9 (user): nine",
        "Turn 10 (assistant): ten",
    ],
    # One mark for both states.
    "full_highlights": [
        "Turn 1 (user): one", "Turn 2 (assistant): two", ">>> Turn 3 (user): three",
        "Turn 4 (assistant): four", ">>> Turn 5 (user): five", "Turn 6 (assistant): six",
        ">>> Turn 7 (user): seven", "Turn 8 (assistant): eight", "Turn 9 (user): nine",
        "Turn 10 (assistant): ten",
    ],
    "gold_only": ["Turn 1 (user): three", "Turn 2 (user): five", "Turn 3 (user): seven"],
    # Without turns 3 and 7 and the replies 4 and 8; B stays.
    "full_minus_relevant": [
        "Turn 1 (user): one", "Turn 2 (assistant): two", "Turn 3 (user): five",
        "Turn 4 (assistant): six", "Turn 5 (user): nine", "Turn 6 (assistant): ten",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_a_small_dialogue_by_hand(name: PaperContext) -> None:
    assert context_text(scenario(), name) == "\n".join(BY_HAND[name])


def test_all_contexts_of_the_paper() -> None:
    """Section 4 and Appendix C.4."""
    assert (*BY_HAND, "full_minus_unrelated") == CONTEXTS
    assert RECENT == 6


def test_a_short_history_is_shown_whole() -> None:
    small = scenario(WORDS[:4], a=[1], b=[])
    assert shown_turns(small, "recent") == shown_turns(small, "full") == [1, 2, 3, 4]
    assert context_text(scenario([], a=[], b=[]), "full") == NOTHING


def test_a_context_depends_on_no_episode_border() -> None:
    for name in CONTEXTS:
        texts = {
            context_text(replace(scenario(), episodes=episodes), name)
            for episodes in [(1,), (1, 5), (1, 3, 8)]
        }
        assert len(texts) == 1


def test_highlights_do_not_say_which_state_a_turn_expresses() -> None:
    """A and B may change places; where both stand in the history, so may their roles."""
    for name in ("full_highlights", "gold_only"):
        one, other = scenario(a=[3, 7], b=[5]), scenario(a=[5], b=[3, 7])
        assert context_text(one, name) == context_text(other, name)


@pytest.mark.parametrize("name", ["target_only", "recent", "full"])
def test_the_plain_contexts_do_not_depend_on_where_the_evidence_is(name: PaperContext) -> None:
    assert context_text(scenario(a=[3, 7], b=[5]), name) == context_text(
        scenario(a=[9], b=[]), name
    )


def test_gold_evidence_is_in_chronological_order() -> None:
    assert shown_turns(scenario(a=[1, 9], b=[2, 4]), "gold_only") == [1, 2, 4, 9]
    assert shown_turns(scenario(a=[9, 3], b=[]), "gold_only") == [3, 9]


@pytest.mark.parametrize(
    ("a", "users", "left_out"),
    [
        # A reply to each turn.
        ([3], (1, 3, 5, 7, 9), [3, 4]),
        # The last reply before the target counts too.
        ([9], (1, 3, 5, 7, 9), [9, 10]),
        # Turn 10 is the user's and the last before the target: no reply follows.
        ([10], (1, 3, 5, 7, 9, 10), [10]),
        # Turns 3 and 4 both express A: turn 4 is left out once.
        ([3, 4], (1, 3, 5, 7, 9), [3, 4]),
        # An assistant's turn expresses A: the user's next turn is no reply to it.
        ([4], (1, 3, 5, 7, 9), [4]),
        # The user goes on, so no assistant reply follows turn 3; turn 4 has one.
        ([3], (1, 3, 4, 6, 8), [3]),
        ([3, 4], (1, 3, 4, 6, 8), [3, 4, 5]),
        # Two turns of A with their replies.
        ([1, 7], (1, 3, 5, 7, 9), [1, 2, 7, 8]),
    ],
)
def test_what_relevant_history_is(
    a: Sequence[int], users: Sequence[int], left_out: Sequence[int]
) -> None:
    """Appendix C.4: A's turns, together with the assistant reply that follows each."""
    made = scenario(a=a, b=[5] if 5 not in a else [], users=users)
    shown = shown_turns(made, "full_minus_relevant")
    assert [n for n in range(1, 11) if n not in shown] == left_out
    assert removed(made, "full_minus_relevant") == len(left_out)
    assert removed(made, "full_minus_unrelated") == len(left_out)


def test_the_target_is_not_taken_for_a_reply() -> None:
    """Nine turns: the last one expresses A, and the target follows it."""
    made = scenario(WORDS[:9], a=[9], b=[])
    assert shown_turns(made, "full_minus_relevant") == list(range(1, 9))


def test_unrelated_turns_are_drawn_by_seed() -> None:
    made = scenario()
    texts = [context_text(made, "full_minus_unrelated", seed) for seed in range(20)]
    assert texts == [context_text(made, "full_minus_unrelated", seed) for seed in range(20)]
    # Four of the seven turns that are no evidence are left out: 35 ways.
    assert len(set(texts)) > 1
    for seed in range(20):
        shown = shown_turns(made, "full_minus_unrelated", seed)
        assert len(shown) == 6
        assert {3, 5, 7} <= {*shown}


def test_other_scenarios_leave_other_turns_out() -> None:
    drawn = {
        tuple(shown_turns(replace(scenario(), id=f"s{n:02}"), "full_minus_unrelated"))
        for n in range(20)
    }
    assert len(drawn) > 1


def test_no_more_is_left_out_than_is_unrelated() -> None:
    # Turns 1 and 3 with their replies are relevant, and 5 is evidence: turns 2, 4 and 6 are left.
    made = scenario(WORDS[:6], a=[1, 3], b=[5])
    assert removed(made, "full_minus_relevant") == 4
    assert shown_turns(made, "full_minus_unrelated") == [1, 3, 5]


@pytest.mark.parametrize(
    "text", ["a\nb", "a\r\nb", " a\t\tb ", "a\u2028b", "a\u2029b", "a\x0bb", "a\x85b", "a\n\n\nb"]
)
def test_a_turn_with_line_breaks_is_one_line(text: str) -> None:
    made = scenario(["x", text], a=[1], b=[])
    assert context_text(made, "full").splitlines() == [
        "Turn 1 (user): x",
        "Turn 2 (assistant): a b",
    ]


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    number = draw(st.integers(1, 14))
    numbers = st.integers(1, number)
    texts = draw(st.lists(st.text(min_size=1).filter(str.strip), min_size=number, max_size=number))
    a = draw(st.sets(numbers, min_size=1, max_size=3))
    b = draw(st.sets(numbers, max_size=3)) - a
    return scenario(texts, sorted(a), sorted(b), sorted(draw(st.sets(numbers))))


LINE = re.compile(r"(?:>>> )?Turn (\d+) \((user|assistant)\): (.*)", re.DOTALL)


@given(scenarios(), st.sampled_from(CONTEXTS), st.integers(0, 5))
def test_any_context_is_numbered_turns_in_order(
    made: Scenario, name: PaperContext, seed: int
) -> None:
    shown = shown_turns(made, name, seed)
    assert shown == sorted(set(shown))
    assert all(1 <= n < made.target for n in shown)
    text = context_text(made, name, seed)
    if not shown:
        assert text == NOTHING
        return
    lines = text.splitlines()
    found = [match for line in lines if (match := LINE.fullmatch(line))]
    assert len(found) == len(lines) == len(shown)
    for place, (match, n) in enumerate(zip(found, shown, strict=True), 1):
        turn = made.turns[n - 1]
        assert (int(match[1]), match[2]) == (place, turn.role)
        assert match[3].split() == turn.text.split()
    marked = {n for n, line in zip(shown, lines, strict=True) if line.startswith(HIGHLIGHT)}
    assert marked == ({*made.evidence} if name == "full_highlights" else set())


@given(scenarios(), st.integers(0, 5))
def test_the_ablations_of_any_scenario_match(made: Scenario, seed: int) -> None:
    everything = set(range(1, made.target))
    kept = {*shown_turns(made, "full_minus_relevant", seed)}
    assert not kept & {*made.a.turns}
    others = everything - kept - {*made.a.turns}
    assert all(n - 1 in made.a.turns and made.turns[n - 1].role == "assistant" for n in others)
    left_out = everything - {*shown_turns(made, "full_minus_unrelated", seed)}
    assert not left_out & {*made.evidence}
    unrelated = everything - {*made.evidence}
    assert len(left_out) == min(len(everything - kept), len(unrelated))
    assert removed(made, "full_minus_unrelated", seed) == len(left_out)
