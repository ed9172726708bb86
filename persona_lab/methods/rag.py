"""Retrieval over the texts of a history: which of them are most similar to a query?

    simcse, minilm, any encoder's name    cosine of sentence vectors (RealPref Appendix H.2: SimCSE)
    bm25                                  lexical
    fusion                                reciprocal rank fusion of an encoder and bm25
    random, oracle                        to compare with: what chance finds, the evidence itself

A sub-flow: encoders are asked through `Encode`, so that the texts of all flows are encoded together
and each text once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import numpy as np

from persona_lab.core.errors import ConfigError
from persona_lab.core.experiment import EncoderSettings, stable_digest
from persona_lab.core.flow import Encode, Flow
from persona_lab.retrieval.encoders import check_texts
from persona_lab.retrieval.fusion import reciprocal_rank_fusion
from persona_lab.retrieval.lexical import bm25
from persona_lab.retrieval.search import Hit, search

LEXICAL, FUSION, RANDOM, ORACLE = "bm25", "fusion", "random", "oracle"
BOUNDS = (RANDOM, ORACLE)


def encoder_of(retriever: str, encoder: str) -> str:
    """The encoder that a retriever asks; empty if it asks none.

    Args:
        encoder: the one that fusion uses.
    """
    if retriever in (LEXICAL, *BOUNDS):
        return ""
    return encoder if retriever == FUSION else retriever


def known_encoders(
    retrievers: Sequence[str], encoder: str, settings: Mapping[str, EncoderSettings]
) -> dict[str, EncoderSettings]:
    """The encoders that retrievers ask, by name, with their settings.

    Args:
        encoder: the one that fusion uses.

    Raises:
        ConfigError: fusion has no encoder to fuse.
    """
    if FUSION in retrievers and (not encoder or encoder_of(encoder, "") != encoder):
        raise ConfigError(
            f"retrieval.encoder={encoder}: fusion needs a sentence encoder beside bm25"
        )
    names = dict.fromkeys(encoder_of(retriever, encoder) for retriever in retrievers)
    return {name: settings.get(name, EncoderSettings()) for name in names if name}


class Retrieves(Protocol):
    """Settings that name a retriever and the encoder that fusion uses."""

    @property
    def retriever(self) -> str: ...
    @property
    def encoder(self) -> str: ...


def variant(settings: Retrieves, *names: str) -> str:
    """How retrieval settings differ from their defaults, such as `minilm_k_10` or `user_only`.

    Empty if they do not; what fusion uses is always named.

    Args:
        names: of the further settings that matter.
    """
    parts = differing(settings, "retriever", bare=True)
    parts += [settings.encoder] if settings.retriever == FUSION else []
    return "_".join(parts + differing(settings, *names))


def differing(settings: object, *names: str, bare: bool = False) -> list[str]:
    """The settings that differ from their type's defaults, as `name_value`; a switch as its name.

    Args:
        bare: as the value alone.
    """
    usual = type(settings)()
    changed = {n: v for n in names if (v := getattr(settings, n)) != getattr(usual, n)}
    return [
        str(value) if bare else name if value is True else f"{name}_{value}"
        for name, value in changed.items()
    ]


def retrieve(
    retriever: str,
    query: str,
    texts: Sequence[str],
    k: int,
    *,
    encoder: str = "",
    evidence: Collection[int] = (),
    seed: int = 0,
) -> Flow[list[Hit]]:
    """The k texts that suit the query best, best first, ties by position; fewer, if there are.

    Args:
        retriever: by name, as above. encoder: the one that fusion uses.
        evidence: positions that the oracle gives, in their order; it gives nothing else, score 1.
        seed: of the random order, with the query; its scores are 0.

    Raises:
        ValueError: k is below 1, fusion has no encoder, evidence is none of the texts, or an
            encoder is asked about a blank text.
    """
    if k < 1:
        raise ValueError(f"k={k}: at least 1 is needed")
    if retriever == FUSION and not encoder:
        raise ValueError("retriever=fusion: needs an encoder beside bm25")
    if retriever == ORACLE:
        if strange := sorted(p for p in evidence if not 0 <= p < len(texts)):
            raise ValueError(f"evidence at {strange}, but there are {len(texts)} texts")
        return [Hit(position, 1.0) for position in sorted(evidence)[:k]]
    if retriever == RANDOM:
        drawn = np.random.default_rng(stable_digest(f"{seed}/{query}")).permutation(len(texts))
        return [Hit(position, 0.0) for position in drawn[:k].tolist()]
    if retriever == LEXICAL:
        return bm25(query, texts, k)
    if not texts:
        return []
    check_texts([query, *texts])  # before other flows' texts join: a blank one fails this case only
    vectors = yield Encode(encoder_of(retriever, encoder), (query, *texts))
    if retriever != FUSION:
        [hits] = search(vectors[0], vectors[1:], k)
        return hits
    [whole] = search(vectors[0], vectors[1:], len(texts))
    rankings = (whole, bm25(query, texts, len(texts)))
    return reciprocal_rank_fusion([[hit.position for hit in r] for r in rankings], k)
