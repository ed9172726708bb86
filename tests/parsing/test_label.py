"""Replies of the kinds that judges give to `{label: 'follow' | 'do_not_follow'}`."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from persona_lab.parsing.label import parse_label

LABELS = ("follow", "do_not_follow")

STATED = {
    '{"label": "follow"}': "follow",
    '{"label": "do_not_follow"}': "do_not_follow",
    '{"Label": "Follow"}': "follow",
    '{"LABEL": "DO NOT FOLLOW"}': "do_not_follow",
    '{"label": "do-not-follow"}': "do_not_follow",
    '{"label": "do_not_follow."}': "do_not_follow",
    '{"label": "\'follow\'"}': "follow",
    '{"label": "ｆｏｌｌｏｗ"}': "follow",
    '{"reason": "label: do_not_follow would be harsh", "label": "follow"}': "follow",
    '{"result": {"label": "do_not_follow"}}': "do_not_follow",
    '[{"label": "follow"}]': "follow",
    '```json\n{"label": "do_not_follow"}\n```': "do_not_follow",
    '```json {"label": "follow"}```': "follow",
    'Here is my verdict:\n{"label": "follow"}\nHope this helps!': "follow",
    "Format: {label: 'follow' | 'do_not_follow'}\n{\"label\": \"follow\"}": "follow",
    '<think>\n{"label": "follow"}\n</think>{"label": "do_not_follow"}': "do_not_follow",
    "label: follow or label: do_not_follow?\n</think>\n\nlabel: follow": "follow",
    "{label: 'follow'}": "follow",
    "{label: 'do_not_follow'}": "do_not_follow",
    "{'label': 'do_not_follow'}": "do_not_follow",
    "{'Label': 'Do not follow'}": "do_not_follow",
    '{"label": follow}': "follow",
    "{label: do_not_follow}": "do_not_follow",
    '{"label": "follow",}': "follow",
    '{"label": "do\\_not\\_follow"}': "do_not_follow",
    "{\n  label: 'follow',\n  reason: 'it does'\n}": "follow",
    "{'reason': 'ok, label: follow', 'label': 'do_not_follow'}": "do_not_follow",
    "{'reason': 'it's so, label: follow', 'label': 'do_not_follow'}": "do_not_follow",
    "```\n{label: 'do_not_follow'}\n```": "do_not_follow",
    "{“label”: “follow”}": "follow",
    "｛label：‘do＿not＿follow’｝": "do_not_follow",
    "label: follow": "follow",
    "Label: do not follow.": "do_not_follow",
    "**Label:** do_not_follow": "do_not_follow",
    "**Label**: `follow`": "follow",
    "_Label:_ follow": "follow",
    '"label" = "follow"': "follow",
    "Final label: do_not_follow": "do_not_follow",
    "Label:\n**do_not_follow**\n\nThe nickname is absent.": "do_not_follow",
    "label: follow, because it uses the nickname": "follow",
    "Label: follow because it uses the nickname": "follow",
    "label: do_not_follow - the tone is casual": "do_not_follow",
    "Reason for this label: no emoji.\nlabel: follow\nWhy this label: it fits": "follow",
    "label: follow | do_not_follow\nlabel: follow": "follow",
    "follow": "follow",
    "Do_Not_Follow": "do_not_follow",
    "do not follow": "do_not_follow",
    "do-not-follow": "do_not_follow",
    "'do_not_follow'": "do_not_follow",
    '**"follow".**': "follow",
    "`follow`": "follow",
    "```json\nfollow\n```": "follow",
    "Ｆｏｌｌｏｗ。": "follow",
}

SILENT = {
    "": "empty",
    " \n\t": "empty",
    "<think>label: follow": "truncated_reasoning",
    '{"label": "do_not': "truncated",
    '{"label": ': "truncated",
    "{label: 'follow'": "truncated",
    "{label: 'follow' | 'do_not_follow'}": "ambiguous",
    '{"label": "follow" | "do_not_follow"}': "ambiguous",
    '{"label": "follow | do_not_follow"}': "ambiguous",
    "label: follow or do_not_follow": "ambiguous",
    "label: follow, do_not_follow": "ambiguous",
    "label: follow\nI mean label: 'follow' / 'do_not_follow'": "ambiguous",
    "follow | do_not_follow": "ambiguous",
    '{"label": "follow", "label": "do_not_follow"}': "ambiguous",
    '{"label": "follow", "Label": "do_not_follow"}': "ambiguous",
    "{'label': 'follow', 'label': 'do_not_follow'}": "ambiguous",
    "{label: 'follow', label: 'do_not_follow',}": "ambiguous",
    '{"reason": "as "x", label: follow, is no", "label": "do_not_follow"}': "ambiguous",
    "The response follows the preference.": "no_answer",
    "I would say follow-up": "no_answer",
    "I would follow it.": "no_answer",
    "label: follow-up": "no_answer",
    "label: follow up": "no_answer",
    "label: followed": "no_answer",
    "label: follow?": "no_answer",
    "label: follow, do_not_follow_at_all": "no_answer",
    "label: not follow": "no_answer",
    "label: does not follow": "no_answer",
    "label: partially_follow": "no_answer",
    "label: follow\nlabel: partially_follow": "no_answer",
    "label it as 'follow'": "no_answer",
    "preference_label: follow": "no_answer",
    "does not follow": "no_answer",
    "don't follow": "no_answer",
    "donotfollow": "no_answer",
    "not_follow": "no_answer",
    "partially_follow": "no_answer",
    "follow follow": "no_answer",
    "yes": "no_answer",
    "maybe": "no_answer",
    "null": "no_answer",
    "1": "no_answer",
    '["follow"]': "no_answer",
    '{"label": null}': "no_answer",
    '{"label": true}': "no_answer",
    '{"label": 1}': "no_answer",
    '{"label": NaN}': "no_answer",
    '{"label": ""}': "no_answer",
    '{"label": ["follow"]}': "no_answer",
    '{"label": "maybe"}': "no_answer",
    '{"label": "partially_follow"}': "no_answer",
    '{"label": "does not follow"}': "no_answer",
    '{"label": "follow"} {"label": null}': "no_answer",
    '{"verdict": "follow"}': "no_answer",
    '{"verdict": "no", "reason": "{label: \'follow\'} is too kind"}': "no_answer",
    "{label: null}": "no_answer",
    "{'label': ['follow']}": "no_answer",
    '"follow" is what I\'d expect': "no_answer",
}

FLAGS = {
    '{"label": "follow"}': (),
    '{"label": "follow"} {"label": "FOLLOW"}': (),
    '{"label": "do_not_follow"} ... {"label": "follow"}': ("differing",),
    '{"label": "maybe"} {"label": "follow"}': ("differing",),
    "{label: 'follow'}": ("repaired",),
    '{"label": "follow",}': ("repaired",),
    "{label: 'do_not_follow'} or rather {label: 'follow'}": ("repaired", "differing"),
    "{label: 'follow' | 'do_not_follow'}: {label: 'follow'}": ("repaired",),
    "label: do_not_follow\nlabel: follow": ("differing",),
    "**Label:** follow": (),
    "follow": (),
}


@pytest.mark.parametrize(("reply", "label"), STATED.items())
def test_stated_label_is_read(reply: str, label: str) -> None:
    assert parse_label(reply, LABELS).value == label


@pytest.mark.parametrize(("reply", "reason"), SILENT.items())
def test_no_stated_label_is_none_with_a_reason(reply: str, reason: str) -> None:
    parsed = parse_label(reply, LABELS)
    assert parsed.value is None
    assert parsed.reason == reason


@pytest.mark.parametrize(("reply", "flags"), FLAGS.items())
def test_flags_say_what_was_done(reply: str, flags: tuple[str, ...]) -> None:
    parsed = parse_label(reply, LABELS)
    assert parsed.value == "follow"
    assert parsed.flags == flags


def test_other_labels_under_another_key() -> None:
    labels = ("applied", "not applied", "applied (partly)")
    assert parse_label('{"Verdict": "not_applied"}', labels, "verdict").value == "not applied"
    assert parse_label("verdict: applied (partly)", labels, "verdict").value == "applied (partly)"
    assert parse_label("label: applied", labels, "verdict").value is None


SPELLED = st.sampled_from(LABELS).flatmap(
    lambda label: st.tuples(
        st.just(label),
        st.sampled_from([label, label.upper(), label.title(), label.replace("_", " ")]),
    )
)
SURROUNDINGS = [
    ("", ""),
    ("'", "'"),
    ('"', '"'),
    ("“", "”"),
    ("**", "**"),
    ("`", "`"),
    ("```\n", "\n```"),
    ("```json\n", "\n```"),
    ("<think>follow?</think>", ""),
    ("label: do_not_follow</think>", ""),
]
STATEMENTS = [
    '{{"label": "{}"}}',
    "{{label: '{}'}}",
    "{{'label':'{}'}}",
    "label: {}",
    '"label" = "{}"',
    "**Label:** {}",
    "{}",
    "{}.",
]
SPACES = st.text(" \n\t", max_size=4)


@given(SPELLED, st.sampled_from(STATEMENTS), st.sampled_from(SURROUNDINGS), SPACES, SPACES)
def test_a_label_comes_back_whatever_surrounds_it(
    label: tuple[str, str], form: str, around: tuple[str, str], before: str, behind: str
) -> None:
    reply = around[0] + before + form.format(label[1]) + behind + around[1]
    assert parse_label(reply, LABELS).value == label[0]


@given(st.text() | st.text("label:=follow_dnt {}'\",|\n"))
def test_any_text_gives_a_label_or_a_reason(text: str) -> None:
    parsed = parse_label(text, LABELS)
    assert (parsed.value in LABELS) != bool(parsed.reason)


@given(st.text(max_size=20), st.sampled_from(LABELS), st.text(max_size=40))
def test_json_labels_round_trip(other: str, label: str, reason: str) -> None:
    assume("</think>" not in other + reason)  # ends the reasoning wherever it stands
    reply = json.dumps({"reason": reason, "label": label, "other": other})
    assert parse_label(reply, LABELS).value == label


@given(st.text("abcdefw_ -", min_size=1), st.sampled_from(LABELS))
def test_a_longer_label_is_none_of_them(more: str, label: str) -> None:
    for text in (more + label, label + more):
        value = parse_label(json.dumps({"label": text}), LABELS).value
        assert value is None or value == text.strip(" _")
