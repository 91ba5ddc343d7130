"""The cache of texts: what is kept does not grow with what users send."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from teo.loading import has_default
from teo.runtime.text_cache import TextCache


def encode(text: str) -> tuple[int, ...]:
    return tuple(map(ord, text))


def test_a_text_is_encoded_once_while_it_is_kept() -> None:
    asked: list[str] = []
    cache = TextCache(lambda text: asked.append(text) or encode(text), 640)
    assert [cache("ab"), cache("ab"), cache("long text that is not kept"), cache("long text that is not kept")] == [
        encode("ab"), encode("ab"), *[encode("long text that is not kept")] * 2
    ]  # fmt: skip
    assert asked == ["ab", "long text that is not kept", "long text that is not kept"]


def test_the_longest_unused_goes_first() -> None:
    asked: list[str] = []
    cache = TextCache(lambda text: asked.append(text) or encode(text), 64)
    for number in range(64):
        cache(chr(number))
    cache(chr(0))
    cache("new"[:1])
    cache(chr(0))
    assert asked.count(chr(0)) == 1
    cache(chr(1))
    assert asked.count(chr(1)) == 2


def test_distinct_texts_take_no_more_than_the_limit() -> None:
    cache = TextCache(encode, 6400)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(cache, [f"{number:09d}" for number in range(20_000)]))
    assert found == [encode(f"{number:09d}") for number in range(20_000)]
    assert 6000 < cache.characters <= 6400


@pytest.mark.skipif(not has_default(), reason="this checkout has no embedded model")
def test_the_embedded_model_keeps_a_bounded_number_of_characters() -> None:
    from teo import Rewriter

    codec = Rewriter.from_pretrained()._generator.codec
    for number in range(3000):
        codec.encode_text(f"{number:06d}" + "字" * 500)
    assert codec._encode_cached.characters <= 500_000
