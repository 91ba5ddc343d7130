"""Retrievers: BM25 over documents, any other by its import path, and rankings fused by reciprocal rank."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from teo.errors import InputError
from teo.units import CJK

FUSION_CONSTANT = 60
"""The k of reciprocal rank fusion (Cormack et al., 2009): how little the first ranks stand out."""
_TOKEN = rf"[{CJK}]|(?:(?![{CJK}])\w){{2,}}"
"""Words of two letters or more, and single characters of Chinese, Japanese and Korean."""

Ranking = list[int]
"""Documents by their index in the collection, best first."""


class Retriever(Protocol):
    """What finds documents for queries: BM25, or a dense retriever of the user's own."""

    @property
    def name(self) -> str:
        """What results are stored under, with the settings that decide a ranking."""

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return at most `depth` documents for each query, in order."""


class Bm25:
    """BM25 (Lucene's form) by the library `bm25s`: English stop words left out, no stemming."""

    def __init__(self, documents: Sequence[str], k1: float = 1.5, b: float = 0.75) -> None:
        """Index the documents."""
        import bm25s

        self._library: Any = bm25s
        self._size = len(documents)
        self._index: Any = bm25s.BM25(k1=k1, b=b, method="lucene")
        self.name = f"bm25|k1:{k1}|b:{b}|method:lucene|stopwords:en|stemming:none|bm25s:{bm25s.__version__}"
        tokens = self._tokenize(documents)
        self._known = {token for text in tokens for token in text}
        if self._known:
            self._index.index(tokens, show_progress=False)

    def search(self, queries: Sequence[str], depth: int) -> list[Ranking]:
        """Return the documents that share a word with each query, best first."""
        rankings: list[Ranking] = []
        for tokens in self._tokenize(queries):
            known = [token for token in tokens if token in self._known]
            if not known:  # the library would score the empty query
                rankings.append([])
                continue
            found, scores = self._index.retrieve([known], k=min(depth, self._size), show_progress=False)
            pairs = zip(found[0].tolist(), scores[0].tolist(), strict=True)
            # equal scores stand in the order of the collection, whatever the library's selection did with them
            ranked = sorted((-score, index) for index, score in pairs if score > 0)
            rankings.append([index for _, index in ranked])
        return rankings

    def _tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        options = {"stopwords": "en", "token_pattern": _TOKEN, "return_ids": False, "show_progress": False}
        return cast("list[list[str]]", self._library.tokenize(list(texts), **options)) if texts else []


def make_retriever(name: str, documents: Sequence[str]) -> Retriever:
    """Return a retriever over documents: `bm25`, or MODULE:FUNCTION that takes the documents and gives a retriever."""
    if name == "bm25":
        return Bm25(documents)
    module_name, colon, function_name = name.partition(":")
    if not colon or not module_name or not function_name:
        raise InputError(f"retriever: expected bm25 or MODULE:FUNCTION, found '{name}'")
    try:
        make: Callable[[Sequence[str]], Retriever] = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"retriever: expected an importable MODULE:FUNCTION, found '{name}' ({error})") from error
    return make(documents)


def fuse(rankings: Sequence[Ranking], depth: int, constant: int = FUSION_CONSTANT) -> Ranking:
    """Return one ranking of several: each document has the sum of 1 / (constant + rank)."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, index in enumerate(ranking, start=1):
            scores[index] = scores.get(index, 0.0) + 1 / (constant + rank)
    return sorted(scores, key=lambda index: (-scores[index], index))[:depth]
