"""Pretraining of the backbone on plain dialogues."""
