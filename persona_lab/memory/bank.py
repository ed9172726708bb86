"""What ADD, UPDATE, DELETE and NOOP do to the memories of one user.

Settled here:
- A fact that a memory already says, word for word (`wording.folded`), changes nothing, whatever a
  model would say: NOOP. An update that would make two memories equal removes the updated one.
- ADD stores the fact as it was extracted, so that no second wording creeps in; only UPDATE writes
  the model's text.
- UPDATE of a memory that does not exist, or without a text, is a failure; its fact is added, since
  the model meant to keep it.
- DELETE removes the contradicted memory and, as in the paper, adds nothing: "no longer drinks
  coffee" may leave nothing to remember. The fact is added only where the model repeats it as the
  text. DELETE of a memory that does not exist is a failure.
- A decision that cannot be read decides nothing: it is a failure that names the fact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from persona_lab.memory.language import foreign
from persona_lab.memory.records import Event, Fact, Failure, Kind, Memory
from persona_lab.memory.replies import Decision
from persona_lab.memory.wording import folded


@dataclass
class Bank:
    """The memories of one user while they are written, and a record of what was done.

    Attributes:
        live: id -> memory, oldest first.
        mismatched: ids of facts in another script than their user's, or that led to such a text.
    """

    live: dict[str, Memory] = field(default_factory=dict)
    removed: list[Memory] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    events: Counter[Kind] = field(default_factory=Counter)
    duplicates: int = 0
    mismatched: set[str] = field(default_factory=set)
    _by_words: dict[str, str] = field(default_factory=dict)

    def twin(self, text: str) -> Memory | None:
        """The memory that says the same, word for word."""
        found = self._by_words.get(folded(text))
        return self.live[found] if found else None

    def meet(self, fact: Fact) -> bool:
        """Takes note of a fact; True if a memory already says it, and that is all."""
        if foreign(fact.text, fact.exchange):
            self.mismatched.add(fact.id)
        twin = self.twin(fact.text)
        if twin:
            self.duplicates += 1
            self._seen_again(twin, fact)
        return twin is not None

    def add(self, fact: Fact, note: str = "") -> None:
        """A new memory."""
        event = self._event("ADD", fact, "", fact.text, note)
        source = fact.exchange.source
        self._put(Memory(fact.id, fact.text, source, (event,)))

    def decide(self, fact: Fact, decision: Decision, shown: Sequence[Memory]) -> None:
        """Does what a model decided on a fact that no memory says.

        Args:
            shown: the memories that it chose from; number 1 is the first.
        """
        number = decision.number
        named = shown[number - 1] if number and 1 <= number <= len(shown) else None
        if decision.kind == "ADD":
            self.add(fact)
        elif decision.kind == "NOOP":
            if named:
                self._seen_again(named, fact)
            else:
                self.events["NOOP"] += 1
        elif decision.kind == "DELETE":
            if named:
                self._remove(named, fact)
            else:
                self.fail(fact, "unknown_id")
            if folded(decision.text) == folded(fact.text):
                self.add(fact)
        elif named is None:
            self.fail(fact, "unknown_id")
            self.add(fact, "UPDATE of a memory that does not exist: added instead")
        elif not decision.text:
            self.fail(fact, "no_text")
            self.add(fact, "UPDATE without a text: added instead")
        else:
            self._update(named, fact, decision.text)

    def fail(self, fact: Fact, reason: str) -> None:
        """A decision on the fact that could not be read, or not be followed."""
        self.failures.append(Failure(fact.exchange.source, "decide", reason, fact.text))

    def _update(self, memory: Memory, fact: Fact, text: str) -> None:
        if foreign(text, fact.exchange):
            self.mismatched.add(fact.id)
        twin = self.twin(text)
        if text == memory.text:
            self._seen_again(memory, fact)
        elif twin and twin.id != memory.id:
            self.duplicates += 1
            self._remove(memory, fact, f"UPDATE to what memory {twin.id} says: removed instead")
            self._seen_again(twin, fact)
        else:
            event = self._event("UPDATE", fact, memory.text, text)
            del self._by_words[folded(memory.text)]
            self._put(replace(memory, text=text, history=(*memory.history, event)))

    def _remove(self, memory: Memory, fact: Fact, note: str = "") -> None:
        event = self._event("DELETE", fact, memory.text, "", note)
        del self.live[memory.id], self._by_words[folded(memory.text)]
        self.removed.append(replace(memory, history=(*memory.history, event)))

    def _seen_again(self, memory: Memory, fact: Fact) -> None:
        event = self._event("NOOP", fact, memory.text, memory.text)
        self._put(replace(memory, history=(*memory.history, event)))

    def _event(self, kind: Kind, fact: Fact, before: str, after: str, note: str = "") -> Event:
        self.events[kind] += 1
        return Event(kind, fact.exchange.source, before, after, note)

    def _put(self, memory: Memory) -> None:
        self.live[memory.id] = memory
        self._by_words[folded(memory.text)] = memory.id
