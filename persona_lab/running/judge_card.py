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

from persona_lab.core.experiment import Summary
from persona_lab.running.setup import Setup

JUDGES = ("judge", "second_judge")
_KEPT = ("value", "low", "high", "interval", "n")


def card_of(setup: Setup, summary: Summary | None) -> dict[str, Any]:
    """The card that a run makes of its target; empty if it makes none."""
    if summary is None or not summary.card or "target" not in setup.prepared:
        return {}
    made = {m: {k: v for k, v in asdict(e).items() if k in _KEPT} for m, e in summary.card.items()}
    model = setup.prepared["target"].model
    return {"judge": model.name, "identity": model.identity, "estimates": made}


def cards_for(setup: Setup, runs: Path) -> dict[str, Any]:
    """Role -> the newest card of its judge among complete runs, or None; only for recipes whose
    judges judge others.

    Args:
        runs: folder of runs.
    """
    identities = {r: p.model.identity for r, p in setup.prepared.items() if r in JUDGES}
    if setup.experiment.evaluates_judges or not identities:
        return {}
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for path in runs.glob("*/manifest.json"):
        manifest = _read(path)
        card = manifest.get("card")
        if not isinstance(card, dict) or not card or manifest.get("status") != "complete":
            continue
        written, name = str(manifest.get("written", "")), str(card.get("identity"))
        if name not in found or written > found[name][0]:
            found[name] = (written, {"run": path.parent.name, **card["estimates"]})
    return {role: found[i][1] if i in found else None for role, i in identities.items()}


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
            shown = ", ".join(f"{m} {_shown(card[m])}" for m in card if m != "run")
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
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
