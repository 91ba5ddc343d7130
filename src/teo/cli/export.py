"""`teo export`: a trained model in the format that runs without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.cli.output import echo_json


def export(
    model: Annotated[Path, typer.Argument(help="The folder that training wrote.")],
    out: Annotated[Path, typer.Argument(help="The folder to write; an existing model folder is replaced.")],
    *,
    quantize: Annotated[str, typer.Option(help="int8, or none for float32.", metavar="FORMAT")] = "int8",
    compare: Annotated[
        Path | None, typer.Option(help="JSONL rows with history, utterance and rewrite: measure what int8 costs.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Compare on the first N rows only.", metavar="N", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write a trained model as int8 graphs that run without torch.

    The model may be BART, Marian, T5 or our own backbone. The folder gets graphs, weights, tokenizer and card.
    """
    from teo.export.export import export_model, measure_loss

    exported = export_model(model, out, quantize=quantize)
    facts = {
        "path": str(exported.path),
        "form": exported.form,
        "parameters": exported.parameters,
        "megabytes": round(exported.bytes / 1e6, 1),
    }
    loss = None
    if compare is not None:
        from teo.data import load_rows

        loss = measure_loss(model, out, load_rows("jsonl", compare).rows[:limit])
    if as_json:
        echo_json({**facts, **({} if loss is None else {"loss": loss.to_dict()})})
        return
    typer.echo(f"{out}: {facts['parameters']:,} parameters, {facts['megabytes']} MB, form {facts['form']}")
    if loss is not None:
        typer.echo(
            f"{loss.rows} rows: EM {loss.em_before:.4f} before, {loss.em_after:.4f} after; "
            f"{loss.same:.1%} of the rewrites are the same"
        )
