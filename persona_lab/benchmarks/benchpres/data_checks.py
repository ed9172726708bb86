"""The data set held to the paper's description by program (section 3.2, Appendix A, Table 5).

    size         a profile has about 147 facts in ten domains around three life events
    individual   with names and numbers masked, two profiles share under 10 % of their statements
    standalone   no fact is told twice within a profile
    nickname     no fact, recipient or task holds a profile's nickname: repeating it would count
    labels       about 1.7 preferences apply per context; each category has both labels somewhere

A rule reads words, not meaning: it finds slips, it proves no quality.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from persona_lab.benchmarks.benchpres.records import CATEGORIES, Data, Profile
from persona_lab.parsing.names import mentions

FACTS = range(130, 165)
DOMAINS, EVENTS = 10, 3
SHARED = 0.10
APPLIED = (1.5, 1.9)
"""Table 5: 1.7 on average."""
_NUMBER = re.compile(r"\d[\d.,:/-]*")
_NAME = re.compile(r"(?<=\s)[\"'(]?[A-Z][\w'.&-]*(?:\s+[A-Z][\w'.&-]*)*")


def masked(statement: str) -> str:
    """A statement without its names and numbers: capitalised words after the first, and digits."""
    return _NAME.sub("NAME", _NUMBER.sub("0", statement)).casefold()


def shared_statements(first: Profile, second: Profile) -> float:
    """Share of the smaller profile's masked statements that the other has too, in [0, 1]."""
    one, two = ({masked(f) for f in p.facts} for p in (first, second))
    return len(one & two) / min(len(one), len(two))


def check(data: Data) -> tuple[str, int]:
    """A report, and how many findings it has."""
    findings = [*_profiles(data), *_pairs(data), *_nicknames(data), *_labels(data)]
    facts = sum(len(p.facts) for p in data.profiles) / len(data.profiles)
    counts = Counter(i.label for i in data.all_instances)
    messages = len(data.profiles) * len(data.contexts)
    lines = [
        f"{len(data.profiles)} profiles, {facts:.1f} facts each; {len(data.contexts)} contexts; "
        f"{len(data.all_instances):,} instances",
        f"per context: {counts['1'] / messages:.2f} apply, {counts['0'] / messages:.2f} suppress, "
        f"{counts['excluded'] / messages:.2f} excluded",
        "",
        *(findings or ["no findings"]),
    ]
    return "\n".join(lines), len(findings)


def _profiles(data: Data) -> Iterator[str]:
    for profile in data.profiles:
        domains = {domain for domain, _ in profile.events}
        events = {event for _, event in profile.events} - {"general"}
        if len(profile.facts) not in FACTS:
            yield f"{profile.id}: {len(profile.facts)} facts, about 147 are expected"
        if len(domains) != DOMAINS:
            yield f"{profile.id}: {len(domains)} domains, not {DOMAINS}"
        if len(events) != EVENTS:
            yield f"{profile.id}: {len(events)} life events, not {EVENTS}"
        for fact, times in Counter(profile.facts).items():
            if times > 1:
                yield f"{profile.id}: told {times} times: {fact}"


def _pairs(data: Data) -> Iterator[str]:
    for first, second in combinations(data.profiles, 2):
        if (share := shared_statements(first, second)) >= SHARED:
            yield f"{first.id} and {second.id} share {share:.0%} of their masked statements"


def _nicknames(data: Data) -> Iterator[str]:
    contexts = [f"{c.recipient}: {c.task}" for c in data.contexts]
    for profile in data.profiles:
        nickname = next(p.nickname for p in profile.preferences if p.nickname)
        for text in (*profile.facts, *contexts):
            if mentions(nickname, text):
                yield f"{profile.id}: the nickname {nickname} stands in: {text}"


def _labels(data: Data) -> Iterator[str]:
    instances = data.all_instances
    messages = len(data.profiles) * len(data.contexts)
    applied = sum(i.label == "1" for i in instances) / messages
    if not APPLIED[0] <= applied <= APPLIED[1]:
        yield f"{applied:.2f} preferences apply per context, about 1.7 are expected"
    for category in CATEGORIES:
        labels = {i.label for i in instances if i.preference.category == category}
        if not {"0", "1"} <= labels:
            yield f"{category}: only label {', '.join(sorted(labels))}"
