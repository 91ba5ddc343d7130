"""Plain HTTP: several dialogues in one request, with nothing but Python's own library.

teo serve &
python examples/http_client.py http://127.0.0.1:8000
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from typing import Any

ITEMS: list[dict[str, Any]] = [
    {"history": ["Did Marie Curie discover radium alone?", "No, together with Pierre Curie."],
     "utterance": "When did he die?"},
    {"messages": [{"role": "user", "content": "你喜欢周杰伦吗"}, {"role": "assistant", "content": "喜欢"},
                  {"role": "user", "content": "他哪年出生的"}]},
]  # fmt: skip


def main(url: str, token: str = "") -> list[str]:
    """Return the rewrites of two dialogues, one in each form that the server takes."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(f"{url.rstrip('/')}/v1/rewrite", json.dumps({"items": ITEMS}).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        records = json.load(response)["items"]
    for record in records:
        print(record["rewrite"], record["confidence"], record["operations"])
    return [record["rewrite"] for record in records]


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000", os.environ.get("TEO_TOKEN", ""))
