"""A retriever by hand, and a target that applies what its prompt shows of a memory.

The data of `write_data` (see test_golden.py): 15 instances have g = 0 and 15 have g = 1. Where
n + m of profile n and context m is even (3 of the 6), role, tone and nickname have g = 0, style and
markers g = 1; where it is odd, the other way round. A memory has 3 facts and 5 preferences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from persona_lab.core.prompt import Reply, Request
from persona_lab.core.scores import Row, Score, Summary
from tests.benchmarks.benchpres.scripted import (
    Outcomes,
    Replies,
    experiment,
    outcomes_of,
    summary_of,
    writes,
)

pytest.importorskip("faiss")
pytest.importorskip("bm25s")

FILTER = "If none suits, the list is empty."
BY_HAND = ("retrieval.retriever=by_hand",)
RAG, FILTERED = "memories.shown=[rag]", "memories.shown=[filter]"
EVERY_DEFENCE = "defence=[default,prompt,structured,few_shot,category_rules,sanitiser]"


class ByHand:
    """Similarity to every request: role 0.9, style 0.8, tone 0.7, markers 0.6, nickname 0.5, facts
    below, in their order."""

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        cosines = [self.similarity(text) for text in texts]
        return np.array([[c, (1 - c * c) ** 0.5] for c in cosines], dtype=np.float32)

    def similarity(self, text: str) -> float:
        if text.startswith("Write a complete message to "):
            return 1.0
        words = ("role", "style", "tone", "markers", "call me", "dogs", "keys", "debts")
        [place] = [i for i, word in enumerate(words) if word in text]
        return 0.9 - 0.1 * place


ENCODERS = {"by_hand": ByHand()}


def text_of(request: Request) -> str:
    return "\n".join(message.content for message in request.prompt)


def preferences_in(text: str) -> dict[str, str]:
    """Category -> line, of the preferences that stand in a prompt."""
    lines = re.findall(r"^(?:\d\. )?((?:I like (\w+) number|Please call me) .+\.)$", text, re.M)
    return {category or "nickname": line for line, category in lines}


def applies_all_shown(kept: Callable[[dict[str, str]], set[str]] | None = None) -> Replies:
    """A target whose messages apply every preference that their prompt shows, and whose filter
    keeps the categories that `kept` names, with all facts (None: everything)."""
    judge = writes(lambda *_: set())

    def reply(request: Request) -> Reply:
        if request.role != "target":
            return judge(request)
        asked = text_of(request)
        shown = preferences_in(asked)
        if not asked.endswith(FILTER):
            nicknames = re.findall(r"call me (\w+)\.", shown.get("nickname", ""))
            return Reply("\n".join(["Dear all,", *shown.values(), *nicknames]))
        chosen = set(shown) if kept is None else kept(shown)
        left_out = {shown[category] for category in set(shown) - chosen}
        listed = re.findall(r"^(\d+)\. (.+)$", asked, re.M)
        return Reply(json.dumps({"suitable": [int(n) for n, s in listed if s not in left_out]}))

    return reply


def found(data: Path, reply: Replies, *overrides: str) -> Summary:
    return summary_of(data, reply, *BY_HAND, *overrides, encoders=ENCODERS)


def run(data: Path, reply: Replies, *overrides: str) -> Outcomes:
    made = experiment(data, *BY_HAND, *overrides)
    return outcomes_of(made, data.parent / "".join(overrides), reply, ENCODERS)


def asked_of(outcomes: Outcomes, role: str = "target") -> dict[str, list[Request]]:
    return {o.case.id: [r for r, _ in o.exchanges if r.role == role] for o in outcomes}


def of(scores: Sequence[Score], metric: str) -> list[Score]:
    return [score for score in scores if score.metric == metric]


def table(summary: Summary) -> list[tuple[Any, ...]]:
    [made] = [t for t in summary.tables if t.title.startswith("Retrieval by itself")]
    shown = ("retriever", "k", "g=0", "g=1", "gap", "chance g=0", "chance g=1")
    return [tuple(rounded(row, name) for name in shown) for row in made.rows]


def rounded(row: Row, name: str) -> Any:
    cell = row[name]
    return round(cell, 12) if isinstance(cell, float) else cell
