"""Model Context Protocol: start `teo mcp` and call its tool, as an assistant would.

pip install 'teo-rewriter[mcp]'
python examples/mcp_client.py                              # the embedded model
python examples/mcp_client.py --url http://127.0.0.1:8000  # a running `teo serve`

An assistant is told of the server in its settings; most of them read this form:

    {"mcpServers": {"teo": {"command": "teo", "args": ["mcp"]}}}
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

from mcp import Client, StdioServerParameters

ARGUMENTS: dict[str, Any] = {
    "history": ["Did Marie Curie discover radium alone?", "No, together with Pierre Curie."],
    "utterance": "When did he die?",
}


async def call(options: Sequence[str] = ()) -> dict[str, Any]:
    """Return the record of one rewrite."""
    command = StdioServerParameters(command=sys.executable, args=["-m", "teo", "mcp", *options], env=dict(os.environ))
    async with Client(command) as client:
        tools = await client.list_tools()
        print("tools:", ", ".join(tool.name for tool in tools.tools))
        result = await client.call_tool("rewrite", ARGUMENTS)
    record: dict[str, Any] = result.structured_content
    print(f"{ARGUMENTS['utterance']!r} -> {record['rewrite']!r}, confidence {record['confidence']}")
    return record


if __name__ == "__main__":
    asyncio.run(call(sys.argv[1:]))
