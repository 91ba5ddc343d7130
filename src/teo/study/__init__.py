"""Studies on top of the evaluation: human judging, retrieval, a language model as a system, the paper's tables."""
