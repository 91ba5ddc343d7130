"""The batcher alone: who shares a batch, who goes first, and what happens to those who leave."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from fake_rewriter import FakeRewriter

from teo.dialogue import Dialogue
from teo.errors import InputError
from teo.server.batching import Batcher, ClosedError, ModelFailedError, QueueFullError, RewriteOptions
from teo.server.settings import ServerSettings

PLAIN = RewriteOptions()


def said(utterance: str, *history: str) -> Dialogue:
    return Dialogue(history or ("I met Ada Lovelace.",), utterance)


def run(main: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(main, 60))


async def started(rewriter: FakeRewriter, **settings: Any) -> Batcher:
    batcher = Batcher(rewriter, ServerSettings(**settings))
    batcher.start()
    return batcher


async def held(rewriter: FakeRewriter, batcher: Batcher) -> asyncio.Task[Any]:
    """Keep the model busy with one dialogue until `rewriter.hold` is set; it stands in the first batch."""
    rewriter.hold.clear()
    first = asyncio.create_task(batcher.rewrite([said("is he first?")], PLAIN))
    while not rewriter.batches:
        await asyncio.sleep(0.001)
    return first


def asked(rewriter: FakeRewriter) -> list[list[str]]:
    return [[dialogue.utterance for dialogue in batch] for batch in rewriter.batches]


def test_requests_that_wait_together_are_rewritten_together_in_a_thread_of_the_model() -> None:
    async def main() -> None:
        rewriter = FakeRewriter()
        batcher = await started(rewriter, window_ms=30)
        answers = await asyncio.gather(*(batcher.rewrite([said(f"is he {k}?")], PLAIN) for k in range(5)))
        await batcher.close()
        assert [one[0].result.rewrite for one in answers] == [f"is Ada Lovelace {k}?" for k in range(5)]
        assert len(rewriter.batches) == 1
        assert {answer[0].batch_size for answer in answers} == {5}
        assert rewriter.threads == {"teo-model_0"}

    run(main())


def test_a_full_batch_does_not_wait_for_the_window() -> None:
    async def main() -> None:
        rewriter = FakeRewriter()
        batcher = await started(rewriter, window_ms=60_000, max_batch=3)
        await asyncio.wait_for(asyncio.gather(*(batcher.rewrite([said(f"is he {k}?")], PLAIN) for k in range(3))), 30)
        await batcher.close()
        assert list(map(len, rewriter.batches)) == [3]

    run(main())


def test_a_batch_holds_dialogues_of_like_length_and_no_more_than_fit() -> None:
    async def main() -> None:
        rewriter = FakeRewriter()
        batcher = await started(rewriter, max_batch=3, max_batch_characters=10_000)
        first = await held(rewriter, batcher)
        others = [said("short he?"), said("x" * 4000), said("short she?"), said("y" * 4100), said("short him?")]
        answers = asyncio.gather(*(batcher.rewrite([one], PLAIN) for one in others))
        await asyncio.sleep(0)
        rewriter.hold.set()
        await asyncio.gather(first, answers)
        await batcher.close()
        sizes = [[len(text) for text in batch] for batch in asked(rewriter)]
        assert sizes == [[12], [9, 10, 10], [4000, 4100]], "like lengths together"

        wide = FakeRewriter()
        batcher = await started(wide, window_ms=30, max_batch_characters=10_000)
        await asyncio.gather(*(batcher.rewrite([said("z" * 4000)], PLAIN) for _ in range(5)))
        await batcher.close()
        assert list(map(len, wide.batches)) == [2, 2, 1], "padding counts"

    run(main())


def test_a_request_with_many_dialogues_does_not_hold_up_a_request_with_one() -> None:
    async def main() -> None:
        rewriter = FakeRewriter()
        batcher = await started(rewriter, max_batch=4)
        first = await held(rewriter, batcher)
        many = asyncio.create_task(batcher.rewrite([said(f"is he in {k:02}?") for k in range(20)], PLAIN))
        await asyncio.sleep(0)
        one = asyncio.create_task(batcher.rewrite([said("is he alone?")], PLAIN))
        await asyncio.sleep(0)
        rewriter.hold.set()
        await asyncio.gather(first, many, one)
        await batcher.close()
        place = next(number for number, batch in enumerate(asked(rewriter)) if "is he alone?" in batch)
        assert place <= 2, "it came last, behind five batches' worth"
        assert [answer.result.rewrite for answer in many.result()] == [f"is Ada Lovelace in {k:02}?" for k in range(20)]

    run(main())


def test_an_odd_length_goes_out_in_time_though_others_keep_coming() -> None:
    async def main() -> None:
        rewriter = FakeRewriter()
        batcher = await started(rewriter, max_batch=2, window_ms=0)
        first = await held(rewriter, batcher)
        waiting = [asyncio.create_task(batcher.rewrite([said("is he a?")], PLAIN))]
        odd = asyncio.create_task(batcher.rewrite([said("o" * 900)], PLAIN))
        for k in range(30):
            waiting.append(asyncio.create_task(batcher.rewrite([said(f"is he {k}?")], PLAIN)))
        await asyncio.sleep(0)
        rewriter.hold.set()
        await asyncio.gather(first, odd, *waiting)
        await batcher.close()
        place = next(number for number, batch in enumerate(asked(rewriter)) if "o" * 900 in batch)
        assert place == 2, "second in the queue: the second batch after the one that ran"

    run(main())


def test_options_that_differ_do_not_share_a_batch() -> None:
    async def main() -> None:
        rewriter = FakeRewriter()
        batcher = await started(rewriter, window_ms=20)
        sure, unsure = await asyncio.gather(
            batcher.rewrite([said("maybe he?")], RewriteOptions(min_confidence=0.0)),
            batcher.rewrite([said("maybe he?")], RewriteOptions(min_confidence=0.9)),
        )
        await batcher.close()
        assert (sure[0].result.changed, unsure[0].result.changed) == (True, False)
        assert list(map(len, rewriter.batches)) == [1, 1]

    run(main())


def test_who_leaves_is_taken_out_of_the_queue() -> None:
    async def main() -> None:
        rewriter = FakeRewriter()
        batcher = await started(rewriter)
        first = await held(rewriter, batcher)
        leaving = asyncio.create_task(batcher.rewrite([said("he leaves"), said("he too")], PLAIN))
        staying = asyncio.create_task(batcher.rewrite([said("he stays")], PLAIN))
        await asyncio.sleep(0.01)
        assert batcher.waiting == 3
        leaving.cancel()
        await asyncio.sleep(0.01)
        assert batcher.waiting == 1
        rewriter.hold.set()
        await asyncio.gather(first, staying)
        await batcher.close()
        assert asked(rewriter) == [["is he first?"], ["he stays"]]
        assert leaving.cancelled()

    run(main())


def test_a_full_queue_refuses_and_goes_on_when_it_has_room() -> None:
    async def main() -> None:
        rewriter = FakeRewriter()
        batcher = await started(rewriter, max_queue=2, max_items=2)
        first = await held(rewriter, batcher)
        second = asyncio.create_task(batcher.rewrite([said("he 1"), said("he 2")], PLAIN))
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await batcher.rewrite([said("he 3")], PLAIN)
        rewriter.hold.set()
        await asyncio.gather(first, second)
        assert (await batcher.rewrite([said("he 3")], PLAIN))[0].result.changed
        await batcher.close()

    run(main())


def test_one_dialogue_that_breaks_the_model_does_not_fail_its_company() -> None:
    async def main() -> None:
        rewriter = FakeRewriter()
        batcher = await started(rewriter, window_ms=30)
        good, bad = await asyncio.gather(
            batcher.rewrite([said("is he good?")], PLAIN),
            batcher.rewrite([said("explode")], PLAIN),
            return_exceptions=True,
        )
        await batcher.close()
        assert good[0].result.rewrite == "is Ada Lovelace good?"
        assert isinstance(bad, ModelFailedError)
        assert isinstance(bad.__cause__, RuntimeError)

    run(main())


def test_a_dialogue_of_its_own_error_gets_it_as_its_answer() -> None:
    async def main() -> None:
        batcher = await started(FakeRewriter())
        answers = await batcher.rewrite([said("he", *["Ada Lovelace"] * 60)], RewriteOptions(truncation="error"))
        await batcher.close()
        assert isinstance(answers[0].result, InputError)

    run(main())


def test_closing_finishes_what_waits_and_takes_nothing_new() -> None:
    async def main() -> None:
        rewriter = FakeRewriter()
        batcher = await started(rewriter)
        first = await held(rewriter, batcher)
        waiting = asyncio.create_task(batcher.rewrite([said("is he last?")], PLAIN))
        await asyncio.sleep(0)
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0)
        with pytest.raises(ClosedError):
            await batcher.rewrite([said("too late")], PLAIN)
        rewriter.hold.set()
        await closing
        assert (await first)[0].result.changed
        assert (await waiting)[0].result.rewrite == "is Ada Lovelace last?"

    run(main())


def test_closing_does_not_wait_for_ever() -> None:
    async def main() -> None:
        rewriter = FakeRewriter()
        batcher = await started(rewriter, shutdown_timeout=0.05)
        first = await held(rewriter, batcher)
        waiting = asyncio.create_task(batcher.rewrite([said("is he last?")], PLAIN))
        await asyncio.sleep(0)
        await batcher.close()
        results = await asyncio.gather(first, waiting, return_exceptions=True)
        assert [type(one) for one in results] == [asyncio.CancelledError] * 2
        rewriter.hold.set()

    run(main())


def test_a_model_that_returns_too_few_results_is_a_failure_not_a_mix_up() -> None:
    class Short(FakeRewriter):
        def try_many(self, dialogues: Any, batch_size: int = 32, **options: Any) -> Any:
            return super().try_many(dialogues, batch_size, **options)[1:]

    async def main() -> None:
        batcher = await started(Short(), window_ms=20)
        results = await asyncio.gather(
            *(batcher.rewrite([said(f"he {k}")], PLAIN) for k in range(2)), return_exceptions=True
        )
        await batcher.close()
        assert [type(one) for one in results] == [ModelFailedError] * 2

    run(main())
