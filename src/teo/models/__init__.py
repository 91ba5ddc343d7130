"""The project's own backbone, registered for transformers' Auto classes."""

from transformers import AutoConfig, AutoModelForSeq2SeqLM

from teo.models.backbone import TeoForConditionalGeneration
from teo.models.configuration import TeoConfig

AutoConfig.register("teo", TeoConfig, exist_ok=True)
AutoModelForSeq2SeqLM.register(TeoConfig, TeoForConditionalGeneration, exist_ok=True)

__all__ = ["TeoConfig", "TeoForConditionalGeneration"]
