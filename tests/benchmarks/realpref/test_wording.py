from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.benchmarks.realpref.wording import (
    content_words,
    stated_preference,
    stem,
    words,
)

STATING = [
    "I like tea.",
    "Well, I really LOVE it here",
    "I’ve always hated gyms",
    "I don't like the idea of a gym",
    "We both enjoy it",
    "I, honestly, love it",
    "I'd hate a gym",
    "I would never like that",
    "I'd always loved it",
    "I've come to love the noise",
    "So that is what I liked",
    "I tried the lanes twice and hated it",
    "Back from the river. Loved it!",
    "Love the cold.",
    "I'd prefer a boat",
    "My preferences are plain",
    "She knows that I disliked it",
    "My favourite oar",
    "the crew's favorite bend",
]


@pytest.mark.parametrize(
    "family",
    [
        "plan plans planned planning",
        "plane planes",
        "take takes taking",
        "dance dances danced dancing",
        "try tries tried trying",
        "movie movies",
        "family families",
        "dish dishes",
        "glass glasses",
        "stay stays stayed staying",
        "use uses used using",
        "hike hikes hiked hiking",
        "agree agrees agreeing",
        "lie lying",
        "ring rings ringing",
        "quiet quietly",
        "complete completely",
    ],
)
def test_forms_of_a_word_share_a_stem(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


@pytest.mark.parametrize(
    "pair", ["plan plane", "car care", "win wine", "bus use", "evening event", "red read", "bed be"]
)
def test_different_words_do_not(pair: str) -> None:
    first, second = pair.split()
    assert stem(first) != stem(second)


@given(st.text("abdeginosty's", max_size=12))
def test_a_stem_is_never_longer_than_its_word(word: str) -> None:
    # At most an e is regained where -ed or -ing went.
    assert len(stem(word)) <= len(word)


def test_content_words() -> None:
    text = "I don’t want my cousin's TWO planes; what would you prefer, or can't you?"
    assert content_words(text) == {"cousin": "cousin", "two": "two", "plane": "planes"}
    assert words("Don’t re-use it") == ["don't", "re", "use", "it"]


@pytest.mark.parametrize("message", STATING)
def test_messages_that_state_a_preference(message: str) -> None:
    assert stated_preference(message)


@pytest.mark.parametrize(
    "message",
    [
        "I like the idea of mixing things up.",
        "Love the idea! I liked your idea, too.",
        "It went like a train; I feel like a new man, like we all do.",
        "Like a shop, isn't it? I look like my father.",
        "I'd like some tips, and I would love to hear more.",
        "Do you think I'd like it? Would I enjoy it? I'll see if I like it.",
        "What would you like to know? Most people like pools.",
        "I was, like, gone. I just, like, ran.",
        "Unlikely. I am likely to go, I likewise.",
        "I can stop whenever I like.",
        "I'd rather row than count tiles.",
        "My sister went and loved it.",
    ],
)
def test_messages_that_state_none(message: str) -> None:
    assert stated_preference(message) is None


@pytest.mark.parametrize(
    ("name", "states"),
    [("Contextualized Mention", True), ("Stylistic Expression", False),
     ("Experience Feedback", False)],
)  # fmt: skip
def test_the_papers_dialogues(paper: str, name: str, states: bool) -> None:
    example = paper.split(f"\n{name} Example ")[1].partition("\n")[0]
    said = re.findall(r"User: (.*?) Assistant: ", example)
    assert len(said) >= 3
    assert any(stated_preference(message) for message in said) is states
