"""Predictions of every variant and their quality: predict, evaluate, report, plots."""
