"""Long answers of an assistant to the questions of the templates, sampled from a chat model of a GGUF file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from teo_lab.rows.everyday import list_questions
from teo_lab.teacher.model import choose_device, read_fields

_SENTENCES = re.compile(r".*[.!?][\"')\]*]*(?=\s|$)", re.S)
_BARE_NUMBER = re.compile(r"\s*\d+[.)]\s*")


def sample_answers(
    gguf: Path, out: Path, count: int = 5000, batch: int = 1024, tokens: int = 220, seed: int = 1
) -> int:
    """Append answers to a JSONL file as they come and return how many; questions that it has already are left out."""
    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
    done = {fields["question"] for fields in read_fields(out, "question")} if out.is_file() else set()
    questions = sorted((text for text in list_questions("en", count, seed) if text not in done), key=len)
    written = 0
    with out.open("a", encoding="utf-8") as stream:
        for question, answer in _sample(model.to(choose_device()).eval(), tokenizer, questions, batch, tokens):
            stream.write(json.dumps({"question": question, "answer": answer}, ensure_ascii=False) + "\n")
            written += 1
    return written


def _sample(model: Any, tokenizer: Any, questions: Sequence[str], batch: int, tokens: int) -> Iterator[tuple[str, str]]:
    """Yield questions with their answers, a batch at a time."""
    prompts = [
        tokenizer.apply_chat_template([{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True)
        for text in questions
    ]
    for first in range(0, len(questions), batch):
        encoded = tokenizer(prompts[first : first + batch], return_tensors="pt", padding=True).to(model.device)
        with torch.inference_mode():
            ids = model.generate(**encoded, do_sample=True, temperature=0.8, top_p=0.95, max_new_tokens=tokens, top_k=0)
        for question, row in zip(questions[first : first + batch], ids, strict=True):
            answer_ids = row[encoded["input_ids"].shape[1] :]
            ended = bool((answer_ids == tokenizer.eos_token_id).any())
            answer = cut_at_sentence(tokenizer.decode(answer_ids, skip_special_tokens=True), ended)
            if answer:
                yield question, answer


def cut_at_sentence(text: str, ended: bool) -> str:
    """Return an answer; one that ran into the limit loses its unfinished last sentence, and may be empty then."""
    text = text.strip()
    if ended:
        return text
    whole = _SENTENCES.match(text)
    lines = whole.group(0).rstrip().split("\n") if whole else []
    if lines and _BARE_NUMBER.fullmatch(lines[-1]):  # "3." is no sentence but the start of one
        lines.pop()
    return "\n".join(lines).rstrip()
