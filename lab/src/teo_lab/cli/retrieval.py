"""`teo-lab retrieval`: what search finds with utterances as they are, rewritten by a model, and by a person."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.cli.options import SPLIT_HELP
from teo.cli.output import echo_json, write_line
from teo.errors import InputError


def retrieval(
    *,
    out: Annotated[Path, typer.Option(help="Folder for the results; a stopped run is resumed.")],
    data: Annotated[str, typer.Option(help="A dataset whose histories hold the answers: canard or jsonl.")] = "canard",
    path: Annotated[Path | None, typer.Option(help="The dataset's folder or its file.")] = None,
    split: Annotated[str, typer.Option(help=SPLIT_HELP)] = "dev",
    corpus: Annotated[
        Path | None, typer.Option(help='Documents of your own: JSONL with "id" and "text".', metavar="FILE")
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(help='With --corpus: JSONL with "history", "utterance", "relevant" (ids).', metavar="FILE"),
    ] = None,
    model: Annotated[Path | None, typer.Option(help="A model folder; the embedded one by default.")] = None,
    retriever: Annotated[
        str, typer.Option(help="bm25, or MODULE:FUNCTION that makes one from the documents.", metavar="NAME")
    ] = "bm25",
    limit: Annotated[int | None, typer.Option(help="Only N questions, drawn by seed.", metavar="N")] = None,
    seed: Annotated[int, typer.Option(help="For the draw of --limit.")] = 0,
    n_best: Annotated[int, typer.Option(help="From 2 on: rewrites whose rankings are fused too.", metavar="N")] = 1,
    depth: Annotated[int, typer.Option(help="Documents that a search gives, from 10 on.", metavar="N")] = 100,
    fusion_constant: Annotated[
        int, typer.Option(help="The k of reciprocal rank fusion: small, and first ranks count more.", metavar="K")
    ] = 60,
    keep_said: Annotated[
        bool, typer.Option("--keep-said", help="Leave documents that are turns of the history in the rankings.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON.")] = False,
) -> None:
    """Measure search with and without rewriting: retrieval.json and retrieval.md go to the output folder.

    Example: teo-lab retrieval --data canard --path data/canard --split dev --limit 800 --out runs/retrieval
    """
    from teo.data import load_rows
    from teo_lab.retrieval.collection import collect_answers, read_collection
    from teo_lab.retrieval.experiment import format_result, measure_retrieval
    from teo_lab.retrieval.retrievers import make_retriever

    if corpus is not None and queries is not None and path is None:
        collection, source = read_collection(corpus, queries), f"{queries.name} in {corpus.name}"
    elif path is not None and corpus is None and queries is None:
        loaded = load_rows(data, path, split)
        if loaded.skipped:
            write_line(f"{len(loaded.skipped)} malformed rows left out, the first: {loaded.skipped[0]}")
        collection, source = collect_answers(loaded.rows), f"{data} ({split})"
    else:
        raise InputError("expected either --path (with --data), or --corpus and --queries together")
    collection = collection.sample(limit, seed)
    found = make_retriever(retriever, collection.documents)
    if keep_said:
        collection = collection.keep_said()
    result = measure_retrieval(
        collection, source, found, out, model=model, n_best=n_best, depth=depth, constant=fusion_constant
    )
    if as_json:
        echo_json(result.to_dict())
    else:
        typer.echo(format_result(result), nl=False)
