"""Retrieval at RealPref's size: what is encoded, and how long exact search takes.

    make bench

First, histories of the sample users in two contexts go through the vector store, each asked for
again by every query, as a run does: texts encoded / distinct texts must be 1.00. Then 100 users x
1,000 turns x 13 queries are searched in vectors of SimCSE's size, drawn by chance, beside a plain
sort of all cosines; both must find the same. The last line is one JSON object.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from persona_lab.benchmarks.realpref.retrieval_only import RetrievalOnly
from persona_lab.benchmarks.realpref.retrieved import units
from persona_lab.retrieval.encoder_files import find_encoder
from persona_lab.retrieval.encoders import SentenceEncoder
from persona_lab.retrieval.search import search
from persona_lab.retrieval.vectors import VectorStore
from persona_lab.running.setup import configure
from tests.conftest import ROOT

USERS, TURNS, QUERIES, DIMENSIONS, K = 100, 1000, 13, 1024, 5


def encode_sample(folder: Path) -> VectorStore:
    """Asks for the vectors that a run of `retrieval_only` asks for."""
    configured = configure(ROOT, ["recipe=retrieval_only", "context=[simple,normal]"])
    experiment = RetrievalOnly(configured.settings, configured.run, ROOT)
    store = VectorStore(folder, SentenceEncoder(find_encoder("minilm"), "auto"))
    for case in experiment.cases():
        offered = units(experiment.histories.of(case), "turn", user_only=False)
        store.vectors([case.asked.query.query, *(unit.indexed for unit in offered)])
    return store


def drawn(rows: int, seed: int) -> NDArray[np.float32]:
    """Unit rows."""
    found = np.random.default_rng(seed).standard_normal((rows, DIMENSIONS), dtype=np.float32)
    unit: NDArray[np.float32] = found / np.linalg.norm(found, axis=1, keepdims=True)
    return unit


def search_all() -> tuple[float, float]:
    """Seconds of our search and of the plain sort, a query at a time as flows ask."""
    ours = plain = 0.0
    for user in range(USERS):
        turns, queries = drawn(TURNS, user), drawn(QUERIES, USERS + user)
        for query in queries:
            start = time.perf_counter()
            [hits] = search(query, turns, K)
            between = time.perf_counter()
            best = np.argsort(-(turns @ query), kind="stable")[:K]
            plain += time.perf_counter() - between
            ours += between - start
            assert [hit.position for hit in hits] == best.tolist()
    return ours, plain


def main() -> None:
    """Measures both and prints them."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        store = encode_sample(Path(folder))
        seconds = time.perf_counter() - start
    ours, plain = search_all()
    made = {
        "texts_asked": store.asked,
        "distinct": store.distinct,
        "encoded": store.encoded,
        "encoded_over_distinct": round(store.encoded / store.distinct, 4),
        "encode_seconds": round(seconds, 2),
        "searches": USERS * QUERIES,
        "search_seconds": round(ours, 2),
        "plain_sort_seconds": round(plain, 2),
        "search_over_plain_sort": round(ours / plain, 2),
    }
    sys.stdout.write(json.dumps(made) + "\n")


if __name__ == "__main__":
    main()
