"""LlamaIndex: a query transform before any retriever or query engine.

pip install 'teo-rewriter[llama-index]'
python examples/llama_index_transform.py                         # the embedded model
python examples/llama_index_transform.py http://127.0.0.1:8000   # a running `teo serve`
"""

from __future__ import annotations

import sys

from llama_index.core.llms import ChatMessage
from llama_index.core.retrievers import BaseRetriever, TransformRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from teo.integrations.conversation import AnyRewriter
from teo.integrations.llama_index import RewriteTransform
from teo.integrations.remote import RemoteRewriter

NODES = [
    TextNode(text="Marie Curie was born in Warsaw in 1867 and died in 1934."),
    TextNode(text="Pierre Curie died in Paris in 1906, run over by a horse-drawn cart."),
    TextNode(text="Radium was discovered in 1898."),
]


class WordRetriever(BaseRetriever):
    """The node that shares most words with the question: enough to show what a rewrite is worth."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        words = set(query_bundle.query_str.lower().strip("?.").split())
        scored = [NodeWithScore(node=node, score=len(words & set(node.text.lower().split()))) for node in NODES]
        return sorted(scored, key=lambda one: -(one.score or 0))[:1]


def main(rewriter: AnyRewriter) -> list[NodeWithScore]:
    """Ask a question that only the conversation explains; return what is found."""
    conversation = [
        ChatMessage(role="user", content="Did Marie Curie discover radium alone?"),
        ChatMessage(role="assistant", content="No, together with Pierre Curie."),
    ]
    transform = RewriteTransform(
        rewriter,
        history=lambda: conversation,
        on_rewrite=lambda dialogue, result: print(f"{dialogue.utterance!r} -> {result.rewrite!r}"),
    )
    found = TransformRetriever(WordRetriever(), transform).retrieve("When did he die?")
    print(found[0].text)
    return found


if __name__ == "__main__":
    from teo.rewriter import Rewriter

    main(RemoteRewriter(sys.argv[1]) if len(sys.argv) > 1 else Rewriter.from_pretrained())
