"""A language model behind an OpenAI-compatible endpoint, evaluated as any other system."""
