"""What search finds with an utterance as it is, with its rewrite, and with the rewrite of a person."""
