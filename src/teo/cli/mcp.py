"""`teo mcp`: the rewriter as a tool of the Model Context Protocol, over stdin and stdout."""

from __future__ import annotations

from typing import Annotated

import typer

from teo.cli.options import ModelOption, VariantOption
from teo.errors import InputError


def mcp(
    *,
    model: ModelOption = None,
    variant: VariantOption = None,
    threads: Annotated[int | None, typer.Option(help="Number of threads.", metavar="N", min=1)] = None,
    url: Annotated[
        str | None, typer.Option(help="Call a running teo serve instead of loading a model.", metavar="URL")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(envvar="TEO_TOKEN", help="That server's token; better in the environment.", metavar="TOKEN"),
    ] = None,
) -> None:
    """Offer the rewriter to assistants and agents as an MCP tool."""
    if url is not None and (model is not None or variant is not None or threads is not None):
        raise InputError("url: the server chooses model, variant and threads; give either --url or these")
    from teo.integrations.mcp import run_stdio
    from teo.integrations.remote import RemoteRewriter
    from teo.rewriter import Rewriter

    if url is not None:
        run_stdio(RemoteRewriter(url, token=token))
    else:
        run_stdio(Rewriter.from_pretrained(model, threads=threads, variant=variant))
