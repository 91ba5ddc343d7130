"""A tiny model folder with every role, and a few rows."""

import json
from pathlib import Path

import pytest

ROWS = [
    {"id": "1", "history": ["ben is here"], "utterance": "is he", "rewrite": "is ben"},
    {"id": "2", "history": ["tea is hot"], "utterance": "why", "rewrite": "why is tea hot"},
    {"id": "3", "history": ["a", "b"], "utterance": "yes", "rewrite": "yes"},
    {"id": "4", "history": ["ben saw rome"], "utterance": "did he like it", "rewrite": "did ben like rome then"},
]


@pytest.fixture
def rows_file(tmp_path: Path) -> Path:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch", reason="predicting needs torch")
    pytest.importorskip("transformers", reason="predicting needs transformers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

    from teo.loading import ModelFolder, Role
    from teo.runtime.torch_codec import Codec

    torch.set_num_threads(1)
    torch.manual_seed(3)
    names = ["<pad>", "<s>", "</s>", "<unk>", *"abcdefghijklmnopqrstuvwxyz "]
    raw = Tokenizer(models.WordLevel({name: k for k, name in enumerate(names)}, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    raw.decoder = decoders.Fuse()
    special = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, cls_token="<s>", sep_token="</s>", **special)
    model = BartForConditionalGeneration(
        BartConfig(
            vocab_size=30,
            d_model=16,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            max_position_embeddings=160,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=2,
            init_std=0.5,
        )
    )
    codec = Codec(tokenizer, model.config)
    model.resize_token_embeddings(len(codec))
    folder = tmp_path_factory.mktemp("models") / "tiny"
    model.save_pretrained(folder / "shared")
    codec.tokenizer.save_pretrained(folder / "shared")
    prompts = {"stage1": "[E]", "stage2": "[Y]", "rfis": "[Y]", "direct": "[Y]", "fast": "[F]", "fused": "[E]"}
    ModelFolder({role: Role("shared", (prompt,)) for role, prompt in prompts.items()}, source_limit=30).save(folder)
    return folder
