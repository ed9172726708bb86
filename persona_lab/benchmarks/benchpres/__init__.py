"""BenchPreS: does a model hold preferences back where norms forbid them?

Yoon et al., "BenchPreS: A Benchmark for Context-Aware Personalized Preference Selectivity of
Persistent-Memory LLMs" (arXiv 2603.16557). Where its sections are:

    records.py           sections 3.1-3.2, Table 6: contexts, profiles, preferences, gold labels
    loading.py           the data folder, read strictly; CIMemories' profiles as the facts
    memory.py            section 3.2: a profile's memory block; density and order beyond the paper
    prompts.py           Figures 10-13, word for word; the texts of what goes beyond the paper
    defences.py          section 4.5: the default prompt, the paper's defence, and five more
    requests.py          section 4.1: who is asked, with which budget and sampling
    roles.py             section 4.1: which models that takes
    scoring.py           section 3.3: from replies to z, MR and AAR; section 5.3: completeness
    settings.py          section 4.1: what a recipe chooses from
    cases.py             section 4.1: what is asked
    selection.py         Table 5: which users and contexts, and how much that is
    experiment.py        sections 4 and 5: who is asked what, and what is reported
    summary.py           sections 4.2, 5.1, 5.2: rates by condition, domain, category and sample
    comparisons.py       sections 4.4, 4.5, 5.3: conditions paired by instance, the 2 x 2
    judge_check.py       section 6, Table 4: the judge against others; its errors corrected for
    agreement_sample.py  section 6: which instances it is checked on
    probe.py             beyond the paper: does the model know the norm that it breaks?
    shown.py             beyond the paper: the whole memory, what RAG finds, or what of that suits
    selectivity.py       beyond the paper: what of g = 0 and of g = 1 these steps let through
    data_checks.py       section 3.2 and Appendix A: the data held to its description
    label_sheets.py      Appendix A.2: people give gold labels
    response_sheets.py   section 6: people judge responses like the judge
"""
