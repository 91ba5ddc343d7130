"""Batch rewriting: files in, parts out, on the cores of a machine or on a Ray cluster."""
