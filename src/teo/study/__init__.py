"""Studies on top of the evaluation: human judging, retrieval, other systems."""
