"""Few-shot chain-of-thought (Appendix H.2.1): the paper's frame around three examples.

The frame is the paper's, word for word; line breaks, which its text copy lost, are set here. The
examples are this project's own: none is about a user or a topic of the data.
"""

from __future__ import annotations

from typing import NamedTuple

from persona_lab.benchmarks.realpref.prompts import REMINDER


class Example(NamedTuple):
    """A preference, a query, and a response that names and follows the preference."""

    preference: str
    query: str
    response: str


_BEFORE = f"{REMINDER}\nHere are a few good response examples for your information:"
_AFTER = (
    "Now recall my preference indicated in the conversation history (not the user preferences in "
    "the examples above), and provide an answer that aligns with my preferences."
)

EXAMPLES = (
    Example(
        "Only plays board games that end within twenty minutes, because long ones make her "
        "watch the clock instead of the table.",
        "What could we play when my cousins come over on Saturday?",
        "You told me that anything past twenty minutes turns into watching the clock, so I "
        "looked only at games that are over before that, and at ones that bear repeating. "
        "First, Love Letter: a round takes about four minutes, and six rounds still leave "
        "time for cake. Second, Kingdomino: fifteen minutes for four people, quick turns, "
        "nobody waits. Third, a card game such as The Mind, where each level is two or three "
        "minutes and you can stop after any of them. I left out the big strategy boxes on "
        "purpose; they run for an hour or more, and you would be back at the clock. A plan "
        "for the afternoon: start with Love Letter while people arrive, put Kingdomino on the"
        " table once everybody is there, and keep The Mind for the end, because it needs no "
        "scoring. If the cousins ask for one more, you can say yes each time without giving "
        "the evening away.",
    ),
    Example(
        "Prefers repairing worn clothes visibly over buying new ones, because a mended piece "
        "keeps the memory of where it tore.",
        "My winter coat looks tired; what should I do about it?",
        "Since a mend that shows is worth more to you than a new coat, because it keeps the "
        "memory of where it tore, I would not replace it. Here is how I would go about it. "
        "Look it over in daylight and mark three kinds of damage with chalk: holes, thin "
        "places and tired edges. For holes, lay a patch of contrasting wool behind and fix it"
        " with rows of running stitch in a thread two shades lighter, so that the repair is a"
        " drawing and not a secret. For thin elbows, darn on a small loom, with a colour that"
        " you connect with the place where you wore them out. For the cuffs, bind the edge "
        "with tape by hand; it takes an evening and lasts for years. Brush and steam the "
        "whole coat before you start, as felted wool hides smaller holes. If one part is "
        "beyond you, a tailor who does visible mending can set the lining while you keep the "
        "stitches that show. Shall I sketch an order of work for two weekends?",
    ),
    Example(
        "Dislikes being met at stations and airports, because the first hour in a new city "
        "belongs to him alone.",
        "I arrive in Porto on Thursday at noon; how should I get to my hotel?",
        "You have said that being met spoils the first hour, which you want for yourself, so "
        "this is a way to the hotel with nobody holding a sign. From the airport take the "
        "metro, the violet line, to Trindade: it runs every twenty to thirty minutes, needs a"
        " rechargeable card from the machine, and takes about half an hour. I would not go "
        "straight on. Get off, leave your bag in a locker at the station, and walk downhill "
        "by whatever street you like until you see the river; it is hard to get lost, because"
        " everything slopes to the same place. Sit down somewhere with a view of the bridge "
        "and let the hour be over before you pick the bag up. Then it is ten minutes on foot,"
        " or one stop, to most hotels in the centre. If your host offers to collect you, a "
        "short note helps: you arrive in the afternoon and will find the way. A taxi costs "
        "more and ends the hour too soon, so I would keep it for rain.",
    ),
)
"""Three, as in the paper."""


def few_shot_text() -> str:
    """What stands between the history and the question."""
    shown = [
        f"Example {number}:\n- Preference: {example.preference}\n- Query: {example.query}\n"
        f"- Good Response: {example.response}"
        for number, example in enumerate(EXAMPLES, 1)
    ]
    return "\n".join([_BEFORE, *shown, _AFTER])
