"""Prompts 10 to 12 are the paper's, word for word; what fills them stays as it is."""

from __future__ import annotations

import re
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persona_lab.benchmarks.persevalbench.prompts import (
    END_TO_END,
    EVIDENCE,
    FROM_EVIDENCE,
    PAIRWISE,
    POINTWISE,
    STATE_TABLE,
)
from tests.conftest import ROOT

PAPER = ROOT.parent / "shared" / "seeds" / "persevalbench.txt"
TEMPLATES = {
    "END_TO_END": END_TO_END, "EVIDENCE": EVIDENCE, "FROM_EVIDENCE": FROM_EVIDENCE,
    "STATE_TABLE": STATE_TABLE, "POINTWISE": POINTWISE, "PAIRWISE": PAIRWISE,
}  # fmt: skip

# The lines of the prompts, typed from the paper and not from the code.
TAXONOMY = [
    "OVER_PERSONALIZED (the response actively uses wrong information):",
    "- uses a preference that belongs to a different person",
    "- uses a stale/outdated preference (superseded by newer information)",
    "- uses a preference from a different scope (e.g., business constraints applied to a personal "
    "trip)",
    "- uses information that is irrelevant to this specific request",
    "- acts on a preference the user never stated (unsupported inference)",
    "- lets a soft preference dominate over the primary task requirement",
    "UNDER_PERSONALIZED (the response fails to use correct information):",
    "- gives a generic response ignoring a clearly applicable preference (complete omission)",
    "- uses some preferences but misses a critical one (partial omission)",
    "- acknowledges a constraint but treats it as optional/soft (underweighting)",
    "- directly contradicts a stated preference without acknowledging it (explicit violation; if "
    "the response contradicts a newer preference by using stale information, that is OVER, not "
    "UNDER)",
    "RIGHT: the response correctly applies all relevant current preferences without over- or "
    "under-applying them.",
]
DISAMBIGUATION = [
    "- Generic response referencing no user-specific information -> UNDER",
    "- Actively applies wrong or inapplicable information -> OVER",
    "- If both occur, classify by the primary mechanism: substitution of B for A -> OVER; simply "
    "not using A -> UNDER",
]
CANONICAL = (
    "under.complete_omission, under.partial_omission, under.underweighting, "
    "under.explicit_violation, over.irrelevant_use, over.scope_leakage, over.stale_or_superseded, "
    "over.unsupported_inference, over.over_dominance"
)
CONTRACT = [
    "Respond with a JSON object containing:",
    '- "verdict": one of "RIGHT", "OVER_PERSONALIZED", "UNDER_PERSONALIZED"',
    '- "subtypes": the primary error subtype if applicable, drawn from: ' + CANONICAL + "; an "
    "empty list if RIGHT",
    '- "confidence": float 0.0--1.0',
    '- "reasoning": brief explanation citing which preference was mishandled and how',
    "Respond only with the JSON object, no other text.",
]


def prompt_10(context: str, request: str, response: str) -> list[str]:
    return [
        "Given the conversation context below, evaluate whether the assistant response correctly "
        "uses the user's preferences, constraints, and expressed states.",
        f"Conversation context: {context}",
        f"User request: {request}",
        f"Assistant response: {response}",
        "Step 1: Identify applicable user preferences/constraints from the context; list which are "
        "relevant to this specific request.",
        "Step 2: Check the response against each applicable preference.",
        "Step 3: Classify using the decision tree below.",
        *TAXONOMY,
        *DISAMBIGUATION,
        *CONTRACT,
    ]


def prompt_11_extraction(context: str, request: str) -> list[str]:
    return [
        "Extract all user preferences, constraints, and states from this conversation context that "
        "are relevant to the user's current request.",
        f"Conversation context: {context}",
        f"User's current request: {request}",
        "List each preference, constraint, or state that could be relevant to answering the user's "
        "request. For each, note: what the preference/state is; which turn it was expressed in; "
        "whether it is still current or potentially stale/superseded.",
        "Respond with a structured list of extracted evidence.",
    ]


def prompt_11_judgment(evidence: str, request: str, response: str) -> list[str]:
    return [
        "Given the extracted evidence below, evaluate whether the assistant response correctly "
        "uses these preferences, constraints, and states.",
        f"Extracted evidence: {evidence}",
        f"User request: {request}",
        f"Assistant response: {response}",
        *TAXONOMY,
        *DISAMBIGUATION,
        *CONTRACT,
    ]


def prompt_12(context: str, request: str, response: str, subtypes: str = CANONICAL) -> list[str]:
    return [
        "You are a persona-use evaluator. You systematically search the dialogue history, build a "
        "structured state table, and then judge the response.",
        f"Target query: {request}",
        f"Candidate response: {response}",
        f"Searchable multi-episode dialogue history: {context}",
        "Step 1: List which user preferences, constraints, or states could be relevant to the "
        "target query. Consider: dietary, budget, scheduling, location, people involved, prior "
        "decisions, hard constraints, soft preferences.",
        "Step 2: For each candidate state, search the dialogue (at most 6 searches) for supporting "
        "evidence, later updates or exceptions, conflicting evidence, and holder/scope boundaries "
        "(does it belong to this user, for this task, at this time?).",
        "Step 3: For each confirmed state, record: State | Holder | Scope | Status | Strength | "
        "Evidence Turns | Policy, where",
        "- Holder: user / spouse / parent / colleague / other",
        "- Scope: global / specific domain / specific task / specific time",
        "- Status: active / updated / superseded / expired / one-time exception",
        "- Strength: hard (dealbreaker) / strong (important) / soft (nice-to-have)",
        "- Evidence Turns: the turn numbers that support it",
        "- Policy: IGNORE (not applicable here) / SUPPORT (should inform but not dominate) / "
        "DOMINATE (must be satisfied)",
        "Step 4: Check that the response (1) uses all states with Policy=DOMINATE (missing any -> "
        "UNDER); (2) appropriately references SUPPORT states (ignoring all -> UNDER, over-applying "
        "-> OVER); (3) does not use IGNORE states (using them -> OVER); (4) does not treat "
        "DOMINATE states as merely SUPPORT (-> UNDER, underweighting); (5) does not treat SUPPORT "
        "states as DOMINATE (-> OVER, over-dominance); (6) if it contradicts State A by using "
        "old/superseded information -> OVER (stale), not UNDER; (7) if it contradicts State A by "
        "simply forgetting it (no old information referenced) -> UNDER (explicit violation).",
        "Step 5: Reach a verdict.",
        "- Do not assume the response contains an error; many responses are correctly "
        "personalized.",
        "- Use at most 6 searches through the dialogue.",
        "- Return only one primary error when the verdict is UNDER or OVER.",
        "Respond only with a JSON object:",
        '{"state_table": [{"state": "...", "holder": "...", "scope": "...", "status": "...", '
        '"strength": "...", "evidence_turns": [...], "policy": "..."}], "verdict": "RIGHT" or '
        '"OVER_PERSONALIZED" or "UNDER_PERSONALIZED", "subtypes": [the primary error subtype, '
        f'drawn from {subtypes}; empty if RIGHT], "confidence": 0.0--1.0, "reasoning": "concise '
        'justification"}',
    ]


# Headings of the paper's cards, which are no part of the prompts.
HEADINGS = {
    10: [
        "Inputs—the three task elements",
        "Decision procedure—identify applicable states, check the response, then classify",
        "Verdict taxonomy—the three-way decision tree with subtype anchors",
        "Disambiguation rule—resolves mixed cases by the primary mechanism",
        "Output contract—canonical subtype labels; JSON only",
    ],
    11: [
        "Stage 1: evidence extraction—surfaces candidate states with provenance and currency",
        "Stage 2: judgment—same taxonomy, disambiguation rule, and output contract as Prompt F.2, "
        "applied to the extracted evidence",
        "[Verdict taxonomy, disambiguation rule, and JSON output contract identical to Prompt "
        "F.2.]",
    ],
    12: [
        "Role and inputs—frames evaluation as systematic state reconstruction",
        "Evidence search—bounded search over candidate states",
        "State-table schema—the explicit applicability record per state",
        "Response checks—maps table-policy violations to verdicts",
        "Constraints—guards against assuming an error and against multi-error verdicts",
        "Output contract—state table plus the standard verdict fields",
    ],
}
SLOTS = ("{context}", "{user_request}", "{response}")


def filled(template: str) -> str:
    """A template with its slots written as the paper writes them."""
    names = [name for _, name, _, _ in Formatter().parse(template) if name]
    return template.format(**{name: f"{{{name}}}" for name in names})


def test_prompt_10() -> None:
    assert filled(END_TO_END).split("\n") == prompt_10(*SLOTS)


def test_prompt_11() -> None:
    assert filled(EVIDENCE).split("\n") == prompt_11_extraction(*SLOTS[:2])
    assert filled(FROM_EVIDENCE).split("\n") == prompt_11_judgment("{evidence}", *SLOTS[1:])


def test_prompt_12() -> None:
    assert filled(STATE_TABLE).split("\n") == prompt_12(*SLOTS)


def test_stage_2_has_the_parts_of_prompt_10() -> None:
    """Prompt 11: taxonomy, disambiguation rule and output contract are identical."""
    start = "OVER_PERSONALIZED (the response"
    assert FROM_EVIDENCE[FROM_EVIDENCE.index(start) :] == END_TO_END[END_TO_END.index(start) :]


def paper_card(number: int) -> str:
    """The text of a card in the paper's copy: no escapes, straight quotes, no white space."""
    if not PAPER.is_file():
        pytest.skip("the paper's text is not beside the project")
    lines = PAPER.read_text(encoding="utf-8").splitlines()
    [card] = [line for line in lines if re.match(rf"Prompt {number}\b", line)]
    card = re.sub(r"\[F\\\.2\]\([^)]*\)", " F.2", card)
    return bare(re.sub(r"\\(.)", r"\1", card).replace("’", "'"))


def bare(text: str) -> str:
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize(
    ("number", "templates"),
    [(10, [END_TO_END]), (11, [EVIDENCE, FROM_EVIDENCE]), (12, [STATE_TABLE])],
)
def test_a_card_of_the_paper_is_its_headings_and_our_lines(
    number: int, templates: list[str]
) -> None:
    """White space apart, nothing of a card is left when our lines and its headings are taken out,
    but for its first ones: title, purpose, input and output."""
    card = paper_card(number)
    shared = [*TAXONOMY, *DISAMBIGUATION, *CONTRACT] if number == 11 else []
    lines = [line for t in templates for line in filled(t).split("\n") if line not in shared]
    if number == 12:
        lines = prompt_12(*SLOTS, "the canonical list of Prompt F.2")
    at = 0
    for line in lines:
        found = card.find(bare(line), at)
        assert found >= 0, line
        card = f"{card[:found]}|{card[found + len(bare(line)) :]}"
        at = found + 1
    left = [piece for piece in card.split("|") if piece]
    assert left[0].endswith(bare(HEADINGS[number][0]))
    assert left[1:] == [bare(heading) for heading in HEADINGS[number][1:]]


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_heading_of_a_card_stands_in_a_prompt(name: str) -> None:
    text = TEMPLATES[name]
    for heading in [h for headings in HEADINGS.values() for h in headings]:
        assert heading not in text
        assert not re.search(rf"^{re.escape(heading.split('—')[0])}\b", text, re.MULTILINE)
    for sign in ("—", "‘", "’", "“", "”", "–", "\\", "Purpose:", "Prompt ", "F.2"):
        assert sign not in text
    assert text == text.strip()
    assert "\n\n" not in text


@pytest.mark.parametrize(
    ("name", "slots"),
    [
        ("END_TO_END", ["context", "user_request", "response"]),
        ("EVIDENCE", ["context", "user_request"]),
        ("FROM_EVIDENCE", ["evidence", "user_request", "response"]),
        ("STATE_TABLE", ["user_request", "response", "context"]),
        ("POINTWISE", ["context", "user_request", "response"]),
        ("PAIRWISE", ["context", "user_request", "first", "second"]),
    ],
)
def test_the_slots_of_a_prompt(name: str, slots: list[str]) -> None:
    assert [s for _, s, _, _ in Formatter().parse(TEMPLATES[name]) if s is not None] == slots


# Texts that a second formatting, or a wrong one, would change.
awkward = st.lists(
    st.sampled_from(
        ["{", "}", "{{", "}}", "{context}", "{response}", "{evidence}", "{0}", "{!r}", "%s", "%",
         "$x", "\\n", "\n", " ", "a", "é🦊"]
    ),
    min_size=1,
).map("".join)  # fmt: skip


@given(awkward, awkward, awkward)
def test_what_fills_a_prompt_stays_as_it_is(seen: str, request: str, response: str) -> None:
    slots = {"user_request": request, "response": response}
    expected = "\n".join(prompt_10(seen, request, response))
    assert END_TO_END.format(context=seen, **slots) == expected
    expected = "\n".join(prompt_11_extraction(seen, request))
    assert EVIDENCE.format(context=seen, user_request=request) == expected
    expected = "\n".join(prompt_11_judgment(seen, request, response))
    assert FROM_EVIDENCE.format(evidence=seen, **slots) == expected
    expected = "\n".join(prompt_12(seen, request, response))
    assert STATE_TABLE.format(context=seen, **slots) == expected
    found = POINTWISE.format(context=seen, **slots)
    assert f"context: {seen}\nUser request: {request}\nAssistant response: {response}\n" in found
    both = PAIRWISE.format(context=seen, user_request=request, first=response, second=seen)
    assert f"request: {request}\nResponse A: {response}\nResponse B: {seen}\n" in both


@pytest.mark.parametrize("template", [POINTWISE, PAIRWISE])
def test_the_other_protocols_name_no_direction_of_an_error(template: str) -> None:
    """Appendix C.5: the rubric does not mention under- or over-personalization and excludes
    overall response quality."""
    directions = (
        r"\bunder|\bover|\bmiss|\bomit|\bomission|\bignor|\bforget|\bviolat|\bstale|\boutdated"
        r"|\btoo (?:much|little)|\bpersonali[sz]|\binapplicable|\bunsupported"
    )
    assert re.findall(directions, template, re.IGNORECASE) == []
    assert re.search(r"Leave out how helpful, correct\s+or well written", template)


def test_the_pointwise_scale() -> None:
    assert re.findall(r"^(\d) = ", POINTWISE, re.MULTILINE) == ["5", "4", "3", "2", "1"]
    assert "on a scale from 1 to 5" in POINTWISE
    assert filled(POINTWISE).endswith('{"score": <integer from 1 to 5>}')


def test_the_pairwise_prompt_treats_both_responses_alike() -> None:
    swapped = filled(PAIRWISE).replace("{first}", "\0").replace("{second}", "{first}")
    assert swapped.replace("\0", "{second}") == PAIRWISE.format(
        context="{context}", user_request="{user_request}", first="{second}", second="{first}"
    )
    assert filled(PAIRWISE).endswith('{"answer": "A"} or {"answer": "B"}')
