"""Haystack: a pipeline that rewrites the question before the retriever gets it.

pip install 'teo-rewriter[haystack]'
python examples/haystack_pipeline.py                         # the embedded model
python examples/haystack_pipeline.py http://127.0.0.1:8000   # a running `teo serve`
"""

from __future__ import annotations

import sys

from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore

from teo.integrations.haystack import QueryRewriter

DOCUMENTS = [
    Document(content="Marie Curie was born in Warsaw in 1867 and died in 1934."),
    Document(content="Pierre Curie died in Paris in 1906, run over by a horse-drawn cart."),
    Document(content="Radium was discovered in 1898."),
]
HISTORY = [
    ChatMessage.from_user("Did Marie Curie discover radium alone?"),
    ChatMessage.from_assistant("No, together with Pierre Curie."),
]


def build(rewrite: QueryRewriter) -> Pipeline:
    """Return a pipeline from a question and its history to documents."""
    store = InMemoryDocumentStore()
    store.write_documents(DOCUMENTS)
    pipeline = Pipeline()
    pipeline.add_component("rewrite", rewrite)
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=1))
    pipeline.connect("rewrite.query", "retriever.query")
    return pipeline


def main(rewrite: QueryRewriter) -> list[Document]:
    """Ask a question that only the conversation explains; return what is found."""
    question = {"query": "When did he die?", "history": HISTORY}
    found = build(rewrite).run({"rewrite": question}, include_outputs_from={"rewrite"})
    print(f"{question['query']!r} -> {found['rewrite']['query']!r}")
    documents: list[Document] = found["retriever"]["documents"]
    print(documents[0].content)
    return documents


if __name__ == "__main__":
    main(QueryRewriter(url=sys.argv[1]) if len(sys.argv) > 1 else QueryRewriter())
