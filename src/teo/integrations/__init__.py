"""The rewriter inside other frameworks; each module is an extra and says so when its library is missing."""
