"""Ranking by meaning: a trained model samples rewrites, and learns to prefer those that say what the reference says."""
