# %% In code
from transformers import Llama4TextConfig, SmolLM3Config

# Holds in Picture: "Bidirectional: every weight is 0.17."
equal = torch.zeros(6, 6)
seen = (equal + torch.full((6, 6), -torch.inf).triu(1)).softmax(dim=-1)
assert torch.allclose(equal.softmax(dim=-1), torch.full((6, 6), 1 / 6))
assert seen[0, 0] == 1 and (seen[1, :2] == 0.5).all()
assert torch.allclose(seen[5], torch.full((6,), 1 / 6))
# Holds in Formula: "If the first token has a value unlike the others', its share in the"
one, alike = seen @ torch.eye(6)[:, 0], seen @ torch.ones(6)
assert len(one.unique()) == 6 and torch.allclose(alike, alike[0])
# Holds in When to use it: "SmolLM3 and Llama 4 leave out RoPE in every fourth layer"
for config in (SmolLM3Config(), Llama4TextConfig()):
    assert config.no_rope_layers[:8] == [1, 1, 1, 0, 1, 1, 1, 0]
# Holds in When to use it: "rows added to the embeddings reach all layers"
rows = scheme("sinusoidal", d_model=32)
here, x = torch.arange(6), torch.randn(1, 6, 32)
assert OnLayers(rows, [1], n_layers=2).add(x, here).equal(rows.add(x, here))

# The same of the caption.
# Holds in Picture: "Where all see all, all weights are equal."
assert torch.allclose(equal.softmax(dim=-1), torch.full((6, 6), 1 / 6))
# Holds in Picture: "Where a query sees its past alone, its weights tell how many tokens"
lengths = 1 / torch.arange(1.0, 7)
assert torch.allclose(seen, torch.ones(6, 6).tril() * lengths[:, None])

# And of the layers that leave RoPE out.
from unittest.mock import patch

from transformers import AutoModel, Cohere2Config, Exaone4Config
from transformers.models.cohere2 import modeling_cohere2
from transformers.models.exaone4 import modeling_exaone4

small = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 8}
small |= {"num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 9}
small |= {"bos_token_id": None, "eos_token_id": None}


def turned(module, config):  # which of eight layers turn
    model, name = AutoModel.from_config(config), "apply_rotary_pos_emb"
    turn, entered, found = getattr(module, name), [], []
    for layer in model.layers:
        layer.register_forward_pre_hook(lambda *_: entered.append(None))

    def noting(*arguments, **options):
        found.append(len(entered) - 1)
        return turn(*arguments, **options)

    with patch.object(module, name, noting):
        model(torch.arange(9)[None])
    return found


# Holds in When to use it: "Cohere2 leaves it out in the layers that see the whole text"
# Holds in When to use it: "EXAONE 4 does the same in its sizes with windows; in those without,"
cohere = Cohere2Config(**small, pad_token_id=0)
without = {"sliding_window": None, "layer_types": ["full_attention"] * 8}
windows = Exaone4Config(**small), Exaone4Config(**small, **without)
for module, config in zip((modeling_cohere2, modeling_exaone4), (cohere, windows[0]), strict=True):
    kinds = config.layer_types
    assert kinds.count("full_attention") == 2
    windowed = [k for k in range(8) if kinds[k] != "full_attention"]
    assert turned(module, config) == windowed
assert turned(modeling_exaone4, windows[1]) == [*range(8)]
