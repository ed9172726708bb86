"""Pairs of name and text; first those of the project's list of known failures."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from persona_lab.parsing.names import RULE, mentions, normalized, visible_name

FOUND = [
    ("Jo", "Hi, Jo!"),
    ("小明", "我叫小明吧"),
    ("🦊", "hi 🦊 !"),
    ("C++", "hi C++ !"),
    ("Jo", "Jo"),
    ("Jo", "John and Jo"),
    ("Jo", "_Jo_"),
    ("Jo", "**Jo**"),
    ("Jo", "Jo's"),
    ("Jo", "Jo’s"),
    ("Jo", '"Jo"'),
    ("Jo", "“Jo”"),
    ("Jo", "Dear Jo,\nthanks"),
    ("Jo", "J\u200bo wins"),
    ("Jo", "J\u00ado\ufeff wins"),
    ("Jo\u200d", "Jo"),
    ("Ann", "Mary-Ann"),
    ("José", unicodedata.normalize("NFD", "Hi José!")),
    (unicodedata.normalize("NFD", "José"), "Hi José!"),
    ("José", "Jose\u200d\u0301"),
    ("O’Neil", "Mr O'Neil"),
    ("O'Neil", "Mr O’Neil"),
    ("OʼNeil", "Mr O‘Neil"),
    ("„Ace“", '"Ace"'),
    ("Mary Ann", "Mary\u00a0Ann"),
    ("Mary Ann", "Mary\n  Ann"),
    ("Max", "我叫Max吧"),
    ("Max", "Maxは"),
    ("Max", "Max는"),
    ("Max", "ที่Maxค่ะ"),
    ("Max", "か\u309aMax"),
    ("ルー", "ルーさん"),
    ("ル", "ルー"),
    ("ﾙｰ", "xﾙｰx"),
    ("々木", "佐々木"),
    ("민수", "민수야"),
    ("ส้ม", "คุณส้มคะ"),
    ("राम", "राम आया।"),
    ("12", "我12岁"),
    ("C++", "我叫C++吧"),
    ("C++", "(C++)"),
    ("C++", "C++, C++'s"),
    ("J.", "Dear J., thanks"),
    ("J.", "J.R. and J."),
    ("❤", "I ❤️ it"),
    ("❤️", "I ❤ it"),
    ("❤️", "I ❤\ufe0e it"),
    ("🦊", "you🦊you"),
    ("🦊", "🦊🦊"),
    ("👩\u200d🚀", "hi 👩\u200d🚀!"),
    ("👩🏽\u200d🚀", "hi 👩🏽\u200d🚀!"),
    ("🙂\u200d↔️", "🙂\u200d↔"),
    ("👍🏽", "ok👍🏽ok"),
    ("👩", "👩\u200d no"),
    ("🇫🇷", "🇩🇪🇫🇷🇷🇺"),
    ("1️⃣", "a 1️⃣b"),
    ("Jo", "1️⃣Jo"),
]

ABSENT = [
    ("Jo", "John"),
    ("Jo", "MoJo"),
    ("JO", "Jo"),
    ("jo", "Jo"),
    ("Jo", ""),
    ("Jo", "J o"),
    ("Jo", "Jo\u200bhn"),
    ("Jo", "Jo1"),
    ("R2", "R2D2"),
    ("12", "312"),
    ("12", "１２"),
    ("Jose", "José"),
    ("Jose", unicodedata.normalize("NFD", "José")),
    ("Jo", "Jo\u0331"),
    ("Jo", "x\u0331Jo"),
    ("राम", "रामायण"),
    ("Мак", "Макс"),
    ("小明", "小红"),
    ("각", "가"),
    ("가", unicodedata.normalize("NFD", "각")),
    ("ก", "กำ"),
    ("ｶ", "ｶﾞ"),
    ("สม", "ส้ม"),
    ("ကို", "က္ကို"),
    ("C++", "C++11"),
    ("C++", "C++ish"),
    ("J.", "J.R."),
    ("@jo", "ann@jo.org"),
    ("👩", "👩\u200d🚀"),
    ("🚀", "👩\u200d🚀"),
    ("👩\u200d🚀", "👩🚀"),
    ("👍", "👍🏽"),
    ("🏽", "👍🏽"),
    ("🏴", "🏴\U000e0067\U000e0062\U000e007f"),
    ("1", "1️⃣"),
    ("🇪🇫", "🇩🇪🇫🇷"),
    ("🇫", "🇫🇷"),
    ("🇷", "🇫🇷"),
]

SIGNS = "Joé\u0301'’ʼ_+.12 \u00a0\n\u200b\u200c\u200d\ufe0f\u00ad小ーกำ가राम👩🚀❤🏽🇫🇷\u20e3\u2329"
TEXTS = st.text(SIGNS, max_size=12) | st.text(max_size=12)
NAMES = TEXTS.filter(visible_name)


@pytest.mark.parametrize(("name", "text"), FOUND)
def test_mentioned_name_is_found(name: str, text: str) -> None:
    assert mentions(name, text)


@pytest.mark.parametrize(("name", "text"), ABSENT)
def test_part_of_another_name_is_not_found(name: str, text: str) -> None:
    assert not mentions(name, text)


@pytest.mark.parametrize("name", ["", " \n", "\u200b", "\ufe0f\u00ad", "\u200d"])
def test_name_without_a_visible_character_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="nickname"):
        mentions(name, "anything")


def test_rule_has_a_name_that_results_keep() -> None:
    assert RULE == "nfc-case-word-1"


@given(NAMES, TEXTS, TEXTS)
def test_name_between_spaces_is_found(name: str, before: str, behind: str) -> None:
    assert mentions(name, f"{before} {name} {behind}")


@given(NAMES, TEXTS)
def test_normalised_text_gives_the_same_answer(name: str, text: str) -> None:
    assert normalized(normalized(text)) == normalized(text)
    assert mentions(name, normalized(text)) == mentions(name, text)
    assert mentions(normalized(name), text) == mentions(name, text)


@given(NAMES, TEXTS)
def test_match_is_a_substring_of_the_normalised_text(name: str, text: str) -> None:
    assert normalized(name) in normalized(text) or not mentions(name, text)


@given(st.text("abcXYZ019", min_size=1, max_size=4), st.text("abcXYZ019", min_size=1, max_size=3))
def test_name_inside_a_longer_word_is_not_found(name: str, more: str) -> None:
    assume(name not in more)
    assert not mentions(name, name + more)
    assert not mentions(name, more + name)
