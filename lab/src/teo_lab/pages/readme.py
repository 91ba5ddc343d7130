"""The figures of both READMEs: what `teo rewrite` gets right on the test sets, and what it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from teo.evaluation.markdown import percent, table
from teo_lab.pages.everyday import meaning_shares
from teo_lab.reproduce.stored import read_json

_EVERYDAY = "benchmarks/everyday/README.md"
_STORED = "default/{data}-test-fused+threshold.json"
"""`teo rewrite` applies the threshold."""
_DATASETS = ("rewrite", "task", "res200k", "canard")
_RACES = ("rewrite", "task")
_BY_LENGTH = "fused, drafts"
_OURS, _BART = "teo fused, int8, 1 thread", "two-pass BART-base, transformers fp32, 1 thread"


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts of the tables in one language; the figures are the same in all."""

    everyday: Sequence[str]
    languages: Sequence[str]
    quality: Sequence[str]
    datasets: Sequence[str]
    speed: Sequence[str]
    systems: Sequence[str]
    lengths: tuple[str, str]


ENGLISH = Wording(
    everyday=(
        f"[everyday]({_EVERYDAY}) dialogues, by meaning",
        "`prefer`",
        "right",
        "in part",
        "wrong",
        "unchanged",
        "complete: unchanged",
        "right by exact match",
    ),
    languages=("English", "Chinese"),
    quality=(
        "exact match",
        "right, of all",
        "right, of incomplete",
        "unchanged, of incomplete",
        "unchanged, of complete",
        "paper's TEO, of all",
    ),
    datasets=(
        "REWRITE, Chinese chat",
        "TASK, English restaurant search",
        "RES200K, Chinese chat",
        "CANARD, English encyclopedia questions",
    ),
    speed=(
        "on one CPU core",
        "REWRITE, ms per rewrite",
        "TASK, ms per rewrite",
        "start to first rewrite, s",
        "memory, MB",
        "model, MB",
    ),
    systems=("teo, 8 bits", "BART-base in two passes, float32"),
    lengths=("tokens of the dialogue", "ms per rewrite"),
)
CHINESE = Wording(
    everyday=(
        f"[日常对话]({_EVERYDAY})，按意思",
        "`prefer`",
        "正确",
        "部分正确",
        "错误",
        "保持原样",
        "完整的：保持原样",
        "逐字相同",
    ),
    languages=("英文", "中文"),
    quality=(
        "逐字相同",
        "全部：正确",
        "不完整的：正确",
        "不完整的：保持原样",
        "完整的：保持原样",
        "论文的 TEO，全部",
    ),
    datasets=(
        "REWRITE，中文闲聊",
        "TASK，英文餐厅查询",
        "RES200K，中文闲聊",
        "CANARD，英文百科问答",
    ),
    speed=(
        "单个 CPU 核",
        "REWRITE，每句毫秒",
        "TASK，每句毫秒",
        "启动到第一句，秒",
        "内存，MB",
        "模型，MB",
    ),
    systems=("teo，8 位", "BART-base 两遍，float32"),
    lengths=("对话的词元数", "每句毫秒"),
)


def make_figures(results: Path, wording: Wording) -> str:
    """Return the tables of a README."""
    stored = read_json(results / "default" / "everyday.json")["languages"]
    everyday = [
        [name, f"`{prefer}`", *meaning_shares(counts)]
        for language, name in zip(("en", "zh"), wording.languages, strict=True)
        for prefer, counts in stored[language].items()
    ]
    quality = [_published(results, data) for data in _DATASETS]
    rows = [[name, *figures] for name, figures in zip(wording.datasets, quality, strict=True)]
    speeds = [[name, *figures] for name, figures in zip(wording.systems, _speeds(results), strict=True)]
    drafts = read_json(results / "performance" / "drafts.json")["lengths"]
    head, title = wording.lengths
    lengths = (head, *(str(row["tokens"]) for row in drafts)), [[title, *(f"{row[_BY_LENGTH]:.0f}" for row in drafts)]]
    tables = ((wording.everyday, everyday), (wording.quality, rows), (wording.speed, speeds), lengths)
    return "\n\n".join(table(head, body) for head, body in tables)


def _published(results: Path, data: str) -> list[str]:
    """Return the figures of a published test set: ours, in all and by kind, then the paper's."""
    metrics = read_json(results / _STORED.format(data=data))
    low, high = metrics["intervals"]["em"]
    kinds = metrics["breakdown"]
    shares = (kinds["incomplete"]["em"], kinds["under_rewrite_rate"], kinds["complete"]["em"])
    rows = read_json(results / "published.json")["rows"]
    paper = [f"{row['metrics']['em']}" for row in rows if (row["system"], row["dataset"]) == ("TEO", data)]
    interval = f"{percent(metrics['em'])} [{percent(low)}, {percent(high)}]"
    return [interval, *map(percent, shares), *(paper or ["-"])]


def _speeds(results: Path) -> list[list[str]]:
    """Return the figures of our model and of the paper's shape: milliseconds, start, memory, size."""
    races = [read_json(results / "performance" / name / "bench.json") for name in _RACES]
    times = [{speed["name"]: speed["latency_ms"] for speed in race["speeds"]} for race in races]
    starts = races[0]["processes"]
    sizes = [f"{races[0]['facts']['model_mb']:.0f}", "-"]
    return [
        [*(f"{time[name]:.0f}" for time in times), f"{start['seconds']:.1f}", f"{start['peak_mb']:.0f}", size]
        for name, start, size in zip((_OURS, _BART), starts, sizes, strict=True)
    ]
