"""The three texts of Mem0's algorithm and their schemas; the words are this project's.

What changes least stands first, so that requests share the longest prefix: the instruction (all
users), then the summary, then the last messages, then the new exchange; of a decision, the
memories oldest first, then the fact.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from persona_lab.memory.records import Exchange

EXTRACT = """\
You keep the long-term memory of one user. Read the new exchange at the end and list the facts \
about the user that will still matter in later conversations: who they are, what they like, \
dislike, own, plan, need and avoid, the people around them, how they want to be answered, and what \
their reactions show about their taste.
- The summary and the earlier messages only help to understand the new exchange: list nothing that \
they alone say.
- What the assistant says is no fact about the user unless the user takes it up.
- Each fact is one short sentence that can be understood by itself.
- Write in the language that the user writes in. Keep names and exact words as they are.
- If the new exchange says nothing of the kind, the list is empty.
Answer only with a JSON object: {"facts": ["...", "..."]}
"""

DECIDE = """\
You keep the long-term memory of one user. Compare the new fact at the end with the memories that \
are most similar to it, and choose one event:
- ADD: no memory says this yet; the fact becomes a new memory.
- UPDATE: the fact completes or renews a memory. "id" is the number of that memory, "text" is one \
sentence that takes its place and keeps what still holds of both.
- DELETE: the fact makes a memory untrue. "id" is the number of that memory, which is removed. If \
the fact itself should be remembered in its place, repeat the fact as "text".
- NOOP: a memory already says this, or it is not worth remembering. "id" is the number of the \
memory that says it.
What an event does not need is left as an empty string. Write in the language of the fact. Keep \
names and exact words as they are.
Answer only with a JSON object: {"event": "ADD, UPDATE, DELETE or NOOP", "id": "...", "text": "..."}
"""

SUMMARISE = """\
You keep a running summary of the conversations of one user with an assistant. Rewrite the summary \
so that it also covers the new messages: what was talked about, what the user told about \
themselves, what was settled and what is open. Write at most 150 words, in the language that the \
user writes in.
Answer only with a JSON object: {"summary": "..."}
"""

DECISION_SCHEMA = (
    '{"type": "object", "properties": '
    '{"event": {"enum": ["ADD", "UPDATE", "DELETE", "NOOP"]}, "id": {"type": "string"}, '
    '"text": {"type": "string", "maxLength": 240}}, '
    '"required": ["event", "id", "text"], "additionalProperties": false}'
)
SUMMARY_SCHEMA = (
    '{"type": "object", "properties": {"summary": {"type": "string", "maxLength": 1200}}, '
    '"required": ["summary"], "additionalProperties": false}'
)
EXAMPLE_DECISION = '{"event": "ADD", "id": "", "text": ""}'

_NONE = "(none)"


def facts_schema(most: int) -> str:
    """The schema of phase 1's answer; without bounds, weak models write until they are cut off.

    Args:
        most: facts that one exchange can give.
    """
    item = '{"type": "string", "maxLength": 240}'
    return (
        '{"type": "object", "properties": {"facts": {"type": "array", '
        f'"maxItems": {most}, "items": {item}}}}}, '
        '"required": ["facts"], "additionalProperties": false}'
    )


def extraction_prompt(summary: str, recent: Sequence[str], exchange: Exchange) -> str:
    """Phase 1's question about one exchange; `recent` are the messages before it."""
    return EXTRACT + _sections(
        ("Summary of the conversations so far", summary),
        ("Earlier messages", "\n".join(recent)),
        ("New exchange", "\n".join(spoken(exchange))),
    )


def decision_prompt(memories: Sequence[str], fact: str) -> str:
    """Phase 2's question about one fact; a memory's number is its place, counted from 1."""
    numbered = "\n".join(f"{number}: {text}" for number, text in enumerate(memories, 1))
    return DECIDE + _sections(("Memories", numbered), ("New fact", fact))


def summary_prompt(summary: str, since: Sequence[str]) -> str:
    """The question for a summary that also covers the messages since the last one."""
    return SUMMARISE + _sections(
        ("Summary so far", summary),
        ("New messages", "\n".join(since)),
    )


def spoken(exchange: Exchange) -> tuple[str, str]:
    """An exchange as two messages of a transcript."""
    return f"User: {exchange.user}", f"Assistant: {exchange.assistant}"


def example_facts(exchange: Exchange) -> str:
    """A reply with one fact, another for each exchange and in its language."""
    opening = " ".join(exchange.user.split())[:80]
    return json.dumps({"facts": [f"{opening} ({exchange.source})"]}, ensure_ascii=False)


def example_summary(exchange: Exchange) -> str:
    """A reply whose summary goes as far as this exchange."""
    return json.dumps({"summary": f"They talked, up to {exchange.source}."}, ensure_ascii=False)


def _sections(*named: tuple[str, str]) -> str:
    return "".join(f"\n## {name}\n{text or _NONE}\n" for name, text in named).rstrip("\n")
