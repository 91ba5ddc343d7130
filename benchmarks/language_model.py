"""`python benchmarks/language_model.py DATA OUT --endpoint NAME=URL`: language models and ours on equal rows.

All systems rewrite the same rows, one at a time, in one run on one machine: the English everyday dialogues and the
first rows of CANARD's test set, or others by `--datasets`. The models are asked with LangChain's prompt for follow-up
questions (`pip install langchain-classic`), with our own prompt and five examples (`--prompts shots`), or with both.
Ours does what `teo rewrite` does. OUT/DATASET.json has quality, latency and tokens of every system, and the folder
OUT/DATASET has its rows, without the text of published datasets. A key is read from the variable OPENAI_API_KEY.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from everyday import FOLDER
from teo.data.row import Row
from teo.files import write_json, write_text
from teo.provenance import git_commit, versions
from teo.rewriter import Rewriter
from teo_lab.llm.client import Endpoint
from teo_lab.llm.comparison import Asked, ComparedSet, compare
from teo_lab.llm.prompt import LANGCHAIN, PROMPTS
from teo_lab.retrieval.collection import Collection, collect_answers
from teo_lab.retrieval.measures import measure_rankings, summarise_measures
from teo_lab.retrieval.retrievers import Bm25

DATASETS = ("everyday", "canard", "rewrite", "task")
BODY = {"max_tokens": 64, "stop": ["\n"]}
SHOTS = 5
"""Demonstrations in the prompt `shots`, as many as the paper gives GPT-4."""
DEPTH = 100
"""Documents of a ranking that count."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare all systems, store what may be kept, and print where."""
    options = make_parser().parse_args(arguments)
    asked = Asked(
        [_endpoint(text, options.timeout) for text in options.endpoint],
        options.prompts,
        options.runs,
        SHOTS,
        options.body,
    )
    rewriter = Rewriter.from_pretrained()
    settings: dict[str, Any] = {
        "models": {endpoint.model: "" for endpoint in asked.endpoints} | dict(_pair(text) for text in options.about),
        "prompts": options.prompts,
        "shots": SHOTS,
        "body": options.body,
        "ours": {"model": rewriter.name, "variant": rewriter.variant},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": versions(["langchain-classic", "langchain-core", "numpy", "onnxruntime"]),
        "commit": git_commit(),
    }
    for name in options.datasets:
        systems = compare(choose_dataset(name, options), asked, rewriter, options.out)
        file = options.out / f"{name}.json"
        write_json(file, {**settings, "systems": systems})
        print(file)


def search_answers(
    every: Sequence[Row], rows: Sequence[Row], queries: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Any]]:
    """Return how well each system's texts find the answers among those of all rows, and on how many questions.

    As in the study of search: the answer to a question is in the history of the next one, and answers that were said
    before are left out of the rankings.
    """
    wanted = {row.id: at for at, row in enumerate(rows)}
    found = collect_answers(every)
    collection = Collection(found.documents, tuple(each for each in found.questions if each.id in wanted))
    retriever, relevant = Bm25(collection.documents), [question.relevant for question in collection.questions]
    spare = max((len(question.said) for question in collection.questions), default=0)
    measured = {}
    for name, texts in queries.items():
        rankings = retriever.search([texts[wanted[question.id]] for question in collection.questions], DEPTH + spare)
        unsaid = [
            [index for index in ranking if index not in question.said][:DEPTH]
            for ranking, question in zip(rankings, collection.questions, strict=True)
        ]
        measured[name] = summarise_measures(measure_rankings(unsaid, relevant), None)
    return {
        name: {
            "questions": len(relevant),
            "mrr": found.values["mrr"],
            "mrr_interval": [found.intervals["mrr"].low, found.intervals["mrr"].high],
        }
        for name, found in measured.items()
    }


def make_parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser = argparse.ArgumentParser(description="Compare language models with the embedded one on equal rows.")
    parser.add_argument("data", type=Path, help="the folder that holds canard, rewrite and task")
    parser.add_argument("out", type=Path, help="the folder of stored results, such as lab/results/llm")
    parser.add_argument(
        "--endpoint",
        action="append",
        required=True,
        metavar="NAME=URL",
        help="the name that the endpoint knows and where it is, such as tiny=http://127.0.0.1:8080/v1; may be repeated",
    )
    parser.add_argument(
        "--about", action="append", default=[], metavar="NAME=TEXT", help="what a model is: size, bits, where from"
    )
    parser.add_argument("--prompts", nargs="+", choices=PROMPTS, default=[LANGCHAIN])
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=["everyday", "canard"])
    parser.add_argument("--rows", type=int, default=100, help="the first rows of a published dataset")
    parser.add_argument("--every", type=int, default=1, help="only every Nth everyday dialogue")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that an answer may take")
    parser.add_argument(
        "--body",
        type=json.loads,
        default=BODY,
        help="fields of a request to add or replace, as JSON; the default ends an answer at a line break or 64 tokens",
    )
    parser.add_argument("--runs", type=Path, default=Path("runs/llm"), help="the folder of predictions, with text")
    return parser


def choose_dataset(name: str, options: argparse.Namespace) -> ComparedSet:
    """Return the rows of a dataset by its name."""
    if name == "everyday":
        return ComparedSet(name, "jsonl", _everyday(options), "all", examples=FOLDER / "dev" / "en.jsonl", own=True)
    return ComparedSet(
        name, name, options.data / name, limit=options.rows, search=search_answers if name == "canard" else None
    )


def _everyday(options: argparse.Namespace) -> Path:
    """Return the file of the English dialogues, or of every Nth: they stand by kind, so the first are no sample."""
    file = FOLDER / "en.jsonl"
    if options.every == 1:
        return file
    drawn = file.read_text(encoding="utf-8").splitlines(keepends=True)[:: options.every]
    sample: Path = options.runs / f"everyday-{options.every}.jsonl"
    sample.parent.mkdir(parents=True, exist_ok=True)
    write_text(sample, "".join(drawn))
    return sample


def _endpoint(text: str, timeout: float) -> Endpoint:
    name, url = _pair(text)
    return Endpoint(url, name, os.environ.get("OPENAI_API_KEY"), timeout)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise SystemExit(f"expected NAME=VALUE, found '{text}'")
    return name, value


if __name__ == "__main__":
    main()
