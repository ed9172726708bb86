"""Texts of the evaluation.

END_TO_END (Prompt 10), EVIDENCE and FROM_EVIDENCE (Prompt 11) and STATE_TABLE (Prompt 12) are the
paper's, word for word; line breaks, which its text copy lost, are set here. It prints no prompt for
the protocols of Appendix C.5: POINTWISE and PAIRWISE are this project's, to its description.
"""

from __future__ import annotations

_INPUTS = """\
Conversation context: {context}
User request: {user_request}
Assistant response: {response}
"""

_TAXONOMY = """\
OVER_PERSONALIZED (the response actively uses wrong information):
- uses a preference that belongs to a different person
- uses a stale/outdated preference (superseded by newer information)
- uses a preference from a different scope (e.g., business constraints applied to a personal trip)
- uses information that is irrelevant to this specific request
- acts on a preference the user never stated (unsupported inference)
- lets a soft preference dominate over the primary task requirement
UNDER_PERSONALIZED (the response fails to use correct information):
- gives a generic response ignoring a clearly applicable preference (complete omission)
- uses some preferences but misses a critical one (partial omission)
- acknowledges a constraint but treats it as optional/soft (underweighting)
- directly contradicts a stated preference without acknowledging it (explicit violation; if the \
response contradicts a newer preference by using stale information, that is OVER, not UNDER)
RIGHT: the response correctly applies all relevant current preferences without over- or \
under-applying them.
"""

_DISAMBIGUATION = """\
- Generic response referencing no user-specific information -> UNDER
- Actively applies wrong or inapplicable information -> OVER
- If both occur, classify by the primary mechanism: substitution of B for A -> OVER; simply not \
using A -> UNDER
"""

_SUBTYPES = (
    "under.complete_omission, under.partial_omission, under.underweighting, "
    "under.explicit_violation, over.irrelevant_use, over.scope_leakage, "
    "over.stale_or_superseded, over.unsupported_inference, over.over_dominance"
)

_CONTRACT = (
    """\
Respond with a JSON object containing:
- "verdict": one of "RIGHT", "OVER_PERSONALIZED", "UNDER_PERSONALIZED"
- "subtypes": the primary error subtype if applicable, drawn from: """
    + _SUBTYPES
    + """; an empty list if RIGHT
- "confidence": float 0.0--1.0
- "reasoning": brief explanation citing which preference was mishandled and how
Respond only with the JSON object, no other text."""
)

END_TO_END = (
    """\
Given the conversation context below, evaluate whether the assistant response correctly uses the \
user's preferences, constraints, and expressed states.
"""
    + _INPUTS
    + """\
Step 1: Identify applicable user preferences/constraints from the context; list which are relevant \
to this specific request.
Step 2: Check the response against each applicable preference.
Step 3: Classify using the decision tree below.
"""
    + _TAXONOMY
    + _DISAMBIGUATION
    + _CONTRACT
)
"""Prompt 10."""

EVIDENCE = """\
Extract all user preferences, constraints, and states from this conversation context that are \
relevant to the user's current request.
Conversation context: {context}
User's current request: {user_request}
List each preference, constraint, or state that could be relevant to answering the user's request. \
For each, note: what the preference/state is; which turn it was expressed in; whether it is still \
current or potentially stale/superseded.
Respond with a structured list of extracted evidence."""
"""Prompt 11, stage 1."""

FROM_EVIDENCE = (
    """\
Given the extracted evidence below, evaluate whether the assistant response correctly uses these \
preferences, constraints, and states.
Extracted evidence: {evidence}
User request: {user_request}
Assistant response: {response}
"""
    + _TAXONOMY
    + _DISAMBIGUATION
    + _CONTRACT
)
"""Prompt 11, stage 2."""

STATE_TABLE = (
    """\
You are a persona-use evaluator. You systematically search the dialogue history, build a \
structured state table, and then judge the response.
Target query: {user_request}
Candidate response: {response}
Searchable multi-episode dialogue history: {context}
Step 1: List which user preferences, constraints, or states could be relevant to the target query. \
Consider: dietary, budget, scheduling, location, people involved, prior decisions, hard \
constraints, soft preferences.
Step 2: For each candidate state, search the dialogue (at most 6 searches) for supporting \
evidence, later updates or exceptions, conflicting evidence, and holder/scope boundaries (does it \
belong to this user, for this task, at this time?).
Step 3: For each confirmed state, record: State | Holder | Scope | Status | Strength | Evidence \
Turns | Policy, where
- Holder: user / spouse / parent / colleague / other
- Scope: global / specific domain / specific task / specific time
- Status: active / updated / superseded / expired / one-time exception
- Strength: hard (dealbreaker) / strong (important) / soft (nice-to-have)
- Evidence Turns: the turn numbers that support it
- Policy: IGNORE (not applicable here) / SUPPORT (should inform but not dominate) / DOMINATE (must \
be satisfied)
Step 4: Check that the response (1) uses all states with Policy=DOMINATE (missing any -> UNDER); \
(2) appropriately references SUPPORT states (ignoring all -> UNDER, over-applying -> OVER); (3) \
does not use IGNORE states (using them -> OVER); (4) does not treat DOMINATE states as merely \
SUPPORT (-> UNDER, underweighting); (5) does not treat SUPPORT states as DOMINATE (-> OVER, \
over-dominance); (6) if it contradicts State A by using old/superseded information -> OVER \
(stale), not UNDER; (7) if it contradicts State A by simply forgetting it (no old information \
referenced) -> UNDER (explicit violation).
Step 5: Reach a verdict.
- Do not assume the response contains an error; many responses are correctly personalized.
- Use at most 6 searches through the dialogue.
- Return only one primary error when the verdict is UNDER or OVER.
Respond only with a JSON object:
{{"state_table": [{{"state": "...", "holder": "...", "scope": "...", "status": "...", "strength": \
"...", "evidence_turns": [...], "policy": "..."}}], "verdict": "RIGHT" or "OVER_PERSONALIZED" or \
"UNDER_PERSONALIZED", "subtypes": [the primary error subtype, drawn from """
    + _SUBTYPES
    + """; empty if RIGHT], "confidence": 0.0--1.0, "reasoning": "concise justification"}}"""
)
"""Prompt 12; the canonical list of Prompt 10, which it refers to, is written out."""

POINTWISE = """\
Below are a conversation, the user's latest request and one response to it.
Conversation context: {context}
User request: {user_request}
Assistant response: {response}
Rate how appropriately the response uses what the user said earlier, on a scale from 1 to 5:
5 = what applies to this request is used with the weight it deserves, and nothing else is used
4 = appropriate, with one small slip
3 = partly appropriate
2 = mostly inappropriate
1 = inappropriate throughout
Leave out how helpful, correct or well written the response is otherwise.
Respond only with a JSON object: {{"score": <integer from 1 to 5>}}"""
"""Appendix C.5: one rating per response; it names no direction of an error."""

PAIRWISE = """\
Below are a conversation, the user's latest request and two responses to it.
Conversation context: {context}
User request: {user_request}
Response A: {first}
Response B: {second}
Which response uses what the user said earlier more appropriately? Leave out how helpful, correct \
or well written they are otherwise.
Respond only with a JSON object: {{"answer": "A"}} or {{"answer": "B"}}"""
"""Appendix C.5: both responses side by side."""
