"""The field's metrics with their signatures: exact match, BLEU, ROUGE, restoration, stage flow, significance."""

from teo.metrics.flow import StageFlow, final_em_from_rates, stage_flow
from teo.metrics.rows import ScoredRow, read_rows
from teo.metrics.scorer import Comparison, ScoreReport, compare_rows, score_rows

__all__ = [
    "Comparison",
    "ScoreReport",
    "ScoredRow",
    "StageFlow",
    "compare_rows",
    "final_em_from_rates",
    "read_rows",
    "score_rows",
    "stage_flow",
]
