from __future__ import annotations

from persona_lab.engines.reasoning import settled_reply, split_tags

START, END = 1, 2


def test_the_first_closing_tag_divides() -> None:
    split = split_tags([START, 7, END, 8, END, 9], START, END, opened=False)
    assert (split.reasoning, split.answer, split.closed) == ([7], [8, END, 9], True)


def test_a_closing_tag_without_an_opening_one_counts() -> None:
    split = split_tags([7, END, 8], START, END, opened=False)
    assert (split.reasoning, split.answer) == ([7], [8])


def test_an_unclosed_block_leaves_no_answer() -> None:
    split = split_tags([7, 8], START, END, opened=True)
    assert (split.reasoning, split.answer, split.closed) == ([7, 8], [], False)


def test_a_tokenizer_without_the_tags_has_no_reasoning() -> None:
    assert split_tags([7, 8], None, None, opened=False).reasoning is None


def test_an_answer_in_the_reasoning_field_is_recovered_and_flagged() -> None:
    reply = settled_reply(None, "B", "stop", reasoning_on=False)
    assert (reply.text, reply.reasoning) == ("B", None)
    assert reply.flags == ("answer_from=reasoning_field",)


def test_reasoning_is_never_graded() -> None:
    reply = settled_reply("", "surely B", "length", reasoning_on=True, closed=False)
    assert (reply.text, reply.outcome, reply.reason) == ("", "truncated", "truncated_reasoning")
    unsure = settled_reply("", "surely B", "stop", reasoning_on=None)
    assert unsure.text == ""


def test_a_cut_answer_keeps_its_text() -> None:
    reply = settled_reply("half an ans", "done", "length", reasoning_on=True)
    assert (reply.text, reply.reason) == ("half an ans", "truncated")


def test_any_other_finish_reason_is_a_failure() -> None:
    for reason in (None, "abort", "error"):
        assert settled_reply("text", None, reason, reasoning_on=None).outcome == "failed"
