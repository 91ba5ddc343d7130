"""The version of this package; a leaf, so that anything may import it."""

__version__ = "0.1.0"
