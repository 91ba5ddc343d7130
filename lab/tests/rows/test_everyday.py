"""Everyday rows: templates and word lists are read with clear errors, filled consistently, and typed as people type."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from teo.errors import DataError
from teo_lab.paths import ROWS
from teo_lab.rows.everyday import everyday_rows, list_questions, tidy
from teo_lab.rows.patterns import Choice, Filling, Parser, Pattern, Slot, every_fill, fill
from teo_lab.rows.template_files import ANSWER, read_templates
from teo_lab.rows.typos import Typed, add_typos
from teo_lab.rows.words import plural, read_words, with_article

WORDS = """[city]
Leeds; York; Oslo
[country]
Spain
[place = city + country]
[woman: kind he=she]
Ada Lovelace | mathematician
"""
BLOCK = "U: Is there a train to {city}?\nA: Yes.\nU: And to {city2}?\n> Is there a train to {city2}?\n"


def write(folder: Path, templates: str, words: str = WORDS) -> Path:
    (folder / "words").mkdir(parents=True)
    (folder / "words" / "en.txt").write_text(words, encoding="utf-8")
    (folder / "templates" / "en").mkdir(parents=True)
    (folder / "templates" / "en" / "some.txt").write_text(templates, encoding="utf-8")
    return folder / "templates" / "en"


def fill_text(text: str, tmp_path: Path, seed: int = 0) -> str:
    path = tmp_path / "words.txt"
    path.write_text(WORDS, encoding="utf-8")
    return fill(Parser("here").parse(text), Filling(), read_words(path), random.Random(seed))


def test_words_have_columns_constants_and_joins(tmp_path: Path) -> None:
    path = tmp_path / "en.txt"
    path.write_text(WORDS, encoding="utf-8")
    words = read_words(path)
    assert [entry.value for entry in words["place"].entries] == ["Leeds", "York", "Oslo", "Spain"]
    ada = words["woman"].entries[0]
    assert (ada.text(None), ada.text("kind"), ada.text("he")) == ("Ada Lovelace", "mathematician", "she")


@pytest.mark.parametrize(
    ("value", "article", "many", "reason"),
    [
        ("cat", "a cat", "cats", "regular"),
        ("owl", "an owl", "owls", "vowel"),
        ("university", "a university", "universities", "u that sounds like you; y after a consonant"),
        ("umbrella", "an umbrella", "umbrellas", "u that is a vowel"),
        ("hour", "an hour", "hours", "silent h"),
        ("SUV", "an SUV", "SUVs", "a letter that is said with a vowel"),
        ("box", "a box", "boxes", "sibilant"),
        ("key", "a key", "keys", "y after a vowel"),
    ],
)
def test_articles_and_plurals_follow_the_sound(value: str, article: str, many: str, reason: str) -> None:
    assert (with_article(value), plural(value)) == (article, many), reason


@pytest.mark.parametrize(
    ("templates", "message", "reason"),
    [
        (BLOCK, "expected '# kind' before", "a template before any kind"),
        ("# riddle\n\n" + BLOCK, "expected a kind", "an unknown kind"),
        ("# keep\n\nU: Hi {town}.\nA: Hi.\nU: Bye.\n=\n", "expected a word list", "an unknown list"),
        ("# keep\n\nU: Hi {city.him}.\nA: Hi.\nU: Bye.\n=\n", "expected an attribute of [city]", "unknown attribute"),
        ("# keep\n\nU: {country} {country2}.\nA: Hi.\nU: Bye.\n=\n", "expected 2 entries in [country]", "short list"),
        ("# keep\n\nU: Hi.\n=\n", "at least one turn before the utterance", "no history"),
        ("# keep\n\nU: Hi.\nA: Hi.\nU: Bye.\n", "expected '> rewrite' or '='", "no rewrite"),
        ("# keep\n\nX: Hi.\nA: Hi.\nU: Bye.\n=\n", "expected 'U: text' or 'A: text'", "unknown speaker"),
        ("# keep\n\nU: (Hi|Hello.\nA: Hi.\nU: Bye.\n=\n", "'(' without ')'", "open choice"),
        ("# keep\n\nU: Hi) you.\nA: Hi.\nU: Bye.\n=\n", "outside a choice", "closed twice"),
        ("# keep\n\nU: (Hi) you.\nA: Hi.\nU: Bye.\n=\n", "one alternative and no name", "a name never given"),
        ("# keep\n\nU: (k=a|b).\nA: (k:c|d|e).\nU: Bye.\n=\n", "write 2, as many as 'k'", "unequal parallels"),
        ("# keep\n\nU: <hello>\nA: Hi.\nU: Bye.\n=\n", "expected a shared choice", "unknown shared choice"),
        (f"# keep\n\nU: Hi?\nA: {ANSWER}\nU: Bye.\n=\n", "answered-question", "an answer in another kind"),
    ],
)
def test_errors_say_where_and_what(tmp_path: Path, templates: str, message: str, reason: str) -> None:
    with pytest.raises(DataError) as error:
        read_templates(write(tmp_path, templates))
    assert message in str(error.value), reason
    assert str(error.value).startswith("some.txt:"), reason


def test_shared_choices_are_expanded(tmp_path: Path) -> None:
    folder = write(tmp_path, "@hello: Hi.\n@hello: Hello.\n\n# keep\n\nU: <hello>\nA: Hi.\nU: Bye.\n=\n")
    assert read_templates(folder)[0].turns[0] == "(Hi.|Hello.)"


@pytest.mark.parametrize(
    ("text", "same", "reason"),
    [
        ("(a|b) / (a|b)", True, "equal choices are drawn once"),
        ("(1:a|b) / (2:a|b)", False, "labels are drawn apart"),
        ("(k=a|b) / (k)", True, "a name repeats the text"),
        ("{city} / {city}", True, "the same slot is the same entry"),
        ("{city} / {city2}", False, "numbered slots are distinct"),
        ("{city} / {place}", False, "joined lists give no value twice"),
    ],
)
def test_choices_and_slots_agree_within_a_template(tmp_path: Path, text: str, same: bool, reason: str) -> None:
    pairs = [fill_text(text, tmp_path, seed).split(" / ") for seed in range(40)]
    equal = sum(first == second for first, second in pairs)
    assert equal == 40 if same else equal < 40, reason
    if not same and text.startswith("{"):
        assert equal == 0, reason


def test_parallel_choices_take_the_same_number(tmp_path: Path) -> None:
    texts = {fill_text("(k=buy|sell) (k:bought|sold)", tmp_path, seed) for seed in range(20)}
    assert texts == {"buy bought", "sell sold"}


def test_times_in_a_choice_are_no_labels(tmp_path: Path) -> None:
    assert {fill_text("(9:30|8:15)", tmp_path, seed) for seed in range(20)} == {"9:30", "8:15"}


def test_every_fill_lists_all_texts(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text(WORDS, encoding="utf-8")
    pattern = Parser("here").parse("(Where|Why) is {country} (k=a|b)(k)?")
    texts = [text for text, _ in every_fill(pattern, read_words(path), Filling())]
    assert texts == ["Where is Spain aa?", "Where is Spain bb?", "Why is Spain aa?", "Why is Spain bb?"]


@pytest.mark.parametrize(
    ("raw", "clean", "reason"),
    [
        ("please  book it .", "Please book it.", "an empty alternative leaves spaces"),
        ("It opens at 5 p.m. on Monday. then it rains.", "It opens at 5 p.m. on Monday. Then it rains.", "sentences"),
        ("Who are the Lakers's rivals?", "Who are the Lakers' rivals?", "genitive of a plural"),
        ("can i come?", "Can I come?", "the pronoun"),
        ("iPhone or Pixel?", "iPhone or Pixel?", "a name that starts small"),
        ("~weather oslo. rain?", "weather oslo. Rain?", "a query that starts small on purpose"),
        ("Here:\n1. milk\n2. bread", "Here:\n1. Milk\n2. Bread", "list items"),
    ],
)
def test_tidy(raw: str, clean: str, reason: str) -> None:
    assert tidy(raw, "en") == clean, reason


def noisy(turns: tuple[str, ...], rewrite: str, language: str = "en") -> list[Typed]:
    speakers = ("UA" * len(turns))[: len(turns)]
    return [add_typos(Typed(turns, speakers, rewrite), language, random.Random(seed)) for seed in range(600)]


def test_lower_case_users_get_the_names_as_the_turns_spell_them() -> None:
    typed = noisy(
        ("Who wrote Dune?", "It is by Frank Herbert.", "When did he write it?"), "When did Frank Herbert write Dune?"
    )
    lower = [one for one in typed if one.turns[0] == "who wrote dune" and "Frank" in one.turns[1]]
    assert lower
    for one in lower:
        assert "Frank Herbert" in one.rewrite
        assert one.rewrite.endswith("dune")


def test_typing_errors_are_kept_in_the_rewrite() -> None:
    for typed in noisy(("Is Oslo expensive?", "Yes, quite.", "Why exactly?"), "Why exactly is Oslo expensive?"):
        words = typed.turns[-1].rstrip("?").split()
        assert typed.rewrite.split()[: len(words)] == words, typed


def test_complete_utterances_stay_complete() -> None:
    assert all(
        one.complete
        for one in noisy(("Hi there!", "Hello.", "What's the capital of Peru?"), "What's the capital of Peru?")
    )


def test_chinese_users_leave_out_final_marks() -> None:
    typed = noisy(("西安天气怎么样？", "多云。", "明天呢？"), "西安明天天气怎么样？", "zh")
    bare = sum(not one.turns[-1].endswith("？") for one in typed)
    assert 240 < bare < 400
    assert all(one.turns[-1].endswith("？") == one.rewrite.endswith("？") for one in typed)


LANGUAGES = [language for language in ("en", "zh") if any((ROWS / "templates" / language).glob("*.txt"))]


@pytest.mark.parametrize("language", LANGUAGES)
def test_rows_follow_from_the_seed(language: str) -> None:
    first = list(everyday_rows(language, 200, 3))  # type: ignore[arg-type]
    assert first == list(everyday_rows(language, 200, 3))  # type: ignore[arg-type]
    assert first != list(everyday_rows(language, 200, 4))  # type: ignore[arg-type]
    assert len({row.dialogue for row in first}) == len({row.id for row in first}) == 200
    assert first[0].id == f"everyday-{language}-0"


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_of_the_template_language_is_left(language: str) -> None:
    for row in everyday_rows(language, 2000, 1):  # type: ignore[arg-type]
        for text in (*row.dialogue.history, row.dialogue.utterance, row.rewrite):
            assert text
            assert not set("{}<>|@\\") & set(text), row


def test_held_out_templates_are_a_small_share_that_training_never_sees() -> None:
    templates = read_templates(ROWS / "templates" / "en")
    held = [template for template in templates if template.held_out]
    assert 0.02 < len(held) / len(templates) < 0.12


def test_answers_are_put_after_their_questions() -> None:
    questions = list_questions("en", 300, 0)
    assert len(set(questions)) == 300
    answers = {question: f"Answer {number}, at length." for number, question in enumerate(questions)}
    rows = list(everyday_rows("en", 1500, 0, answers=answers))
    turns = {answer.lower() for answer in answers.values()}
    assert sum(any(turn.lower().rstrip(".") + "." in turns for turn in row.dialogue.history) for row in rows) > 100
    bare = list(islice(everyday_rows("en", 300, 0), 300))
    assert not any("Answer" in turn and "at length" in turn for row in bare for turn in row.dialogue.history)


def test_every_kind_has_english_templates() -> None:
    kinds = Counter(template.kind for template in read_templates(ROWS / "templates" / "en"))
    assert len(kinds) == 14, kinds
    assert sum(kinds.values()) >= 300
    assert 0.2 < kinds["keep"] / sum(kinds.values()) < 0.4


def test_english_rewrites_draw_nothing_that_the_turns_have_not_drawn() -> None:
    """A choice or slot of the rewrite alone would put words there that the dialogue does not say."""
    for template in read_templates(ROWS / "templates" / "en"):
        *turns, rewrite = template.patterns()
        drawn = {key for turn in turns for key in keys_of(turn or ())}
        assert set(keys_of(rewrite or ())) <= drawn, template.where


def keys_of(pattern: Pattern) -> Iterator[str]:
    for node in pattern:
        if isinstance(node, Slot):
            yield f"{{{node.key}}}"
        elif isinstance(node, Choice):
            yield node.key
            for option in node.options:
                yield from keys_of(option)


def test_several_last_turns_share_a_history(tmp_path: Path) -> None:
    text = "@lead: (|so )\n\n# pronoun\n\nU: Where is {city}?\nA: Up north.\n"
    text += "- Is it big? => Is {city} big?\n+ is it old? => is {city} old?\n"
    template = read_templates(write(tmp_path, text))[0]
    assert template.turns[-1] == "(pair=Is it big?|(|so )is it old?)"
    assert template.rewrite == "(pair:Is {city} big?|(|so )is {city} old?)"
    with pytest.raises(DataError, match="expected '- utterance => rewrite' lines"):
        read_templates(write(tmp_path / "other", "# keep\n\nU: Hi.\n- Bye.\n- Bye. => Bye.\n=\n"))


def test_english_lists_are_many_and_long() -> None:
    words = read_words(ROWS / "words" / "en.txt")
    assert len(words) >= 60
    assert len({entry.value for words_of_kind in words.values() for entry in words_of_kind.entries}) >= 3000
