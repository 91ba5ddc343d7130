"""Predictions of every variant, and what they are worth: predict, evaluate, report, plots."""
