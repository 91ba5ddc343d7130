"""Where each dataset is published, under which licence, and the checksums of the files that our numbers come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from teo.errors import InputError

_GITHUB = "https://raw.githubusercontent.com"
_SARG = f"{_GITHUB}/NetEase-GameAI/SARG/cba2e55544d14d2188980ef2296694673f7d3a07"


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A file of a dataset; without an address it must be requested."""

    name: str
    sha256: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is known of a dataset outside its files."""

    name: str
    title: str
    language: str
    licence: str
    page: str
    citation: str
    files: tuple[PublishedFile, ...]
    remark: str = ""
    """What a download lacks, and where to get it."""


REGISTRY: Mapping[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="rewrite",
            title="REWRITE",
            language="zh",
            licence="none stated",
            page="https://github.com/chin-gyou/dialogue-utterance-rewriter",
            citation="Su et al., Improving Multi-turn Dialogue Modelling with Utterance ReWriter, ACL 2019",
            files=(
                PublishedFile(
                    "corpus.txt",
                    "a670e8a4f3e03d4efba4e884aa7512850910f8216bb97cfe570b17ab08ecbc29",
                    f"{_GITHUB}/chin-gyou/dialogue-utterance-rewriter/da3f430d9ee4d1726217a7912891c376b155c3a6/corpus.txt",
                ),
            ),
        ),
        Dataset(
            name="res200k",
            title="RES200K (Restoration-200K)",
            language="zh",
            licence="none stated",
            page="https://ai.tencent.com/ailab/nlp/en/dialogue/",
            citation="Pan et al., Improving Open-Domain Dialogue Systems via Multi-Turn Incomplete Utterance "
            "Restoration, EMNLP 2019",
            files=(
                PublishedFile(
                    "valid.txt",
                    "190b1d0cc5a72fc2a6c1ce3237860909f10be635bd6193287cdbc99cf2e09922",
                    f"{_SARG}/Restoration_200k_data/valid.txt",
                ),
                PublishedFile(
                    "test.txt",
                    "9b9928623366accff01e034e4cb39dc1e8260409528be12ce1182d752eeb5c64",
                    f"{_SARG}/Restoration_200k_data/test.txt",
                ),
            ),
            remark="the 194K rows for training are in the original release (.sr and .tr files), "
            "https://ai.tencent.com/ailab/nlp/en/dialogue/datasets/Restoration-200K.zip: unpack it into the folder",
        ),
        Dataset(
            name="task",
            title="TASK (annotated CamRest676)",
            language="en",
            licence="MIT",
            page="https://github.com/terryqj0107/GECOR",
            citation="Quan et al., GECOR: An End-to-End Generative Ellipsis and Co-reference Resolution Model for "
            "Task-Oriented Dialogue, EMNLP 2019",
            files=(
                PublishedFile(
                    "CamRest676_annotated.json",
                    "0222d7e91fd67416935b67d58ec899898c020b73bdc262b0a7214f3b9f61e797",
                    f"{_GITHUB}/terryqj0107/GECOR/f20fe379028d76c40d43b5038aa78a311876fe28"
                    "/CamRest676_for_coreference_and_ellipsis_resolution/CamRest676_annotated.json",
                ),
            ),
        ),
        Dataset(
            name="canard",
            title="CANARD",
            language="en",
            licence="CC BY-SA 4.0",
            page="https://sites.google.com/view/qanta/projects/canard",
            citation="Elgohary et al., Can You Unpack That? Learning to Rewrite Questions-in-Context, EMNLP 2019",
            files=(
                PublishedFile(
                    "dev.json",
                    "fafd9f53be0684fd33f85f6bf12a63e61b835ecb9e987c9bd2186149366ce2e5",
                    f"{_SARG}/CANARD/dev.json",
                ),
                PublishedFile(
                    "dev.txt",
                    "9a00c0f1658e2960191de4f91b72b14f8cba303f20d34d37552abeb56a90a170",
                    f"{_SARG}/CANARD/dev.txt",
                ),
                PublishedFile(
                    "test.txt",
                    "2b53352972906e45a40dd13b419289bad7828a3139297e0f3528ae55658e44ed",
                    f"{_SARG}/CANARD/test.txt",
                ),
                PublishedFile(
                    "train_partial/train.question.tsv",
                    "1fe2e33914a87354fb661857647e7ba4a286f6b8ecb4e6a2407b4b04780bb43f",
                ),
                PublishedFile(
                    "train_partial/train.rewrite.tsv",
                    "2b6dc65f0944b534425007f381650c986b4d2e5c31e1bef799dcd5ff55c30b50",
                ),
                PublishedFile(
                    "train_partial/train.answer.tokens.tsv",
                    "eb8f96994f649e042ee8858844aa0e99e3292ac7ef282b56a67ac4cd71c3d2bc",
                ),
            ),
            remark="train.json is in the full release, https://obj.umiacs.umd.edu/elgohary/CANARD_Release.zip: "
            "unpack it into the same folder",
        ),
        Dataset(
            name="followup",
            title="FollowUp",
            language="en",
            licence="Apache-2.0",
            page="https://github.com/SivilTaram/FollowUp",
            citation="Liu et al., FANDA: A Novel Approach to Perform Follow-up Query Analysis, AAAI 2019",
            files=(
                PublishedFile(
                    "train.tsv",
                    "295636d52f12f83a5cdc92b6c3e4020b3d0d9422a68784aa205a46187827d2d6",
                    f"{_GITHUB}/SivilTaram/FollowUp/master/train.tsv",
                ),
                PublishedFile(
                    "test.tsv",
                    "372a7ead0595e278eab148e0980a955eb43cad87466cd200ab51ea232d2e4ce7",
                    f"{_GITHUB}/SivilTaram/FollowUp/master/test.tsv",
                ),
            ),
        ),
    )
}


def find_dataset(name: str) -> Dataset:
    """Return what is known of a dataset by its name."""
    if name not in REGISTRY:
        raise InputError(f"dataset: expected one of {', '.join(REGISTRY)}; found '{name}'")
    return REGISTRY[name]
