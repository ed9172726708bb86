"""RealPref: does a model follow preferences that its user voiced over a long history?

Guo et al., "Towards Natural Personalization" (arXiv 2603.04191). Where its sections are:

    records.py      sections 3.1-3.3, Appendix E and F.1: profiles, preferences, sessions, queries
    history.py      section 3.4, Table 2: the interaction history of one user
    tasks.py        section 4.1: the three question forms, and the methods of section 5.1
    prompts.py      Appendix F.2 (judge, Tables 4-6) and H.2 (methods), word for word
    scoring.py      section 4.2: from replies to scores
    settings.py     section 5.1: what a recipe chooses from
    cases.py        section 5.2: what is asked
    experiment.py   section 5.3: flow and estimates
"""
