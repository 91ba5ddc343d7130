"""`teo export`: a trained model in the form that runs without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.cli.output import echo_json


def export(
    model: Annotated[Path, typer.Argument(help="The folder that training wrote.")],
    out: Annotated[Path, typer.Argument(help="The folder to write; replaced whole if it is there.")],
    *,
    quantize: Annotated[str, typer.Option(help="int8, or none for float32.", metavar="FORM")] = "int8",
    compare: Annotated[
        Path | None, typer.Option(help="JSONL rows with history, utterance, rewrite: measure what the form costs.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Compare on the first N rows only.", metavar="N")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Export a model (BART, Marian, T5 or our own backbone): graphs, int8 weights, tokenizer and card in one folder."""
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
