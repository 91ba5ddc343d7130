"""The judge of proposals: what it chooses from, that candidates do not see each other, that it learns, and its rule."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from judge import list_candidates  # noqa: E402
from judge_model import Judging, fit, load_judge, probabilities, read_items  # noqa: E402
from judge_report import report, to_text  # noqa: E402
from teo.data.row import Row  # noqa: E402
from teo.dialogue import Dialogue  # noqa: E402
from teo.models import TeoConfig, TeoForConditionalGeneration  # noqa: E402
from teo.models.tokenizer import train_tokenizer, wrap_tokenizer  # noqa: E402

CPU = torch.device("cpu")
ROW = Row("task-1", Dialogue(("Is the car new?",), "It is red."), "The car is red.")
TEXTS = ("The car is red.", "It is red.", "The car is new.")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny backbone with its tokenizer."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("base")
    tokenizer = train_tokenizer([*TEXTS, *ROW.dialogue.history] * 4, size=400, alphabet=60)
    wrap_tokenizer(tokenizer).save_pretrained(folder)
    config = TeoConfig(
        vocab_size=tokenizer.get_vocab_size(), d_model=32, encoder_layers=1, decoder_layers=1, heads=4, d_ff=64
    )
    TeoForConditionalGeneration(config).save_pretrained(folder)
    return str(folder)


def record(codec: Any, texts: tuple[str, ...], right: str = ROW.rewrite, question: str = "Is the car new?") -> dict:
    from teo.layouts import stage1_source

    source = codec.encode(stage1_source(Dialogue((question,), ROW.dialogue.utterance)))
    listed = [{"text": text, "right": text == right, "fast": -1.0, "direct": -2.0} for text in texts]
    return {"id": "task-1", "source": source, "candidates": listed}


@pytest.mark.parametrize(
    ("texts", "expected", "reason"),
    [
        (["the car is red .", "The car is red."], ["the car is red .", "It is red."], "case and spaces do not count"),
        (["It is red.", "A"], ["It is red.", "A"], "the utterance comes once, where it first stands"),
        (["", " "], ["It is red."], "no text is no candidate"),
    ],
)
def test_candidates_are_distinct_and_hold_the_utterance(texts: list[str], expected: list[str], reason: str) -> None:
    listed = list_candidates(ROW, texts)
    assert [candidate["text"] for candidate in listed] == expected, reason
    assert [candidate["right"] for candidate in listed] == [text.startswith("the") for text in expected]


@pytest.mark.parametrize("reads", ["decoder", "encoder"])
def test_candidates_do_not_see_each_other(base: str, reads: str) -> None:
    judge, codec = load_judge(Judging("", reads=reads), base)
    torch.nn.init.normal_(judge.head.weight)  # a new head gives nothing but the log-probabilities
    rows = [record(codec, TEXTS), record(codec, TEXTS[:2]), record(codec, (TEXTS[1], TEXTS[0]))]
    three, two, swapped = probabilities(judge, read_items(rows, codec, reads), CPU)
    assert three[0] / three[1] == pytest.approx(two[0] / two[1], rel=1e-3)
    assert swapped == pytest.approx(two[::-1], rel=1e-3)
    assert three[0] != pytest.approx(three[1], rel=1e-3), "the head looks at the text"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (Judging("", rate=3e-3, epochs=100), "as the rule has it"),
        (Judging("", rate=3e-3, epochs=100, scores=False), "from the states alone"),
        (Judging("", rate=3e-3, epochs=100, reads="encoder"), "candidates in the encoder"),
    ],
)
def test_a_judge_learns_to_choose_and_to_refuse(base: str, settings: Judging, reason: str) -> None:
    torch.manual_seed(0)
    judge, codec = load_judge(settings, base)
    judge.backbone.set_dropout(0.0)
    rows = [record(codec, TEXTS), record(codec, TEXTS, right="", question="It is red.")]
    items = read_items(rows, codec, settings.reads)
    losses = list(fit(judge, items, CPU))
    chosen, refused = probabilities(judge, items, CPU)
    assert losses[-1] < losses[0] / 2, reason
    assert chosen[0] > 0.8, reason
    assert sum(refused) < 0.3, f"{reason}: none of them is right"


def judged_rows(dataset: str, right: int) -> list[dict]:
    """Return rows whose first candidate is right in every second one, and whose other one is right where it is not."""
    rows = []
    for k in range(40):
        first = k % 2 == 0
        listed = [{"text": "a", "right": first}, {"text": "b", "right": not first and k < right}]
        listed = [{**candidate, "fast": -1.0 - n, "direct": -1.0} for n, candidate in enumerate(listed)]
        greedy = {"right": first, "score": -1.0, "first": -0.5}
        rows.append({"id": f"{dataset}-{k}", "candidates": listed, "greedy": greedy})
    return rows


@pytest.mark.parametrize(
    ("rows", "verdict", "reason"),
    [
        ([*judged_rows("rewrite", 40), *judged_rows("task", 40)], "go on", "better on both"),
        ([*judged_rows("rewrite", 40), *judged_rows("task", 0)], "stop", "nothing to gain on one of them"),
    ],
)
def test_the_stop_rule_wants_a_gain_on_every_dataset(rows: list[dict], verdict: str, reason: str) -> None:
    found = [[0.8, 0.1] if row["candidates"][0]["right"] else [0.2, 0.7] for row in rows]
    summary = report(rows, {"unseen": found})
    assert summary["verdict"] == verdict, reason
    ways = summary["datasets"]["rewrite"]["ways"]
    assert (ways["fast, greedy"]["em"], ways["unseen"]["em"], ways["unseen"]["gain"]) == (0.5, 1.0, 0.5)
    assert ways["fast, beam, as sure as the judge"]["area"] < ways["fast, beam"]["area"], "right ones come first"
    assert f"stop rule: {verdict}" in to_text(summary)
