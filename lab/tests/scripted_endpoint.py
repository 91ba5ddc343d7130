"""An OpenAI-compatible endpoint on the loopback that answers what a test decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, Any] | tuple[int, Any, dict[str, str]]


def chat(text: str | None, **extra: Any) -> Reply:
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return 200, {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage, **extra}


class Script:
    """A server that answers what a test decides, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answer: Callable[[int, dict[str, Any]], Reply] = lambda _number, _body: chat("ok")
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.busiest = self._busy = 0
        self._lock = threading.Lock()
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                script.handle(self)

            def log_message(self, *_arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            number = len(self.bodies)
            self.bodies.append(body)
            self.headers.append({**dict(handler.headers), "path": handler.path})
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
        try:
            status, payload, *headers = self.answer(number, body)
        finally:
            with self._lock:
                self._busy -= 1
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        try:
            handler.send_response(status)
            for name, value in (headers[0] if headers else {}).items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)
        except OSError:  # the client has given up waiting
            pass
