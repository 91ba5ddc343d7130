"""`teo serve`: the rewriter over HTTP, with a page to try it."""

from __future__ import annotations

from typing import Annotated

import typer

from teo.cli.options import DeviceOption, DtypeOption
from teo.server.settings import DEFAULT_HOST, DEFAULT_PORT, ServerSettings

_DEFAULTS = ServerSettings()


def serve(
    *,
    host: Annotated[str, typer.Option(help="Address to bind to.")] = DEFAULT_HOST,
    port: Annotated[int, typer.Option(help="Port to bind to.", min=0, max=65535)] = DEFAULT_PORT,
    workers: Annotated[int, typer.Option(help="Worker processes; each loads the model.", metavar="N", min=1)] = 1,
    model: Annotated[
        str | None,
        typer.Option(help="A model folder, or hub:owner/name; by default the embedded model.", metavar="MODEL"),
    ] = None,
    variant: Annotated[
        str | None, typer.Option(help="The pipeline; by default the model's own.", metavar="NAME")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads per worker.", metavar="N", min=1)] = None,
    runtime: Annotated[str, typer.Option(help="onnx, or torch for a folder that was not exported.")] = "onnx",
    device: DeviceOption = "auto",
    dtype: DtypeOption = "float32",
    token: Annotated[
        str | None,
        typer.Option(
            envvar="TEO_TOKEN",
            help="Bearer token that callers must send; better set in the environment.",
            metavar="TOKEN",
        ),
    ] = None,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Bind to other addresses than loopback without a token.")
    ] = False,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(help="Allow browser pages of this origin; may be repeated.", metavar="URL"),
    ] = None,
    max_body: Annotated[
        int, typer.Option(help="Bytes per request; beyond: 413.", metavar="N", min=1)
    ] = _DEFAULTS.max_body,
    max_items: Annotated[
        int, typer.Option(help="Dialogues per request; beyond: 413.", metavar="N", min=1)
    ] = _DEFAULTS.max_items,
    max_turns: Annotated[
        int, typer.Option(help="Turns per dialogue; beyond: 413.", metavar="N", min=1)
    ] = _DEFAULTS.max_turns,
    max_characters: Annotated[
        int, typer.Option(help="Characters per dialogue; beyond: 413.", metavar="N", min=1)
    ] = _DEFAULTS.max_characters,
    max_queue: Annotated[
        int, typer.Option(help="Dialogues in the queue; beyond: 429.", metavar="N", min=1)
    ] = _DEFAULTS.max_queue,
    max_batch: Annotated[int, typer.Option(help="Dialogues per batch.", metavar="N", min=1)] = _DEFAULTS.max_batch,
    window_ms: Annotated[
        float, typer.Option(help="How long an idle model waits to fill a batch, in ms.", metavar="MS", min=0)
    ] = _DEFAULTS.window_ms,
    request_timeout: Annotated[
        float, typer.Option(help="Seconds until a request times out: 503.", metavar="S", min=0.001)
    ] = _DEFAULTS.request_timeout,
    log_text: Annotated[bool, typer.Option("--log-text", help="Write users' text into the logs.")] = False,
) -> None:
    """Serve the rewriter over HTTP, with a page to try it.

    Main addresses: POST /v1/rewrite, POST /v1/chat/completions, GET /docs, and the page at GET /. Without a token the
    server binds to loopback only. Logs are JSON lines on stderr, without users' text.
    """
    from teo.loading import require_dtype, require_runtime
    from teo.server.run import ServerModelChoice, require_server_libraries
    from teo.server.run import serve as run_server

    require_server_libraries()
    settings = ServerSettings(
        token=token or None,
        cors_origins=tuple(cors_origin or ()),
        max_body=max_body,
        max_items=max_items,
        max_turns=max_turns,
        max_characters=max_characters,
        max_queue=max_queue,
        max_batch=max_batch,
        window_ms=window_ms,
        request_timeout=request_timeout,
        log_text=log_text,
    )
    choice = ServerModelChoice(model, variant, threads, require_runtime(runtime), device, require_dtype(dtype))
    run_server(choice, settings, host=host, port=port, workers=workers, allow_anonymous=allow_anonymous)
