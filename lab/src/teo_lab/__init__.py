"""How the models and the tables of teo are made: rows, pretraining, teachers, baselines, studies."""

__version__ = "0.1.0"
