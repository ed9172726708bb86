"""PersEvalBench: can a model judge how user information was used?

Liu et al., "PersEvalBench: Can LLM Evaluators Judge Contextually Appropriate Use of Persona
Information?" (arXiv 2610.19314). The model under test is the evaluator. Where its sections are:

    records.py         section 3.2, Appendix B: relations, subtypes, states, evidence; Tables 7, 8
    loading.py         scenarios, read strictly and held to the scenario grammar
    context.py         section 4 and Appendix C.4: what of the history an evaluator sees
    retrieved.py       beyond the paper: a context of the turns most similar to the request
    retrieval_scoring.py  is that the evidence? Recall and reciprocal rank, with bounds
    retrieval_only.py  beyond the paper: retrievers by themselves, without a language model
    prompts.py         Prompts 10-12, word for word; the protocols of Appendix C.5
    verdicts.py        what a reply says: verdict, named subtype, confidence, probabilities
    settings.py        section 4: what a recipe chooses from
    cases.py           section 4: what is asked; stratified samples (C.4, D)
    experiment.py      sections 4 and 5: who is asked what, and what is reported
    scoring.py         section 4: from replies to ERR and FAR, ratings and choices
    derived.py         sections 4, 5.1, C.5: pair accuracy, wrong directions, order consistency
    baseline.py        Table 3: the constant-Over row
    summary.py         sections 5.1-5.4: estimates by condition and part, group means, the card
    tables.py          verdicts by subtype; beyond the paper: operating curves, calibration
    panel.py           beyond the paper: several evaluators scored like one
    human_check.py     section 5.1, C.3, D: evaluators against people
    data_checks.py     Prompts 3 and 9: the rules of the verifier that a program can hold data to
    human_studies.py   what the four studies' sheets share
    fidelity_sheets.py Appendix D, Study 1, Table 12: is the intended error there?
    role_sheets.py     Appendix D, Study 2: Ignore, Support or Dominate
    verdict_sheets.py  Appendix D, Study 3, Table 4: people as evaluators
    audit_sheets.py    Appendix C.3: secondary errors of under-personalized responses
"""
