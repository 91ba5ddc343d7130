"""LangChain: a retriever that understands "When did he die?".

pip install 'teo-rewriter[langchain]'
python examples/langchain_retriever.py                         # the embedded model
python examples/langchain_retriever.py http://127.0.0.1:8000   # a running `teo serve`
"""

from __future__ import annotations

import sys

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever

from teo.integrations.conversation import AnyRewriter
from teo.integrations.langchain import rewriting_retriever
from teo.integrations.remote import RemoteRewriter

DOCUMENTS = [
    Document("Marie Curie was born in Warsaw in 1867 and died in 1934."),
    Document("Pierre Curie died in Paris in 1906, run over by a horse-drawn cart."),
    Document("Radium was discovered in 1898."),
]


class WordRetriever(BaseRetriever):
    """The document that shares most words with the question: enough to show what a rewrite is worth."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        words = set(query.lower().strip("?.").split())
        return sorted(DOCUMENTS, key=lambda one: -len(words & set(one.page_content.lower().split())))[:1]


def main(rewriter: AnyRewriter) -> list[Document]:
    """Ask a question that only its chat history explains; return what is found."""
    retriever = rewriting_retriever(
        WordRetriever(),
        rewriter,
        on_rewrite=lambda dialogue, result: print(f"{dialogue.utterance!r} -> {result.rewrite!r}"),
    )
    chat_history = [
        HumanMessage("Did Marie Curie discover radium alone?"),
        AIMessage("No, together with Pierre Curie."),
    ]
    found = retriever.invoke({"input": "When did he die?", "chat_history": chat_history})
    print(found[0].page_content)
    return found


if __name__ == "__main__":
    from teo.rewriter import Rewriter

    main(RemoteRewriter(sys.argv[1]) if len(sys.argv) > 1 else Rewriter.from_pretrained())
