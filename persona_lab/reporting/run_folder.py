"""The files of a run: `runs/<recipe>-<hash>/`.

config.yaml           what was asked, complete
manifest.json         status, versions, identities, hardware, counts, seconds by phase
scores.parquet        the tidy table, a row per question and metric
transcripts.parquet   what was asked last and what came back
NAME.parquet          what else a benchmark writes down, such as memories
results.json          estimates, tests, usage; strict JSON
run.log               what happened, and the traceback of each case that failed
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from omegaconf import OmegaConf
from pyarrow.parquet import read_schema

from persona_lab.core.errors import DataError
from persona_lab.core.flow import Outcome
from persona_lab.core.scores import Row, Score, Summary

SCHEMA_VERSION = 1


def write_text(path: Path, text: str) -> None:
    """Writes a file so that it is there whole or not at all."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Strict JSON: no NaN, no infinity."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    """config.yaml."""
    write_text(folder / "config.yaml", config_yaml(config))


def config_yaml(config: Mapping[str, Any]) -> str:
    """A configuration as YAML, keys in their order."""
    return OmegaConf.to_yaml(OmegaConf.create(dict(config)))


def write_results(
    folder: Path,
    recipe: str,
    status: str,
    summary: Summary,
    usage: Mapping[str, Mapping[str, Any]],
) -> None:
    """results.json."""
    write_json(
        folder / "results.json",
        {
            "schema_version": SCHEMA_VERSION,
            "status": status,
            "recipe": recipe,
            "estimates": [asdict(estimate) for estimate in summary.estimates],
            "tests": summary.tests,
            "tables": [asdict(table) for table in summary.tables],
            "notes": summary.notes,
            "usage": usage,
        },
    )


def write_scores(folder: Path, scores: Sequence[Score]) -> None:
    """scores.parquet: one column per field and per facet."""
    rows = [
        {
            "case": s.case,
            "question": s.question,
            "metric": s.metric,
            "cluster": s.cluster,
            "value": s.value,
            "outcome": s.outcome,
            "reason": s.reason,
            **s.facets,
        }
        for s in scores
    ]
    frame = pd.DataFrame(rows)
    if "value" in frame:
        frame["value"] = frame["value"].astype("float64")
    _write_parquet(folder / "scores.parquet", frame)


def write_transcripts(folder: Path, outcomes: Iterable[Outcome[Any, Any]]) -> None:
    """transcripts.parquet: the messages after the history, the reply, its outcome and counts."""
    rows = [
        {
            "case": outcome.case.id,
            "role": request.role,
            "history_messages": request.prompt.history.length,
            "asked": "\n\n".join(m.content for m in request.prompt.tail),
            "reply": reply.text,
            "reasoning": reply.reasoning,
            "outcome": reply.outcome,
            "reason": reply.reason,
            "flags": " ".join(reply.flags),
            "finish_reason": reply.finish_reason,
            "prompt_tokens": reply.counts.prompt,
            "cached_tokens": reply.counts.cached,
            "completion_tokens": reply.counts.completion,
            "sample": request.sample,
            "key": request.key,
        }
        for outcome in outcomes
        for request, reply in outcome.exchanges
    ]
    _write_parquet(folder / "transcripts.parquet", pd.DataFrame(rows))


def write_files(folder: Path, files: Mapping[str, list[Row]]) -> None:
    """Further Parquet files, by their stems; one without rows is not written."""
    for stem, rows in files.items():
        if rows:
            _write_parquet(folder / f"{stem}.parquet", pd.DataFrame(rows))


def read_table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Columns of a run's scores.parquet or transcripts.parquet.

    Raises:
        DataError: no such file, no Parquet, or a column that is not there, as in a run of another
            benchmark.
    """
    try:
        there = read_schema(path).names
        if lacking := [name for name in columns if name not in there]:
            problem = f"cannot be read: no column {lacking[0]}; is it a run of this benchmark?"
            raise DataError(path, problem)
        return pd.read_parquet(path, columns=list(columns))
    except FileNotFoundError:
        raise DataError(path, "no such file; --run names a finished run's folder") from None
    except (OSError, ValueError) as error:
        raise DataError(path, f"cannot be read ({error})") from None


def _write_parquet(path: Path, frame: pd.DataFrame) -> None:
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    frame.to_parquet(scratch, index=False)
    scratch.replace(path)
