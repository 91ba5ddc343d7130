import re

import pytest

from teo.data import READERS
from teo.data.registry import REGISTRY, find_dataset
from teo.errors import InputError


def test_every_published_dataset_is_registered():
    assert set(REGISTRY) == set(READERS) - {"jsonl"}, "jsonl is the user's own"


@pytest.mark.parametrize("dataset", REGISTRY.values(), ids=lambda dataset: dataset.name)
def test_entry_is_complete(dataset):
    assert dataset.language in ("zh", "en")
    assert dataset.licence and dataset.citation and dataset.page.startswith("https://")
    for file in dataset.files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256), file.name
        assert file.url is None or (file.url.startswith("https://") and file.url.endswith(file.name.split("/")[-1]))


def test_unknown_dataset_is_named():
    with pytest.raises(InputError, match="expected one of rewrite, res200k, task, canard, followup; found 'jsonl'"):
        find_dataset("jsonl")
