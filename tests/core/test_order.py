from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.core.order import PrefixQueue, PrefixTree
from persona_lab.core.prompt import EMPTY, Message
from tests.models import ask


def test_questions_on_one_history_come_together() -> None:
    histories = [EMPTY.then([Message("user", name)]) for name in "abc"]
    queue = PrefixQueue()
    for question in "12":
        for history in histories:
            queue.push(ask(question, history))
    taken = [queue.pop().prompt.history.digest for _ in range(6)]
    assert len({*taken[0:2]}) == len({*taken[2:4]}) == len({*taken[4:6]}) == 1


def test_a_nested_history_follows_the_one_it_extends() -> None:
    normal = EMPTY.then([Message("user", "n")])
    extended = normal.then([Message("user", "e")])
    other = EMPTY.then([Message("user", "o")])
    queue = PrefixQueue()
    for history in (extended, other, normal):
        queue.push(ask("q", history))
    taken = [queue.pop().prompt.history for _ in range(3)]
    assert taken.index(extended) == taken.index(normal) + 1


def test_the_lift_goes_on_and_turns_round() -> None:
    queue = PrefixQueue()
    for text in "bdf":
        queue.push(ask(text))
    assert queue.pop().prompt.tail[0].content == "b"
    queue.push(ask("a"))  # behind it
    queue.push(ask("c"))  # ahead
    rest = [queue.pop().prompt.tail[0].content for _ in range(4)]
    assert rest == ["c", "d", "f", "a"]


def test_an_empty_queue_says_so() -> None:
    with pytest.raises(IndexError):
        PrefixQueue().pop()


@given(st.lists(st.tuples(st.text("ab", max_size=3), st.text("xy", max_size=3)), max_size=20))
def test_everything_comes_out_once(pairs: list[tuple[str, str]]) -> None:
    queue = PrefixQueue()
    pushed = [ask(tail, EMPTY.then([Message("user", head)])) for head, tail in pairs]
    for request in pushed:
        queue.push(request)
    assert sorted(queue.pop().key for _ in pushed) == sorted(r.key for r in pushed)
    assert len(queue) == 0


def test_unique_tokens_by_hand() -> None:
    # Blocks of 4. The first prompt has 10 tokens: blocks 0-3 and 4-7, then 2 more: 10 new.
    # The second shares blocks 0-3 only: 4 new in its second block, then 1: 5.
    # The third is the first again: nothing new but what follows its last whole block: 2.
    # The fourth has exactly 8 tokens; its last token must be computed, so one block is reusable.
    tree = PrefixTree(4)
    first = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert tree.add(first) == 10
    assert tree.add([0, 1, 2, 3, 9, 9, 9, 9, 9]) == 5
    assert tree.add(first) == 2
    assert tree.add([0, 1, 2, 3, 4, 5, 6, 7]) == 4


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), max_size=8))
def test_single_token_blocks_count_the_trie(prompts: list[list[int]]) -> None:
    """With blocks of one token, unique = trie of all but the last tokens, plus one per prompt."""
    tree = PrefixTree(1)
    total = sum(tree.add(p) for p in prompts)
    trie = {tuple(p[:n]) for p in prompts for n in range(1, len(p))}
    assert total == len(trie) + len(prompts)
