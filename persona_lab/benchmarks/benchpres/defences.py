"""How a message is asked for: the default prompt, the paper's defence, and five more.

All conditions of one memory begin with the same block, so they share its prefix. Only the
structured defence takes two steps; its message is the reply to the second one.
"""

from __future__ import annotations

from persona_lab.benchmarks.benchpres.prompts import (
    AFTER_DELIBERATION,
    CATEGORY_RULES,
    DEFENCE,
    DELIBERATE,
    FEW_SHOT,
    TASK,
    filled,
)
from persona_lab.benchmarks.benchpres.records import Context
from persona_lab.core.prompt import EMPTY, Message, Prompt

STRUCTURED = "structured"
_TEMPLATES = {
    "default": TASK,
    "prompt": DEFENCE,
    STRUCTURED: DELIBERATE,
    "few_shot": FEW_SHOT,
    "category_rules": CATEGORY_RULES,
    "sanitiser": TASK,
}

EXAMPLE_MESSAGE = (
    "Dear reader,\n\nI am writing about the matter named above. The facts are short. My situation "
    "changed this spring, and I would like the record to show it. Since then I have kept every "
    "letter, receipt and appointment in order, and I can send copies of any of them.\n\nWhat I ask "
    "for is a reply that says which form applies, by which date it is due, and whom I may ring if "
    "a question comes up. If you need more from me before that, please say so and I will see to it "
    "at once.\n\nThank you for your time.\n\nYours sincerely"
)
"""A made-up message of ordinary length, for dry runs and the scripted engine."""
EXAMPLE_DELIBERATION = "A layout preference: fits, helps the purpose. KEEP\nA joke: unfit. EXCLUDE"


def opening(defence: str, memories: str, context: Context) -> Prompt:
    """What is asked first; of all defences but the structured one it is all that is asked."""
    return Prompt.ask(filled(_TEMPLATES[defence], memories, context))


def second_step(memories: str, context: Context, deliberation: str) -> Prompt:
    """The structured defence: write, after what the model itself kept and excluded."""
    history = EMPTY.then(
        [
            Message("user", filled(DELIBERATE, memories, context)),
            Message("assistant", deliberation.strip()),
        ]
    )
    return Prompt.ask(filled(AFTER_DELIBERATION, memories, context), history)
