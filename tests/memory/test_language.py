"""Facts in another script than their user writes in."""

from __future__ import annotations

from pathlib import Path

import pytest

from persona_lab.memory.language import foreign, scripts
from persona_lab.memory.records import Exchange
from tests.memory.scripted import Remembering, script, talk, texts

CHINESE = "我对花生过敏，叫我小明"


@pytest.mark.parametrize(
    ("user", "fact", "expected"),
    [
        (CHINESE, "对花生过敏", False),
        (CHINESE, "Allergic to peanuts, called Xiaoming", True),
        (CHINESE, "小明 is allergic to peanuts", True),
        ("I am allergic to peanuts", "对花生过敏", True),
        ("I am allergic to peanuts", "Is allergic to peanuts", False),
        ("我喜欢喝茶，叫我 Tom 吧", "Likes tea", True),
        ("我喜欢喝茶，叫我 Tom 吧", "喜欢喝茶，叫 Tom", False),
        ("我用 Visual Studio Code", "Visual Studio Code", False),
        ("東京に住んでいます", "東京在住", False),
        ("とうきょうにすんでいます", "東京在住", False),
        ("我住在东京", "とうきょうにすむ", True),
        ("ｶﾀｶﾅ", "カタカナ", False),
        ("나는 차를 좋아해요", "차를 좋아함", False),
        ("나는 차를 좋아해요", "Likes tea", True),
        ("Я люблю чай", "Любит чай", False),
        ("Я люблю чай", "Lubit chay", True),
        ("أحب الشاي", "يحب الشاي", False),
        ("मुझे चाय पसंद है", "चाय पसंद है", False),
        ("मुझे चाय पसंद है", "Likes tea", True),
        ("Μου αρέσει το τσάι", "Likes tea", True),
        ("אני אוהב תה", "Likes tea", True),
        ("ＦＵＬＬ ＷＩＤＴＨ", "Full width", False),
        (CHINESE, "🥜 2026", False),
    ],
)
def test_foreign(user: str, fact: str, expected: bool) -> None:
    assert foreign(fact, Exchange(user, "OK, noted.", "s1/t1")) is expected


def test_without_letters_of_the_user_the_answer_is_compared_with() -> None:
    assert foreign("Likes it", Exchange("👍 10/10", "好的，记住了", "s1/t1"))
    assert not foreign("Likes it", Exchange("👍", "🙂", "s1/t1"))


def test_scripts_are_counted_by_sign_or_by_word() -> None:
    """我 and 用, two words of Latin, of which one ends in a third sign."""
    assert scripts("我用 Visual Studio码 42") == {"Han": 3, "Latin": 2}


def test_a_mismatch_is_counted_once_a_fact_and_the_text_is_kept(tmp_path: Path) -> None:
    facts = {CHINESE: ["对花生过敏", "Is called 小明"], "我也对核桃过敏": ["也对核桃过敏"]}
    decisions = {"也对核桃过敏": ("UPDATE", "对花生过敏", "Allergic to peanuts and walnuts")}
    made = Remembering(tmp_path, script(facts, decisions)).of(talk("ann", *facts))["ann"]
    assert texts(made) == ["Allergic to peanuts and walnuts", "Is called 小明"]
    assert made.counts.language_mismatch == 2


def test_the_language_of_the_user_is_kept(tmp_path: Path) -> None:
    facts = {CHINESE: [CHINESE]}
    made = Remembering(tmp_path, script(facts)).of(talk("ann", CHINESE))["ann"]
    assert "小明" in texts(made)[0]
    assert made.counts.language_mismatch == 0
