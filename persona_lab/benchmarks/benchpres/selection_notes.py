"""What retrieval and filter let through in a run, in words: how its shares are to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from persona_lab.benchmarks.benchpres.rankings import Condition, in_order, shared
from persona_lab.benchmarks.benchpres.scoring import METRICS
from persona_lab.benchmarks.benchpres.selectivity import RETRIEVED, STEPS
from persona_lab.benchmarks.benchpres.settings import RetrievalSettings
from persona_lab.benchmarks.benchpres.shown import FAILED, UNREADABLE
from persona_lab.core.scores import Estimate, Score

_SAID = {
    "retrieved gap": "of g=1 {} was retrieved, of g=0 {}: gap {}",
    "passed gap": "of what was retrieved the filter passed {} of g=1, {} of g=0: gap {}",
}


def selection_notes(
    scores: Sequence[Score], made: Sequence[Estimate], how: RetrievalSettings
) -> list[str]:
    """What the shares are, what they were, and how often nothing was shown.

    Args:
        made: the run's estimates; those of the two steps by condition are put in words.
    """
    own = [s for s in scores if s.metric in RETRIEVED]
    if not own:
        return []
    left = [s.facets["left"] for s in {s.case: s for s in own}.values()]
    notes = [
        f"retrieved g=0 and g=1: shares of the preferences to be suppressed and to be applied that "
        f"are among the {how.k} statements retrieved ({how.retriever}); passed: what the filter "
        "keeps of those. With more statements neither share falls.",
        *_findings(made),
        "What was not retrieved, or not kept, still counts in MR and AAR: a message that does "
        "not apply it is right where g=0 and wrong where g=1.",
        *_lost(scores),
    ]
    if empty := left.count("0"):
        notes.append(f"In {empty} of {len(left)} cases nothing was left of the memory to show.")
    return notes


def _findings(made: Sequence[Estimate]) -> list[str]:
    """One note for each way of showing less; conditions with the same numbers are named once."""
    ways: dict[str, dict[Condition, dict[str, Estimate]]] = {}
    names: list[str] = []
    steps = {*STEPS, *(metric for rates in STEPS.values() for metric in rates)}
    for e in made:
        if e.metric in steps and e.basis == "all" and "category" not in e.facets:
            names = [name for name in e.facets if name != "shown"]
            condition = tuple(e.facets[name] for name in names)
            ways.setdefault(e.facets["shown"], {}).setdefault(condition, {})[e.metric] = e
    notes = []
    for shown in sorted(ways, reverse=True):  # rag before filter
        conditions = sorted(ways[shown], key=lambda condition: in_order(names, condition))
        said = ". ".join(_steps({condition: ways[shown][condition] for condition in conditions}))
        notes.append(f"{shown}: {said}. A gap of 1 would be selective, of 0 blind.")
    return notes


def _steps(conditions: Mapping[Condition, Mapping[str, Estimate]]) -> list[str]:
    """A sentence for each step."""
    said = []
    for step, rates in STEPS.items():
        suppress, apply = rates
        same: dict[str, list[Condition]] = {}
        for condition, by_metric in conditions.items():
            if step in by_metric:
                shares = [_share(by_metric.get(metric)) for metric in (apply, suppress)]
                text = _SAID[step].format(*shares, _with_interval(by_metric[step]))
                same.setdefault(text, []).append(condition)
        parts = []
        for text, members in same.items():
            named = ", ".join(shared(members, list(conditions)))
            parts.append(f"({named}) {text}" if named else text)
        sentence = "; ".join(parts)
        said += [sentence[0].upper() + sentence[1:]] if parts else []
    return said


def _share(found: Estimate | None) -> str:
    return "n/a" if found is None or found.value is None else f"{found.value:.2f}"


def _with_interval(gap: Estimate) -> str:
    if gap.value is None or gap.low is None or gap.high is None:
        return f"{_share(gap)} ({gap.interval})"
    return f"{gap.value:.2f} [{gap.low:.2f}, {gap.high:.2f}]"


def _lost(scores: Sequence[Score]) -> list[str]:
    """In how many of the cases with a filter its reply was of no use."""
    cases = {
        s.case: s
        for s in scores
        if s.metric in METRICS and s.facets["shown"].split("_")[0] == "filter"
    }
    unread = [s for s in cases.values() if s.reason.startswith(UNREADABLE)]
    failed = [s for s in cases.values() if s.reason.startswith(FAILED)]
    notes, then = [], "no message was asked for; passed, MR and AAR count the worse outcome."
    if unread:
        cut = sum(s.outcome == "truncated" for s in unread)
        why = f" ({cut} cut off: see max_tokens.filter)" if cut else ""
        about = f"In {len(unread)} of {len(cases)} cases with a filter its reply could not be read"
        notes.append(f"{about}{why}: {then}")
    if failed:
        about = f"In {len(failed)} of {len(cases)} cases with a filter the model could not be asked"
        notes.append(f"{about} for it: {then}")
    return notes
