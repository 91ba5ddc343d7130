"""`teo-lab judge`: people compare two systems on a local page, and a report of their votes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from teo.cli.options import DATASET_HELP, PATH_HELP, SPLIT_HELP
from teo.cli.output import echo_json, write_line
from teo.errors import InputError

if TYPE_CHECKING:
    from teo.data.row import Row
    from teo_lab.judging.votes import VoteStore

DEFAULT_PORT = 8010
"""Beside that of `teo serve`, so that both may run."""


def judge(
    *,
    predictions: Annotated[
        list[Path] | None,
        typer.Argument(help="Two predictions.jsonl of teo evaluate; none to resume a study.", metavar="A B"),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the study: votes.sqlite and the report.")] = Path("judging"),
    report: Annotated[
        bool, typer.Option("--report", help="Report the votes: report.md, report.json and bars.png in the folder.")
    ] = False,
    sample: Annotated[int | None, typer.Option(help="Items to judge; 50 by default.", metavar="N", min=1)] = None,
    raters: Annotated[int | None, typer.Option(help="People who judge; 3 by default.", metavar="N", min=1)] = None,
    seed: Annotated[int | None, typer.Option(help="Decides items, order and sides; 0 by default.")] = None,
    data: Annotated[
        str | None, typer.Option(help=f"If the files lack the dialogues: {DATASET_HELP}", metavar="NAME")
    ] = None,
    path: Annotated[Path | None, typer.Option(help=f"With --data: {PATH_HELP}")] = None,
    split: Annotated[str, typer.Option(help=f"With --data: {SPLIT_HELP}")] = "test",
    host: Annotated[str, typer.Option(help="Address to bind to.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to bind to.", min=0, max=65535)] = DEFAULT_PORT,
    allow_anonymous: Annotated[
        bool, typer.Option("--allow-anonymous", help="Bind to other than loopback: whoever reaches it may vote.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --report: print the numbers as JSON.")] = False,
) -> None:
    """Let people judge two systems, blind and in random order: keys 1, 2, and 0 or 3 for a tie.

    Votes are stored one by one; run the same command again to resume. teo-lab judge --report says what they mean.

    Example: teo-lab judge runs/a/predictions.jsonl runs/b/predictions.jsonl --out judging --sample 50
    """
    from teo_lab.judging.report import report_study, summarise
    from teo_lab.judging.votes import VoteStore

    wanted = {"sample": sample, "raters": raters, "seed": seed}
    chosen = {name: value for name, value in wanted.items() if value is not None}
    if predictions:
        store = _create(predictions, out, _load_rows(data, path, split), chosen)
    else:
        store = VoteStore.open(out)
        store.require(chosen)
    if not report:
        _serve(store, host, port, allow_anonymous=allow_anonymous)
        return
    judgement = report_study(store, out)
    if as_json:
        echo_json(judgement.to_dict())
    else:
        typer.echo(summarise(judgement))
        typer.echo(f"The report is in {out / 'report.md'}.", err=True)


def _create(predictions: list[Path], out: Path, rows: tuple[Row, ...], chosen: dict[str, int]) -> VoteStore:
    from teo_lab.judging.items import draw_study
    from teo_lab.judging.votes import VoteStore

    if len(predictions) != 2:
        raise InputError(f"expected two files of predictions, A and B; found {len(predictions)}")
    study = draw_study(predictions[0], predictions[1], rows=rows, **chosen)
    if len(study.items) < study.plan.sample:
        write_line(f"teo-lab: only {len(study.items)} shared rows have different rewrites; all of them are judged")
    return VoteStore.create(out, study)


def _load_rows(data: str | None, path: Path | None, split: str) -> tuple[Row, ...]:
    if data is None and path is None:
        return ()
    if data is None or path is None:
        raise InputError("expected --data and --path together, found one of them")
    from teo.data import load_rows

    return load_rows(data, path, split).rows


def _serve(store: VoteStore, host: str, port: int, *, allow_anonymous: bool) -> None:
    from teo.server.run import address_of, require_free_port
    from teo.server.settings import is_loopback

    if not (allow_anonymous or is_loopback(host)):
        raise InputError(
            f"host: {host} can be reached from other machines, and the page asks for no password; "
            "bind to 127.0.0.1, or say --allow-anonymous"
        )
    import uvicorn

    from teo_lab.judging.app import create_app

    host = host.strip("[]")
    port = require_free_port(host, port)
    plan = store.study.plan
    write_line(
        f"{len(store.study.items)} items for {plan.raters} raters: each opens {address_of(host, port)} "
        "(Ctrl+C stops; the same command resumes)"
    )
    settings = uvicorn.Config(
        create_app(store), host=host, port=port, log_level="warning", access_log=False, server_header=False
    )
    uvicorn.Server(settings).run()  # uvicorn.run would hide that Ctrl+C ended it
