"""Scenarios held to the verifier's rules as far as a program can (Prompts 3 and 9, Appendix B).

    lengths    the matched responses are within 25 % of each other in words
    metadata   no dialogue or response names states, episodes, evidence or subtypes
    omission   the target request of a complete omission restates nothing of state A
    form       accumulated evidence stands in two user turns or more
    asks       no response asks for clarification or says that it knows nothing of the user
    size       2 or 3 episodes and 14 turns or more

A rule reads words, not meaning: it finds slips, it proves no quality.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from persona_lab.benchmarks.persevalbench.records import LEGAL, SIDES, Scenario

LENGTH_TOLERANCE = 0.25
FEWEST_TURNS = 14
_METADATA = re.compile(
    r"\bstate[ _][AB]\b|\[STATE|\bepisodes?\b|\bevidence turn|\bsubtype|\bdecoy\b|\btarget turn\b"
    r"|\b(?:re_entry|cross_domain|out_of_scope)\b|\bPersEvalBench\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\b(?:could|can|would) you (?:tell|share|clarify|let me know)\b|\bneed more information\b"
    r"|\bfirst conversation\b|\bdon't (?:know|have) (?:anything|any information) about you\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[a-z0-9][a-z0-9'-]*")
_EMPTY = frozenset({
    "the", "and", "for", "with", "from", "that", "this", "these", "those", "not", "only", "than",
    "then", "but", "can", "could", "would", "should", "will", "just", "more", "most", "any",
    "some", "all", "user", "users", "wants", "needs", "prefers", "must", "has", "have", "had",
    "does", "did", "out", "about", "into", "over", "are", "was", "been", "being", "its", "his",
    "her", "their", "our", "your", "she", "him", "they", "them", "who", "whom", "which", "what",
    "when", "where", "there", "here", "also", "very", "much", "many",
})  # fmt: skip


def check(scenarios: Sequence[Scenario]) -> tuple[str, int]:
    """A report, and how many findings it has."""
    findings = [f"{s.id}: {problem}" for s in scenarios for problem in problems(s)]
    relations = Counter[str](s.relation for s in scenarios)
    families = Counter[str](s.family for s in scenarios)
    pairs = {(s.relation, s.subtype) for s in scenarios}
    legal = sum(len(subtypes) for subtypes in LEGAL.values())
    turns = sum(s.target for s in scenarios) / max(1, len(scenarios))
    episodes = sum(len(s.episodes) for s in scenarios) / max(1, len(scenarios))
    lines = [
        f"{len(scenarios)} scenarios, {len(pairs)} of {legal} legal pairs of relation and subtype; "
        f"{episodes:.1f} episodes and {turns:.1f} turns on average",
        _counted("relation", relations),
        _counted("family", families),
        _counted("form", Counter[str](s.form for s in scenarios)),
        _counted("distance", Counter[str](s.distance_bin for s in scenarios)),
        "",
        *(findings or ["no findings"]),
    ]
    return "\n".join(lines), len(findings)


def problems(scenario: Scenario) -> Iterator[str]:
    """What a program finds wrong with one scenario."""
    sizes = [len(scenario.response(side).split()) for side in SIDES]
    if max(sizes) - min(sizes) > LENGTH_TOLERANCE * max(sizes):
        yield f"responses of {sizes[0]} and {sizes[1]} words differ by more than 25 %"
    for place, text in _texts(scenario):
        if match := _METADATA.search(text):
            yield f"{place} holds metadata: {match[0]!r}"
    for side in SIDES:
        if match := _ASKS.search(scenario.response(side)):
            yield f"the {side} response asks or claims to know nothing: {match[0]!r}"
    if scenario.subtype == "complete_omission":
        shared = content_words(scenario.a.statement) & content_words(scenario.request)
        if shared:
            yield f"the target request restates state A: {', '.join(sorted(shared))}"
    told = [n for n in scenario.a.turns if scenario.turns[n - 1].role == "user"]
    if scenario.form == "accumulated" and len(told) < 2:
        yield f"accumulated evidence stands in {len(told)} user turn"
    if len(scenario.episodes) not in (2, 3):
        yield f"{len(scenario.episodes)} episodes"
    if scenario.target < FEWEST_TURNS:
        yield f"{scenario.target} turns, at least {FEWEST_TURNS} are expected"


def content_words(text: str) -> set[str]:
    """Words that carry meaning, in lower case."""
    return {w for w in _WORD.findall(text.lower()) if len(w) > 2 and w not in _EMPTY}


def _texts(scenario: Scenario) -> Iterator[tuple[str, str]]:
    for number, turn in enumerate(scenario.turns, 1):
        yield f"turn {number}", turn.text
    for side in SIDES:
        yield f"the {side} response", scenario.response(side)


def _counted(name: str, counts: Mapping[str, int]) -> str:
    return f"{name}: " + ", ".join(f"{key} {number}" for key, number in counts.items())
