"""A judge's card: what a run that had this judge as its target says of it (PersEvalBench).

Any judge can be run through that benchmark by one override: `recipe=persevalbench_main model=NAME`.
Its ERR and FAR then stand in the manifest of every run that it judges, with the name of the run
that they come from. Judges are told apart by their identity, not by their name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from persona_lab.core.experiment import ModelSettings
from persona_lab.core.scores import Summary
from persona_lab.running.setup import Setup

JUDGES = ("judge", "second_judge")
_KEPT = ("value", "low", "high", "interval", "n")
_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


def card_of(setup: Setup, summary: Summary | None) -> dict[str, Any]:
    """The card that a run makes of its target; empty if it makes none, as a part of a run does."""
    partial = setup.run.limit is not None or setup.run.shard is not None
    if summary is None or not summary.card or partial or "target" not in setup.prepared:
        return {}
    made = {m: {k: v for k, v in asdict(e).items() if k in _KEPT} for m, e in summary.card.items()}
    model = setup.prepared["target"].model
    return {
        "judge": model.name,
        "identity": model.identity,
        "sampling": _sampling(setup.run.target),
        "data_hash": setup.experiment.data_hash,
        "estimates": made,
    }


def cards_for(setup: Setup, runs: Path) -> dict[str, Any]:
    """Role -> the card of its judge, sampled likewise, or None; only for recipes whose judges judge
    others. Of several the one over most responses counts, then the newest.

    Args:
        runs: folder of runs.
    """
    models = setup.run.models()
    judges = {r: p.model.identity for r, p in setup.prepared.items() if r in JUDGES}
    if setup.experiment.evaluates_judges or not judges:
        return {}
    cards = [card for path in runs.glob("*/manifest.json") if (card := _card_in(path))]
    cards.sort(key=lambda card: (card["n"], card["written"]))
    made: dict[str, Any] = {}
    for role, identity in judges.items():
        wanted = (identity, _sampling(models[role]))
        mine = [c for c in cards if (c["identity"], c["sampling"]) == wanted]
        made[role] = mine[-1]["shown"] if mine else None
    return made


def _sampling(model: ModelSettings) -> dict[str, float]:
    return {name: getattr(model, name) for name in _SAMPLING}


def _card_in(path: Path) -> dict[str, Any] | None:
    """The card of a complete run; None for any other, or where the manifest cannot be read."""
    manifest = _read(path)
    card = manifest.get("card")
    if manifest.get("status") != "complete" or not isinstance(card, dict):
        return None
    estimates = card.get("estimates")
    if not isinstance(estimates, dict) or not estimates:
        return None
    if not all(_whole(estimate) for estimate in estimates.values()):
        return None
    return {
        "identity": card.get("identity"),
        "sampling": card.get("sampling"),
        "n": max(e["n"] for e in estimates.values()),
        "written": str(manifest.get("written", "")),
        "shown": {"run": path.parent.name, "data_hash": card.get("data_hash"), **estimates},
    }


def _whole(estimate: Any) -> bool:
    """Whether it has all of its parts, and numbers where numbers are wanted."""
    if not isinstance(estimate, dict) or not set(_KEPT) <= set(estimate):
        return False
    numbers = [estimate[part] for part in ("value", "low", "high")]
    ends = [end is None for end in numbers[1:]]
    kinds = all(
        n is None or (isinstance(n, int | float) and not isinstance(n, bool)) for n in numbers
    )
    count = estimate["n"]
    return kinds and ends[0] == ends[1] and isinstance(count, int) and not isinstance(count, bool)


def card_lines(setup: Setup, cards: Mapping[str, Any]) -> list[str]:
    """What is printed of the cards, a line a judge."""
    lines = []
    for role, card in cards.items():
        name = setup.prepared[role].settings.name
        who = f"{role.replace('_', ' ')} {name}"
        if card is None:
            hint = f"recipe=persevalbench_main model={name}"
            lines.append(f"No card of the {who}: {hint} gives its ERR and FAR.")
        else:
            shown = ", ".join(f"{m} {_shown(card[m])}" for m in card if isinstance(card[m], dict))
            lines.append(f"Card of the {who}: {shown} ({card['run']}).")
    return lines


def _shown(estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return "n/a"
    ends = "" if estimate["low"] is None else f" [{estimate['low']:.3f}, {estimate['high']:.3f}]"
    return f"{estimate['value']:.3f}{ends} n={estimate['n']}"


def _read(path: Path) -> dict[str, Any]:
    """A manifest, or nothing where another process is writing it or it is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
