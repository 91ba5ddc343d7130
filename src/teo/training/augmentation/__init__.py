"""Training rows beyond the datasets: everyday dialogues made from frames, and rows derived from other rows."""
