"""`teo build`: a backbone of a pretrained decoder's layers, to pretrain further."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from teo.errors import MissingExtraError


def build(
    gguf: Annotated[Path, typer.Argument(help="The pretrained decoder, a GGUF file of Llama's form.")],
    out: Annotated[Path, typer.Argument(help="The folder to write.")],
    *,
    tokenizer: Annotated[
        Path | None, typer.Option(help="The backbone's tokenizer.json; else that of our own base.", show_default=False)
    ] = None,
    encoder_layers: Annotated[int, typer.Option(help="Layers that read the source.", metavar="N")] = 12,
    decoder_layers: Annotated[int, typer.Option(help="Layers that write.", metavar="N")] = 2,
) -> None:
    """Build a backbone of layers that already know a language, for `teo pretrain start=OUT`. Prints the folder."""
    try:
        from tokenizers import Tokenizer

        from teo.models.from_decoder import build_from_decoder, load_gguf
        from teo.models.storage import find_base
        from teo.training.pretraining.pretrain import save_backbone
    except ModuleNotFoundError as error:
        if error.name not in {"torch", "transformers", "safetensors"}:
            raise
        raise MissingExtraError("building a backbone", str(error.name), "train") from error
    ours = Tokenizer.from_file(str(tokenizer or find_base() / "tokenizer.json"))
    state, config, theirs = load_gguf(gguf)
    model = build_from_decoder(state, config, ours, theirs, encoder_layers, decoder_layers)
    save_backbone(model, ours, out)
    typer.echo(str(out))
