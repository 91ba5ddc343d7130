"""The OpenAI client library against `teo serve`: the answer is the rewrite of the last message.

pip install 'teo-rewriter[serve]' openai
teo serve &
python examples/openai_client.py http://127.0.0.1:8000
"""

from __future__ import annotations

import os
import sys

from openai import OpenAI


def main(url: str, token: str = "none") -> str:
    """Return the rewrite of a question, whole and then as a stream."""
    client = OpenAI(base_url=f"{url.rstrip('/')}/v1", api_key=token)
    messages = [
        {"role": "user", "content": "Did Marie Curie discover radium alone?"},
        {"role": "assistant", "content": "No, together with Pierre Curie."},
        {"role": "user", "content": "When did he die?"},
    ]
    completion = client.chat.completions.create(model="teo", messages=messages)  # type: ignore[call-overload]
    rewrite = completion.choices[0].message.content
    record = completion.model_extra["teo"]
    print(f"{rewrite!r}, confidence {record['confidence']:.2f}, edits {record['edits']}")
    stream = client.chat.completions.create(model="teo", messages=messages, stream=True)  # type: ignore[call-overload]
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    print(f"{streamed!r}, streamed")
    return str(rewrite)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000", os.environ.get("TEO_TOKEN", "none"))
