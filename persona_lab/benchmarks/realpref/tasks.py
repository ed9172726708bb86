"""The three question forms (section 4.1) and the methods that add text to them (section 5.1).

Every method adds its text after the history and before the question, so all methods and all
questions share the history's prefix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from persona_lab.benchmarks.realpref.few_shot import few_shot_text
from persona_lab.benchmarks.realpref.prompts import CHOICE, REMINDER, TRUTH
from persona_lab.benchmarks.realpref.records import LABELS, Query
from persona_lab.core.experiment import stable_digest

Task = Literal["multiple_choice", "true_or_false", "open_ended"]
MethodName = Literal["zero_shot", "reminder", "few_shot_cot", "rag", "mem0"]

EXAMPLE_ANSWER = (
    "Given what you have told me, I would look for something that fits how you go about things. "
    "Start with the plainest version of the idea, because it asks least of you and you can tell "
    "within a day whether it suits you. If it does, build on it: add one element at a time, keep "
    "what you notice yourself using, and drop the rest without regret. If it does not, try the "
    "opposite for a week and compare the two. A practical first step is to ask someone nearby "
    "what they would choose and why, then decide which of their reasons apply to you. I can also "
    "put together a short list with prices, places and times, sorted by what mattered to you in "
    "our earlier conversations, so that you only have to pick from three options."
)
"""A made-up answer of ordinary length, for dry runs and the scripted engine."""


@dataclass(frozen=True)
class Question:
    """One thing to ask.

    Attributes:
        form: `` for the only form, `T` and `F` for the two statements of a true-or-false query.
        expected: the right label, `True` or `False`; empty for an open-ended question.
        example: a reply that its parser accepts; empty where any text is an answer.
    """

    form: str
    text: str
    expected: str
    example: str


def option_order(item: str, *, shuffled: bool) -> str:
    """The data's labels in the order in which a multiple-choice question shows their options.

    The data's own order, or one that follows from a stable digest of the item's id.
    """
    if not shuffled:
        return LABELS
    return "".join(sorted(LABELS, key=lambda label: stable_digest(f"{item}/{label}")))


def questions(query: Query, task: Task, order: str = LABELS) -> Iterator[Question]:
    """The question or questions of a query under a task.

    Args:
        order: the data's labels in the order shown; they are relabelled A to D.
    """
    if task == "open_ended":
        yield Question("", query.query, "", "")
    elif task == "multiple_choice":
        shown = dict(zip(LABELS, (query.options[label] for label in order), strict=True))
        listed = "\n".join(f"{label}. {option}" for label, option in shown.items())
        right = LABELS[order.index(query.correct)]
        yield Question("", f"{query.query}\n\n{listed}\n\n{CHOICE}", right, right)
    else:
        for form, text in (("T", query.true_form), ("F", query.false_form)):
            expected = "True" if form == "T" else "False"
            yield Question(form, f"{text}\n\n{TRUTH}", expected, expected)


def with_method(method: MethodName, question: str, found: str = "") -> str:
    """The last user message: what the method says, then the question (Appendix H.2.1).

    Args:
        found: what RAG or Mem0 says; nothing, if nothing was found.
    """
    before = {
        "zero_shot": "",
        "reminder": REMINDER,
        "few_shot_cot": few_shot_text(),
        "rag": found,
        "mem0": found,
    }[method]
    return f"{before}\n\n{question}" if before else question
