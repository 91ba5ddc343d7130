"""A pretrained decoder that learns our rows, and then writes dialogues with their rewrites for a smaller model."""
