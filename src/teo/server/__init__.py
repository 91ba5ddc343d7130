"""The rewriter over HTTP: dynamic batches across requests, limits, metrics and a page to try it."""
