"""RealPref: does a model follow preferences that its user voiced over a long history?

Guo et al., "Towards Natural Personalization" (arXiv 2603.04191). Where its sections are:

    records.py           sections 3.1-3.3, Appendix E, F.1: profiles, preferences, sessions, queries
    history.py           section 3.4, Table 2: the interaction history of one user
    context.py           Table 2 and Appendix G.2: which history a case sees
    filler.py            section 3.3: the user-free turns between its sessions
    tasks.py             section 4.1: the three question forms, and the methods of section 5.1
    prompts.py           Appendix F.2 (judge, Tables 4-6) and H.2 (methods), word for word
    few_shot.py          Appendix H.2.1: few-shot chain-of-thought, frame and examples
    retrieved.py         Appendix H.2.1: what RAG retrieves and shows
    remembered.py        Appendix H.2.3: what Mem0 writes, recalls and shows
    memory_report.py     Appendix H.2.3: its sizes, costs, failures, and where each memory came from
    mitigations.py       Appendix H.2: RAG and Mem0 before a question, held to the evidence
    on_histories.py      section 3.4: users and histories, as all experiments read them
    retrieval_only.py    Appendix H.2.1: retrievers by themselves, against the evidence
    scoring.py           section 4.2: from replies to scores
    settings.py          section 5.1: what a recipe chooses from
    cases.py             section 5.2: what is asked
    experiment.py        section 5.3: who is asked what, and what is reported
    summary.py           section 5.3 and Appendix H.4, Table 16: estimates, repeated runs, notes
    judge_check.py       Appendix G.3, Table 10, Figure 12: the judge against a second one or people
    significance.py      Appendix H.3, Tables 13 and 14: tests between expression types and contexts
    token_report.py      Appendix H.2.2, Table 12: what a method costs in tokens
    data_checks.py       Appendix G.1-G.2, E.3 and F.1: the data held to its quality rules
    wording.py           Appendix F.1 and E.3.3: content words, words that state a preference
    option_baselines.py  Appendix G.2: multiple choice answered without the history
    pair_sheets.py       Appendix G.1, Table 7: people compare conversations of two sources
    easy_test_sheets.py  Appendix G.2, Table 8: people take the Easy Test
    answer_sheets.py     Appendix G.3, Table 10: people score answers like the judge
"""
