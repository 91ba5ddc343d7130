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
    workers: Annotated[int, typer.Option(help="Processes, each with the model loaded.", metavar="N", min=1)] = 1,
    model: Annotated[
        str | None, typer.Option(help="A model folder or a hub id; the embedded model without it.", metavar="MODEL")
    ] = None,
    variant: Annotated[
        str | None, typer.Option(help="The pipeline; the model's own by default.", metavar="NAME")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Processor threads of a worker.", metavar="N", min=1)] = None,
    runtime: Annotated[str, typer.Option(help="onnx, or torch for a folder that was not exported.")] = "onnx",
    device: DeviceOption = "auto",
    dtype: DtypeOption = "float32",
    token: Annotated[
        str | None,
        typer.Option(
            envvar="TEO_TOKEN", help="Bearer token that callers must send; better in the environment.", metavar="TOKEN"
        ),
    ] = None,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Bind to other than loopback without a token.")
    ] = False,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(help="Let pages of this origin call the server from a browser; may be repeated.", metavar="URL"),
    ] = None,
    max_body: Annotated[
        int, typer.Option(help="Bytes of a request; more: 413.", metavar="N", min=1)
    ] = _DEFAULTS.max_body,
    max_items: Annotated[
        int, typer.Option(help="Dialogues of a request; more: 413.", metavar="N", min=1)
    ] = _DEFAULTS.max_items,
    max_turns: Annotated[
        int, typer.Option(help="Turns of a dialogue; more: 413.", metavar="N", min=1)
    ] = _DEFAULTS.max_turns,
    max_characters: Annotated[
        int, typer.Option(help="Characters of a dialogue; more: 413.", metavar="N", min=1)
    ] = _DEFAULTS.max_characters,
    max_queue: Annotated[
        int, typer.Option(help="Dialogues that may wait; more: 429.", metavar="N", min=1)
    ] = _DEFAULTS.max_queue,
    max_batch: Annotated[int, typer.Option(help="Dialogues read at once.", metavar="N", min=1)] = _DEFAULTS.max_batch,
    window_ms: Annotated[
        float, typer.Option(help="How long an idle model waits for company, in ms.", metavar="MS", min=0)
    ] = _DEFAULTS.window_ms,
    request_timeout: Annotated[
        float, typer.Option(help="Seconds before a request is given up: 503.", metavar="S", min=0.001)
    ] = _DEFAULTS.request_timeout,
    log_text: Annotated[bool, typer.Option("--log-text", help="Write users' text into the logs.")] = False,
) -> None:
    """Serve the rewriter over HTTP: POST /v1/rewrite, POST /v1/chat/completions, /docs, and a page at GET /.

    Without a token it binds to loopback only. Logs are JSON lines on stderr, without users' text.
    """
    from teo.loading import require_dtype, require_runtime
    from teo.server.run import ModelChoice, require_server_libraries
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
    choice = ModelChoice(model, variant, threads, require_runtime(runtime), device, require_dtype(dtype))
    run_server(choice, settings, host=host, port=port, workers=workers, allow_anonymous=allow_anonymous)
