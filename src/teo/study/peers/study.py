"""reproduce_peers(study): every peer on every dataset, trained, evaluated, stored and printed beside published figures.

RUNS/DATASET-PEER/              the peer, and in evaluation/SPLIT its predictions
OUT/DATASET-SPLIT-PEER.*        metrics and rows of an evaluation, without text; where they are, it is not made again
OUT/peers.json, OUT/peers.md    how many rows each peer can express, and the table
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from teo.data import load_rows
from teo.data.row import Row
from teo.errors import ConfigError, InputError
from teo.evaluation.evaluate import Request
from teo.evaluation.markdown import percent, table
from teo.evaluation.storing import store
from teo.files import write_json, write_text
from teo.study.experiments import DATASETS
from teo.study.peers.evaluate import evaluate_peer
from teo.study.peers.folder import is_peer
from teo.study.peers.labels import gold_spans, make_matrix
from teo.study.peers.matrix import MatrixPeer
from teo.study.peers.storing import PEERS, read_peer
from teo.study.peers.training import PeerTraining, train_peer
from teo.study.published import read_paper
from teo.training.settings import build, lay_over

SETTINGS: Mapping[str, PeerTraining] = {
    "rewrite": PeerTraining(),
    "task": PeerTraining(epochs=40, batch_size=64),
}
"""The datasets of the study, and how a peer is trained on each."""
SPLITS = ("dev", "test")
_METRICS = {"EM": "em", "BLEU-2": "bleu2", "BLEU-4": "bleu4", "ROUGE-2": "rouge2", "F1": "run_f1", "F2": "run_f2"}
_PUBLISHED = {"EM": "em", "BLEU-2": "bleu2", "BLEU-4": "bleu4", "ROUGE-2": "rouge2", "F1": "f1", "F2": "f2"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PeerStudy:
    """Where the peers start from, and where what they make is left."""

    base: str
    data: Path
    """The folder that holds rewrite and task."""
    runs: Path
    out: Path
    published: Path
    overrides: tuple[str, ...] = ()
    """`key=value` laid over the settings of training."""
    limit: int | None = None
    """Only so many rows of each split, for a rehearsal."""

    def settings(self, dataset: str) -> PeerTraining:
        """Return how peers are trained on a dataset."""
        tree: dict[str, Any] = asdict(SETTINGS[dataset])
        for override in self.overrides:
            lay_over(tree, override)
        return build(PeerTraining, tree, "peers")

    def datasets(self) -> list[str]:
        """Return the datasets that are there; it is an error when none is."""
        found = [name for name in SETTINGS if (self.data / name).exists()]
        if not found:
            wanted = " or ".join(str(self.data / name) for name in SETTINGS)
            raise InputError(f"data: expected {wanted}, found no such folder; see teo data download")
        return found

    def rows(self, dataset: str, split: str) -> tuple[Row, ...]:
        """Return the rows of a split."""
        return load_rows(dataset, self.data / dataset, split).rows[: self.limit]

    def folder(self, dataset: str, peer: str) -> Path:
        """Return where a peer is written."""
        return self.runs / f"{dataset}-{peer}"

    def metrics(self, dataset: str, split: str, peer: str) -> Path:
        """Return the file of a stored evaluation, which need not be there yet."""
        return self.out / f"{dataset}-{split}-{peer}.json"


def reproduce_peers(study: PeerStudy) -> str:
    """Return the table of all peers as Markdown, also written to the study's folder; what is finished stays."""
    datasets = study.datasets()
    published = read_paper(study.published)  # before any training
    for dataset in datasets:
        for peer in PEERS:
            for split in SPLITS:
                if not _is_finished(study, dataset, split, peer):
                    _ensure_peer(study, dataset, peer)
                    _evaluate(study, dataset, split, peer)
    bounds = {
        dataset: {split: count_expressible(study.rows(dataset, split)) for split in ("train", *SPLITS)}
        for dataset in datasets
    }
    write_json(study.out / "peers.json", {"expressible": bounds})
    pages = []
    for dataset in datasets:
        rows = [
            [row.system, *(_printed(row.metrics.get(name)) for name in _PUBLISHED.values()), *["-"] * 4]
            for row in published
            if row.dataset == dataset and row.system in ("RUN", "RAU", "MIUR", "Locate-Fill")
        ]
        rows += [_row(study, dataset, peer, bounds[dataset]["test"][peer]) for peer in PEERS]
        head = ("system", *_METRICS, "can express", "dev EM", "ms a dialogue", "training, s")
        pages.append(f"## {DATASETS[dataset]}\n\n{table(head, rows, 'l' + 'r' * (len(head) - 1))}\n")
    page = "\n".join(pages)
    write_text(study.out / "peers.md", page)
    return page


def describe_peers(study: PeerStudy) -> str:
    """Return what `reproduce_peers` would train and evaluate."""
    lines = []
    for dataset in study.datasets():
        for peer in PEERS:
            left = [split for split in SPLITS if not _is_finished(study, dataset, split, peer)]
            trained = is_peer(study.folder(dataset, peer))
            state = "trained" if trained or not left else "to train"
            lines.append(f"{dataset}-{peer}: {state}; to evaluate: {', '.join(left) or 'nothing'}")
    return "\n".join(lines) + "\n"


def count_expressible(rows: Sequence[Row]) -> dict[str, float]:
    """Return the share of rows whose rewrite each peer can express: the highest EM that it could reach."""
    matrices = [make_matrix(row.dialogue, gold_spans(row.dialogue, row.rewrite)) for row in rows]
    told = sum(matrix is not None for matrix in matrices) / len(rows)
    return {name: told if kind is MatrixPeer else 1.0 for name, kind in PEERS.items()}


def _is_finished(study: PeerStudy, dataset: str, split: str, peer: str) -> bool:
    """Tell whether an evaluation is stored; one of other settings is refused."""
    file = study.metrics(dataset, split, peer)
    if not file.is_file():
        return False
    trained = json.loads(file.read_text(encoding="utf-8"))["run"]["training"]
    _require_same(study, dataset, trained, file)
    return True


def _require_same(study: PeerStudy, dataset: str, trained: Mapping[str, Any], place: Path) -> None:
    wanted = {"base": Path(study.base).name, **asdict(study.settings(dataset))}
    found = {"base": trained["base"], **trained["settings"]}
    for key, value in wanted.items():
        if key != "device" and value != found.get(key):
            raise ConfigError(
                f"{key}: {place} was made with {json.dumps(found.get(key))}, found {json.dumps(value)}; "
                "give the same settings or another --out and --runs"
            )


def _ensure_peer(study: PeerStudy, dataset: str, peer: str) -> None:
    folder = study.folder(dataset, peer)
    if is_peer(folder):
        _require_same(study, dataset, read_peer(folder)["training"], folder)
        return
    logger.info("%s on %s: training", peer, dataset)
    train, dev = study.rows(dataset, "train"), study.rows(dataset, "dev")
    train_peer(peer, study.base, train, dev, folder, study.settings(dataset))


def _evaluate(study: PeerStudy, dataset: str, split: str, peer: str) -> None:
    logger.info("%s on %s: evaluating %s", peer, dataset, split)
    folder = study.folder(dataset, peer)
    request = Request(
        data=dataset,
        path=study.data / dataset,
        out=folder / "evaluation" / split,
        split=split,
        model=folder,
        limit=study.limit,
        batch_size=256,
        device=study.settings(dataset).device,
    )
    evaluate_peer(request)
    store(study.out, request.out)


def _row(study: PeerStudy, dataset: str, peer: str, bound: float) -> list[str]:
    dev, test = (json.loads(study.metrics(dataset, split, peer).read_text(encoding="utf-8")) for split in SPLITS)
    return [
        f"**{peer}, after {PEERS[peer].after}**",
        *(percent(test[name]) for name in _METRICS.values()),
        percent(bound),
        percent(dev["em"]),
        f"{test['run']['latency']['median_ms']:.1f}",
        f"{test['run']['training']['seconds']:.0f}",
    ]


def _printed(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
