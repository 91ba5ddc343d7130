"""Samples an assistant's long answers to the questions of the frames, with a chat model from a GGUF file.

    python tools/sample_answers.py MODEL.gguf OUT.jsonl [--count 5000] [--batch 1024] [--tokens 220]

OUT is what the key `augmentation.answers` takes. A run that was stopped goes on with the questions that are left. Needs
the extra `train` and, in practice, a GPU: about 30,000 tokens a second on an H200 that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from teo.training.augmentation.frames import list_questions

_SENTENCES = re.compile(r".*[.!?][\"')\]*]*(?=\s|$)", re.S)
_BARE_NUMBER = re.compile(r"\s*\d+[.)]\s*")


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


def sample(model: Any, tokenizer: Any, questions: Sequence[str], args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield questions with their answers, a batch at a time."""
    prompts = [
        tokenizer.apply_chat_template([{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True)
        for text in questions
    ]
    for first in range(0, len(questions), args.batch):
        encoded = tokenizer(prompts[first : first + args.batch], return_tensors="pt", padding=True).to(model.device)
        with torch.inference_mode():
            ids = model.generate(
                **encoded, do_sample=True, temperature=0.8, top_p=0.95, max_new_tokens=args.tokens, top_k=0
            )
        for question, row in zip(questions[first : first + args.batch], ids, strict=False):
            written = row[encoded["input_ids"].shape[1] :]
            ended = bool((written == tokenizer.eos_token_id).any())
            answer = cut_at_sentence(tokenizer.decode(written, skip_special_tokens=True), ended)
            if answer:
                yield question, answer


def main() -> None:
    """Read the arguments and append the answers to the file, as they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--tokens", type=int, default=220)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(args.model.parent, gguf_file=args.model.name, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(args.model.parent, gguf_file=args.model.name, dtype=torch.bfloat16)
    done = set()
    if args.out.is_file():
        done = {json.loads(line)["question"] for line in args.out.read_text(encoding="utf-8").splitlines()}
    questions = sorted((text for text in list_questions("en", args.count, args.seed) if text not in done), key=len)
    with args.out.open("a", encoding="utf-8") as stream:
        for question, answer in sample(model.to(device).eval(), tokenizer, questions, args):
            stream.write(json.dumps({"question": question, "answer": answer}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
