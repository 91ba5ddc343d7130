"""Training rows beyond the datasets: hand-written dialogues, filled templates, and rows derived from other rows."""
