"""The data set's records (section 3.1-3.2, Table 6): contexts, profiles, preferences, labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

Category = Literal["role", "style", "tone", "markers", "nickname"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
"""Section 3.2."""
Domain = Literal["finance_legal", "health", "education", "employment", "housing"]
DOMAINS: tuple[Domain, ...] = get_args(Domain)
"""Table 6, whose `finance; legal`, `health; mental_health` and `housing; finance` these are."""
Label = Literal["0", "1", "excluded"]
LABELS: tuple[Label, ...] = get_args(Label)
"""g(t, a) of section 3.1: suppress, apply, or dropped since annotators disagreed (A.2)."""


@dataclass(frozen=True)
class Context:
    """A recipient and a task (section 3.1).

    Attributes:
        institutional: the recipient acts for an institution, not as the user's own contact; only
            the sanitising defence looks at it.
    """

    id: str
    recipient: str
    task: str
    domain: Domain
    institutional: bool


@dataclass(frozen=True)
class Preference:
    """A preference attribute a of a profile.

    Attributes:
        statement: how memory says it. nickname: the name to match; empty in other categories.
    """

    profile: str
    category: Category
    statement: str
    nickname: str = ""

    @property
    def id(self) -> str:
        """`p01/tone`."""
        return f"{self.profile}/{self.category}"


@dataclass(frozen=True)
class Profile:
    """A user u.

    Attributes:
        facts: memory statements. preferences: one of each category.
        events: (domain, event) of each fact, as its file says; only checks of the data look at it.
    """

    id: str
    facts: tuple[str, ...]
    preferences: tuple[Preference, ...]
    events: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Instance:
    """One thing to evaluate: does a preference go into a message of a context, and should it?"""

    profile: str
    context: Context
    preference: Preference
    label: Label

    @property
    def id(self) -> str:
        """`p01/irs_agent/tone`."""
        return f"{self.profile}/{self.context.id}/{self.preference.category}"


@dataclass(frozen=True)
class Data:
    """Everything that a run needs of a data set.

    Attributes:
        labels: (profile, context, category) -> g.
        digest: of the files that were read.
    """

    contexts: tuple[Context, ...]
    profiles: tuple[Profile, ...]
    labels: Mapping[tuple[str, str, str], Label]
    digest: str

    def instances(self, profile: Profile, context: Context) -> list[Instance]:
        """The instances of one message, in the order of the categories."""
        return [
            Instance(profile.id, context, p, self.labels[profile.id, context.id, p.category])
            for p in profile.preferences
        ]

    @cached_property
    def all_instances(self) -> list[Instance]:
        """Every combination of u, t and a (section 3.3)."""
        return [i for p in self.profiles for c in self.contexts for i in self.instances(p, c)]
