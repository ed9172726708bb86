from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.core.prompt import EMPTY, Message, Prompt, Sampling
from tests.models import ask

messages = st.lists(
    st.builds(Message, st.sampled_from(["user", "assistant"]), st.text(max_size=5)), max_size=6
)


def test_longer_history_shares_the_shorter_one() -> None:
    short = EMPTY.then([Message("user", "a")])
    long = short.then([Message("assistant", "b")])
    assert long.parent is short
    assert long.path[:1] == short.path
    assert [m.content for m in long.messages] == ["a", "b"]


@given(messages, messages)
def test_digests_agree_exactly_where_messages_do(left: list[Message], right: list[Message]) -> None:
    assert (EMPTY.then(left).path == EMPTY.then(right).path) == (left == right)


@given(messages, st.integers(0, 6))
def test_digest_does_not_depend_on_the_split(chat: list[Message], at: int) -> None:
    whole, split = Prompt(EMPTY, tuple(chat)), Prompt(EMPTY.then(chat[:at]), tuple(chat[at:]))
    assert whole.digest == split.digest
    assert list(whole) == list(split) == chat


def test_message_borders_count() -> None:
    one = EMPTY.then([Message("user", "a"), Message("user", "b")])
    other = EMPTY.then([Message("user", "ab")])
    assert one.digest != other.digest


@pytest.mark.parametrize(
    "changes",
    [{"sample": 1}, {"seed": 1}, {"schema": "{}"}, {"reasoning": True}, {"max_tokens": 9}],
    ids=str,
)
def test_key_covers_all_that_can_change_a_reply(changes: dict[str, int]) -> None:
    assert ask("x", **changes).key != ask("x").key


def test_key_leaves_out_role_and_example() -> None:
    assert ask("x", role="judge").key == ask("x", role="target").key


def test_sampling_seed_is_reproducible_and_differs_by_sample() -> None:
    assert ask("x", sample=1).sampling_seed == ask("x", sample=1).sampling_seed
    assert ask("x", sample=1).sampling_seed != ask("x", sample=2).sampling_seed


def test_an_answer_needs_a_token() -> None:
    with pytest.raises(ValueError, match="max_tokens"):
        Sampling(max_tokens=0)
