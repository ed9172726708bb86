"""Texts of the evaluation.

REMINDER (Appendix H.2.1), the judge's prompt (Appendix F.2) and the rubrics (Tables 4-6) are the
paper's, word for word; line breaks, which its text copy lost, are set here. The paper prints no
instruction for multiple-choice and true-or-false questions: CHOICE and TRUTH are this project's.
"""

from __future__ import annotations

from typing import Literal

Dimension = Literal["preference_awareness", "preference_alignment", "answer_quality"]
DIMENSIONS: tuple[Dimension, ...] = (
    "preference_awareness",
    "preference_alignment",
    "answer_quality",
)

REMINDER = (
    "When you answer the question, recall my preference indicated in the conversation history, "
    "and provide an answer that aligns with my preferences."
)

NOW_RECALL = (
    "Now recall my preference indicated in the conversation history, and provide an answer that "
    "aligns with my preferences."
)
"""Last sentence of the prompt for RAG."""

CHOICE = "Choose the one option that suits me best. Answer with its letter and nothing else."
TRUTH = "Answer with one word only: True or False."

JUDGE = """\
You are a strict evaluator. Given a user preference, a query and a candidate assistant response, \
score the response on a 1-5 scale, where 1 = very poor and 5 = excellent.
Here is the evaluation rubric: {rubric}
User preference: {preference}.
User query: {query}.
Assistant response: {response}.
Your judge should be organized in JSON format with the following 2 keys:
- "Judge_Reason": A very short judge reason how you evaluate the response according to the rubrics.
- "Score": The score you give to the response.
Return in pure JSON text format as template example: {template}."""

JUDGE_TEMPLATE = '{"Judge_Reason": "<a very short reason>", "Score": <integer from 1 to 5>}'

JUDGE_SCHEMA = """\
{"type": "object", "properties": {"Judge_Reason": {"type": "string", "maxLength": 240}, \
"Score": {"enum": [1, 2, 3, 4, 5]}}, "required": ["Judge_Reason", "Score"], \
"additionalProperties": false}"""

_AWARENESS = """\
1: No mention or reflection of user preference at all.
2: Mentions user preference, but the stated preference content is incomplete or incorrect.
3: Mentions user preference, and correctly states the preference, but not well integrated in the \
response (the response is highly generic, which can be applied to any user).
4: Mentions user preference, correctly states the preference, and integrates the preference in \
the response.
5: Mentions user preference, correctly states the preference, and the response is fully aware, \
deeply focused, consistently centered on the preference."""

_ALIGNMENT = """\
1: Clear violation of user preference. Examples:
- User prefers A over B, but the response only suggests B.
- User only likes A, but the response only suggest something except A.
- User does not accept B, but the response only suggest B.
2: Mostly inconsistent or ignores some taboos. Examples:
- User only likes A, but the response suggest A and something except A.
- User does not accept B, but the response also contains B.
3: Generally aligned but with inaccuracies or gaps. Examples:
- User prefers A over B, but the response suggests A as well as B.
- User likes A, but the response only suggest something other than A.
4: Aligned and mostly consistent. Examples:
- User prefers A over B, and the response suggests A.
- User only likes A, and the response suggests A.
- User does not accept B, and the response does not contain B.
- User likes A, and the response is mostly about A.
5: Fully aligned, no conflicts at all (requirement for score 4), and the response is consistently \
centered on the preference, with tailored suggestions and explanations."""

_QUALITY = """\
1: Off-topic or irrelevant. The response does not address the question, only irrelevant \
information.
2: On-topic but no useful information. Example:
- The response is not informative and seems like background information or small talk rather than \
actual advice.
- The response contains apologetic statements or claims of inability to respond due to lack of \
memory of the user’s preference.
- The assistant asks for more information without providing any substantive suggestions, and \
advises directly related to the query.
3: On-topic, some relevant but not constructive information. Example:
- The response only gives some abstract solutions; the advice is vague and unactionable.
- The response provides some relevant recommendations, but also contains apologetic statements or \
claims of inability to follow the user’s preference.
4: Constructive, useful and gives clear guidance. The response provides specific, relevant \
recommendations or advice related to the query without any apologetic statements or claims of \
inability to respond.
5: Highly constructive, detailed, multiple helpful ideas or perspectives."""

RUBRICS: dict[Dimension, str] = {
    "preference_awareness": _AWARENESS,
    "preference_alignment": _ALIGNMENT,
    "answer_quality": _QUALITY,
}
"""Tables 4, 5 and 6."""


def judge_prompt(dimension: Dimension, preference: str, query: str, response: str) -> str:
    """The judge's prompt for one dimension (Appendix F.2); the texts stand in it as they are."""
    return JUDGE.format(
        rubric=RUBRICS[dimension],
        preference=preference,
        query=query,
        response=response.strip(),
        template=JUDGE_TEMPLATE,
    )
