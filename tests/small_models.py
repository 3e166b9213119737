"""Models of transformers from small configs, with random weights, and what the tests need to know of each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import transformers
from torch import Tensor, nn

VOCABULARY = 30
LENGTH = 20
# Above every special id of the configs below: a padding id would shift the positions.
IDS = torch.tensor([[7, 8, 9, 10, 11]])

_IDS = {"pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3}
_BERT = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": LENGTH,
}
_GPT = {
    "vocab_size": VOCABULARY,
    "n_positions": LENGTH,
    "n_embd": 16,
    "n_layer": 1,
    "n_head": 2,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
_BART = _IDS | {
    "vocab_size": VOCABULARY,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "decoder_start_token_id": 2,
}
_TOWER = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
_TEXT = _TOWER | _IDS | {"vocab_size": VOCABULARY, "max_position_embeddings": LENGTH}
# 8 x 8 pixels in patches of 4 x 4: four patches and [CLS].
_IMAGE = {"image_size": 8, "patch_size": 4}
_WHISPER = _BART | {"num_mel_bins": 4, "max_source_positions": 6, "max_target_positions": LENGTH}


def build(kind: str, seed: int = 0, **changes) -> nn.Module:
    """Make the model of this kind in eval mode, the same one for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _BUILDERS[kind](**changes).eval()


def bits(model: nn.Module) -> dict[str, list[int]]:
    """The bytes of all that a model holds, because 0.0 == -0.0 and NaN != NaN."""
    return {name: value.detach().reshape(-1).view(torch.uint8).tolist() for name, value in model.state_dict().items()}


def _made(name: str, settings: dict, *, config: str | None = None, **changes) -> nn.Module:
    config_class = getattr(transformers, config or f"{name.removesuffix('Model')}Config")
    return getattr(transformers, name)(config_class(**settings | changes))


_BUILDERS: dict[str, Callable[..., nn.Module]] = {
    "bert": partial(_made, "BertModel", _BERT),
    "bert-lm": partial(_made, "BertForMaskedLM", _BERT, config="BertConfig"),
    "roberta": partial(_made, "RobertaModel", _BERT | _IDS),
    "xlm-roberta": partial(_made, "XLMRobertaModel", _BERT | _IDS),
    "mpnet": partial(_made, "MPNetModel", _BERT | _IDS),
    "electra": partial(_made, "ElectraModel", _BERT | {"embedding_size": 8}),
    "albert": partial(_made, "AlbertModel", _BERT | _IDS | {"embedding_size": 8}),
    "esm": partial(
        _made, "EsmModel", _BERT | {"pad_token_id": 1, "mask_token_id": 4, "position_embedding_type": "absolute"}
    ),
    # As many landmarks as tokens: the exact attention, which takes inputs of any length.
    "nystromformer": partial(
        _made, "NystromformerModel", _BERT | {"num_landmarks": LENGTH, "segment_means_seq_len": LENGTH}
    ),
    "distilbert": partial(
        _made,
        "DistilBertModel",
        {
            "vocab_size": VOCABULARY,
            "max_position_embeddings": LENGTH,
            "dim": 16,
            "n_layers": 1,
            "n_heads": 2,
            "hidden_dim": 16,
        },
    ),
    "gpt2": partial(_made, "GPT2Model", _GPT),
    "gpt2-lm": partial(_made, "GPT2LMHeadModel", _GPT, config="GPT2Config"),
    "gpt": partial(_made, "OpenAIGPTModel", _GPT),
    "opt": partial(
        _made,
        "OPTModel",
        _IDS
        | {
            "vocab_size": VOCABULARY,
            "max_position_embeddings": LENGTH,
            "hidden_size": 16,
            "word_embed_proj_dim": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "ffn_dim": 16,
        },
    ),
    "bart": partial(_made, "BartModel", _BART | {"max_position_embeddings": LENGTH}),
    "vit": partial(_made, "ViTModel", _TOWER | _IMAGE),
    "clip": partial(
        _made,
        "CLIPModel",
        {"text_config": _TEXT, "vision_config": _TOWER | _IMAGE, "projection_dim": 8},
    ),
    "whisper": partial(_made, "WhisperModel", _WHISPER),
    # Without a position table.
    "t5": partial(
        _made,
        "T5Model",
        {"vocab_size": VOCABULARY, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2},
    ),
    "llama": partial(_made, "LlamaModel", _BERT),
    "xlnet": partial(
        _made, "XLNetModel", {"vocab_size": VOCABULARY, "d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 16}
    ),
    "bloom": partial(_made, "BloomModel", {"vocab_size": VOCABULARY, "hidden_size": 16, "n_layer": 1, "n_head": 2}),
    "roformer": partial(_made, "RoFormerModel", _BERT),
    "gptj": partial(_made, "GPTJModel", _GPT | {"rotary_dim": 4}),
    "falcon-alibi": partial(_made, "FalconModel", _BERT | {"alibi": True}, config="FalconConfig"),
    "falcon": partial(_made, "FalconModel", _BERT, config="FalconConfig"),
    "m2m100": partial(_made, "M2M100Model", _BART | {"max_position_embeddings": LENGTH}),
    "xglm": partial(
        _made,
        "XGLMModel",
        _IDS
        | {
            "vocab_size": VOCABULARY,
            "max_position_embeddings": LENGTH,
            "d_model": 16,
            "num_layers": 1,
            "attention_heads": 2,
            "ffn_dim": 16,
        },
    ),
    "mpt": partial(_made, "MptModel", {"vocab_size": VOCABULARY, "d_model": 16, "n_layers": 1, "n_heads": 2}),
}


@dataclass(frozen=True)
class Table:
    """What is known of a model's position table, to compare with what the package finds."""

    kind: str
    name: str
    offset: int
    # The output for the first n tokens; of what has a fixed size, for all of it.
    run: Callable[[nn.Module, int], Tensor]
    part: str | None = None
    # Real positions, and lengths to try (None: the one there is).
    n_positions: int = LENGTH
    lengths: tuple[int | None, ...] = (3, 5)

    def __str__(self) -> str:
        return f"{self.kind}-{self.part}" if self.part else self.kind


def _states(model: nn.Module, n_tokens: int) -> Tensor:
    return model(IDS[:, :n_tokens])[0]


def _decoder_states(model: nn.Module, n_tokens: int) -> Tensor:
    return model(IDS, decoder_input_ids=IDS[:, :n_tokens])[0]


def _encoder_states(model: nn.Module, n_tokens: int) -> Tensor:
    return model.encoder(IDS[:, :n_tokens])[0]


def _ramp(*shape: int) -> Tensor:
    return torch.linspace(-1, 1, torch.Size(shape).numel()).sin().reshape(shape)


def _of_image(model: nn.Module, _: None) -> Tensor:
    return model(_ramp(1, 3, 8, 8))[0]


def _clip_text(model: nn.Module, n_tokens: int) -> Tensor:
    return model.text_model(IDS[:, :n_tokens])[0]


def _clip_vision(model: nn.Module, _: None) -> Tensor:
    return model.vision_model(_ramp(1, 3, 8, 8))[0]


def _whisper_encoder(model: nn.Module, _: None) -> Tensor:
    return model.encoder(_ramp(1, 4, 12))[0]


def _whisper_decoder(model: nn.Module, n_tokens: int) -> Tensor:
    return model(_ramp(1, 4, 12), decoder_input_ids=IDS[:, :n_tokens])[0]


_BERT_NAME = "embeddings.position_embeddings"
TABLES = [
    Table("bert", _BERT_NAME, 0, _states),
    Table("bert-lm", f"bert.{_BERT_NAME}", 0, _states),
    Table("roberta", _BERT_NAME, 2, _states, n_positions=LENGTH - 2),
    Table("xlm-roberta", _BERT_NAME, 2, _states, n_positions=LENGTH - 2),
    Table("mpnet", _BERT_NAME, 2, _states, n_positions=LENGTH - 2),
    Table("esm", _BERT_NAME, 2, _states, n_positions=LENGTH - 2),
    Table("nystromformer", _BERT_NAME, 2, _states),
    Table("electra", _BERT_NAME, 0, _states),
    Table("albert", _BERT_NAME, 0, _states),
    Table("distilbert", _BERT_NAME, 0, _states),
    Table("gpt2", "wpe", 0, _states),
    Table("gpt2-lm", "transformer.wpe", 0, _states),
    Table("gpt", "positions_embed", 0, _states),
    Table("opt", "decoder.embed_positions", 2, _states),
    Table("bart", "encoder.embed_positions", 2, _encoder_states, part="encoder"),
    Table("bart", "decoder.embed_positions", 2, _decoder_states, part="decoder"),
    Table("vit", _BERT_NAME, 0, _of_image, n_positions=5, lengths=(None,)),
    Table("clip", "text_model.embeddings.position_embedding", 0, _clip_text, part="text"),
    Table("clip", "vision_model.embeddings.position_embedding", 0, _clip_vision, "vision", 5, (None,)),
    Table("whisper", "encoder.embed_positions", 0, _whisper_encoder, "encoder", 6, (None,)),
    Table("whisper", "decoder.embed_positions", 0, _whisper_decoder, part="decoder"),
]
