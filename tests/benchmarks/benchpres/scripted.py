"""BenchPreS on the scripted engine: messages name what they apply, and the judges read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from persona_lab.benchmarks.benchpres.cases import BenchPreSCase
from persona_lab.benchmarks.benchpres.experiment import BenchPreS
from persona_lab.core.drive import drive
from persona_lab.core.flow import Encoder, Model, Outcome
from persona_lab.core.prompt import Reply, Request
from persona_lab.core.scores import Estimate, Score, Summary
from persona_lab.core.store import Store
from persona_lab.engines.scripted import ScriptedEngine, example_reply
from persona_lab.running.setup import configure
from tests.conftest import ROOT

Replies = Callable[[Request], Reply]
Outcomes = Sequence[Outcome[BenchPreSCase, list[Score]]]


def experiment(data: Path, *overrides: str) -> BenchPreS:
    """benchpres_main on a folder of `write_data`."""
    named = ["recipe=benchpres_main", f"benchmark.path={data}", "samples=1", *overrides]
    configured = configure(ROOT, named)
    return BenchPreS(configured.settings, configured.run, ROOT)


def outcomes_of(
    made: BenchPreS, folder: Path, reply: Replies, encoders: Mapping[str, Encoder] | None = None
) -> Outcomes:
    """Each role with a model of its own, so that a second judge can differ."""
    models = {
        role: Model(role, role, lambda role=role: ScriptedEngine(lambda r: reply(_as(r, role))))
        for role in made.roles
    }
    with Store(folder / "replies", "w") as store:
        return list(drive(made.cases(), made.flow, models, store, encoders=encoders))


def summary_of(
    data: Path, reply: Replies, *overrides: str, encoders: Mapping[str, Encoder] | None = None
) -> Summary:
    """The summary of a run."""
    made = experiment(data, *overrides)
    return made.summarize(outcomes_of(made, data.parent / str(len(overrides)), reply, encoders))


def value(found: Summary, metric: str, basis: str = "all", **facets: str) -> float | None:
    """An estimate's value; without facets beyond its condition, the overall one."""
    return estimate(found, metric, basis, **facets).value


def estimate(found: Summary, metric: str, basis: str = "all", **facets: str) -> Estimate:
    """The one estimate that has these facets and no other part."""
    parts = {"domain", "category", "sample", "label"} - set(facets)
    [made] = [
        e
        for e in found.estimates
        if (e.metric, e.basis) == (metric, basis)
        and facets.items() <= e.facets.items()
        and not parts & set(e.facets)
    ]
    return made


def writes(applied: Callable[[Request, str, str], set[str]]) -> Replies:
    """Replies of a target whose messages apply what `applied(request, profile, context)` says, as
    categories, and of judges who follow what the message names.

    A message holds the statement of each preference that it applies, and the nickname itself.
    """

    def reply(request: Request) -> Reply:
        asked = request.prompt.tail[-1].content
        if request.role in ("target", "thinking"):
            number = re.findall(r"I have (\d) dogs", _whole(request))[0]
            context = re.findall(r"message to Recipient (\d)", asked)[0]
            chosen = applied(request, f"p0{number}", f"context_{context}")
            lines = [f"I like {c} number {number}." for c in sorted(chosen - {"nickname"})]
            signed = [f"Nick{number}"] if "nickname" in chosen else []
            return Reply("\n".join(["Dear all,", *lines, *signed]))
        if "Preference: " not in asked:
            return example_reply(request)
        match = re.search(r"Preference: (.*?)\nResponse: (.*)\nOnly output", asked, re.DOTALL)
        assert match
        label = "follow" if match[1] in match[2] else "do_not_follow"
        return Reply(f'{{"label": "{label}"}}')

    return reply


def _whole(request: Request) -> str:
    return "\n".join(m.content for m in request.prompt)


def _as(request: Request, role: str) -> Request:
    return request if request.role == role else replace(request, role=role)
