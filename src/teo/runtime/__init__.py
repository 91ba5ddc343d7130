"""The generators behind the stages: what turns a layout into text."""
