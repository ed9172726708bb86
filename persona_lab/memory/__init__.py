"""A memory of one user, written by a model: Mem0's two phases as a flow.

Chhikara et al., "Mem0: Building Production-Ready AI Agents with Scalable Long-Term Memory"
(arXiv 2504.19413); RealPref compares it with RAG (Appendix H.2.3). Where its parts are:

    records.py     exchanges, memories and the events that made them; where a memory came from
    prompts.py     the three texts and their schemas, this project's own words
    replies.py     what a reply says: facts, a decision, a summary; or why it says none
    extraction.py  phase 1: facts from the summary, the last m messages and the new exchange
    bank.py        what ADD, UPDATE, DELETE and NOOP do, and what is never lost
    ingest.py      phase 2: each fact beside the s most similar memories; the whole
    recall.py      the memories most similar to a question
    language.py    whether a fact is written in the script of its exchange
"""
