"""Each scheme beside independent implementations: what is computed on both sides, and how far they may be apart."""

from collections.abc import Callable
from dataclasses import dataclass

import peers
import torch
from peers import llama, t5
from torch import Tensor, nn
from transformers import LlamaConfig, T5Config

from posembed import encodings, scheme, sinusoidal
from posembed.models import MultiHeadAttention

# Units in the last place, of numbers between one half and one.
HALF_UNIT = 2.0**-25
UNIT = 2.0**-23
ROUNDED_ONCE = 2 * HALF_UNIT * (1 + 1e-6)
LENGTH, WIDTH, HEADS = 512, 64, 12
FLOAT32_ANGLES = "theirs computes angles in float32"
BOTH_ROUNDED = "each side rounds once"
SAME = "the same numbers"


@dataclass(frozen=True)
class Agreement:
    """One comparison: `run` returns ours and theirs, which may differ by `allowed`, for the reason `because`."""

    scheme: str
    peer: str
    what: str
    run: Callable[[], tuple[Tensor, Tensor]]
    allowed: float
    because: str

    def difference(self) -> float:
        ours, theirs = self.run()
        assert ours.shape == theirs.shape and ours.numel() > 0
        return float((ours.detach().double() - theirs.detach().double()).abs().max())


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def heads() -> Tensor:
    """Queries whose entries are at most one, so that differences are those of angles."""
    x = drawn(1, 2, LENGTH, WIDTH)
    return x / x.abs().max()


POSITIONS = torch.arange(LENGTH)
# An angle of up to 512 from a rounded frequency, rounded itself, half a unit of 512 each.
ANGLES = LENGTH * UNIT


def sinusoids(peer: str, layout: str, theirs: Callable, allowed: float, because: str) -> Agreement:
    run = lambda: (sinusoidal(LENGTH, WIDTH, layout=layout), theirs(LENGTH, WIDTH))
    return Agreement("sinusoidal", peer, f"table of {LENGTH} × {WIDTH}, {layout}", run, allowed, because)


def rope(peer: str, what: str, theirs: Callable[[Tensor], Tensor], allowed=ANGLES, because=FLOAT32_ANGLES, **options):
    run = lambda: (encodings.RoPE(WIDTH, **options).rotate(heads(), POSITIONS), theirs(heads()))
    return Agreement("rope", peer, what, run, allowed, because)


def grid_rope(peer: str, layout: str, theirs: Callable[[Tensor, Tensor], Tensor]) -> Agreement:
    grid = torch.cartesian_prod(torch.arange(16), torch.arange(32))
    one = lambda: encodings.RoPE(WIDTH, layout=layout, axes=(WIDTH // 2, WIDTH // 2))
    run = lambda: (one().rotate(heads(), grid), theirs(heads(), grid))
    return Agreement("rope", peer, f"two axes, {layout}", run, 32 * UNIT, FLOAT32_ANGLES)


def scaling(kind: str, ours: encodings.LinearScaling, **options) -> Agreement:
    """Relative to the frequencies, and the attention factor behind them."""

    def run() -> tuple[Tensor, Tensor]:
        theirs, factor = peers.rope_parameters_transformers(kind, 128, 500000.0, **options)
        frequencies = ours.frequencies(128, 500000.0)
        both = torch.cat([frequencies / theirs.double(), torch.tensor([ours.attention_factor / factor])])
        return both, torch.ones_like(both)

    what = f"scaling {'ntk' if kind == 'dynamic' else kind}, relative"
    return Agreement("rope", f"transformers {kind}", what, run, 8 * UNIT, "theirs computes frequencies in float32")


def t5_bias(peer: str, theirs: Callable, causal: bool) -> Agreement:
    def run() -> tuple[Tensor, Tensor]:
        one = encodings.T5(HEADS, causal=causal)
        one.weight.data = drawn(32, HEADS)
        q = torch.empty(1, HEADS, LENGTH, 1)
        return one.bias(q, q, POSITIONS, POSITIONS), theirs(one.weight.data, LENGTH, LENGTH, not causal)

    what = f"bias of {LENGTH} × {LENGTH}, {'causal' if causal else 'bidirectional'}"
    return Agreement("t5", peer, what, run, 0.0, SAME)


def slopes(peer: str, theirs: Callable[[int], Tensor], allowed: float) -> Agreement:
    counts = range(1, 65)
    run = lambda: (
        torch.cat([encodings.alibi_slopes(n) for n in counts]),
        torch.cat([theirs(n) for n in counts]),
    )
    return Agreement("alibi", peer, "slopes of 1 to 64 heads", run, allowed, "theirs takes powers in float32")


def bloom_attention() -> tuple[Tensor, Tensor]:
    """Bloom's bias is counted from the first key; softmax does not see the difference, which is one number a row."""
    future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    q = torch.empty(1, HEADS, LENGTH, 1)
    ours = encodings.ALiBi(HEADS).bias(q, q, POSITIONS, POSITIONS)
    theirs = peers.alibi_keys_bloom(HEADS, torch.ones(1, LENGTH))[0].expand(-1, LENGTH, -1)
    return tuple(bias.masked_fill(future, -torch.inf).softmax(-1) for bias in (ours, theirs))


def shaw_bias() -> tuple[Tensor, Tensor]:
    one, q = encodings.Shaw(WIDTH, max_distance=16), drawn(1, 2, LENGTH, WIDTH)
    one.weight.data = drawn(33, WIDTH)
    return one.bias(q, q, POSITIONS, POSITIONS), peers.shaw_wav2vec2bert(q, one.weight.data, LENGTH)


def shaw_rows() -> tuple[Tensor, Tensor]:
    one = encodings.Shaw(WIDTH, max_distance=16)
    offsets = POSITIONS[:64] - POSITIONS[:64, None]
    rows = one.relative_vectors(offsets.flatten()).unflatten(0, offsets.shape)
    return rows, peers.shaw_rows_speecht5(one.weight.data, 64)


def xpos_products(theirs: Callable) -> tuple[Tensor, Tensor]:
    q, k, one = heads(), heads().flip(-1), encodings.XPos(WIDTH)
    ours = one.rotate(q, POSITIONS) @ one.rotate_keys(k, POSITIONS).mT
    their_q, their_k = theirs(q, k)
    # Below the diagonal, where a causal model looks: ahead both grow without bound.
    return ours.tril(), (their_q @ their_k.mT).tril()


def pope_products() -> tuple[Tensor, Tensor]:
    """Each divided by the largest that its magnitudes allow."""
    one, q, k = encodings.PoPE(WIDTH, 2), heads(), heads().flip(-1)
    one.delta.data = -6 * torch.rand(2, WIDTH, generator=torch.Generator().manual_seed(0))
    their_q, their_k = peers.pope_x_transformers(q, k, POSITIONS, one.delta.data)
    most = nn.functional.softplus(q) @ nn.functional.softplus(k).mT
    ours = one.rotate(q, POSITIONS) @ one.rotate_keys(k, POSITIONS).mT
    return ours / most, (their_q @ their_k.mT) / most


def cope_bias() -> tuple[Tensor, Tensor]:
    one, q, k = encodings.CoPE(WIDTH, n_positions=16), drawn(1, 2, 64, WIDTH), drawn(1, 2, 64, WIDTH).flip(2)
    one.weight.data = drawn(16, WIDTH)
    visible = torch.ones(64, 64, dtype=torch.bool).tril()
    logits = (q @ k.mT / WIDTH**0.5).masked_fill(~visible, -torch.finfo(torch.float32).max)
    ours = one.bias(q, k, POSITIONS[:64], POSITIONS[:64], visible=visible)
    return ours.tril(), peers.cope_x_transformers(q, logits, one.weight.data).tril()


def forgetting_bias() -> tuple[Tensor, Tensor]:
    one, x, visible = encodings.Forgetting(WIDTH, 2), drawn(2, 64, WIDTH), torch.ones(64, 64, dtype=torch.bool).tril()
    one.gate.weight.data, one.gate.bias.data = drawn(2, WIDTH) / 8, drawn(2)
    q = torch.empty(2, 2, 64, 1)
    ours = one.bias(q, q, POSITIONS[:64], POSITIONS[:64], visible=visible, gates=one.gates(x))
    return ours.tril(), peers.forgetting_x_transformers(x, one.gate.weight.data, one.gate.bias.data).tril()


def torch_attention() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    ours, x = MultiHeadAttention(WIDTH, 4, causal=False), drawn(2, 64, WIDTH)
    return ours(x), peers.attention_torch(ours)(x, x, x)[0]


def llama_attention() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    ours = MultiHeadAttention(WIDTH, 4, "rope", causal=True, n_kv_heads=2, bias=False)
    config = LlamaConfig(hidden_size=WIDTH, num_attention_heads=4, num_key_value_heads=2, attn_implementation="sdpa")
    theirs, x = llama.LlamaAttention(config, 0), drawn(2, 64, WIDTH)
    copy_weights(ours, (theirs.q_proj, theirs.k_proj, theirs.v_proj, theirs.o_proj))
    angles = llama.LlamaRotaryEmbedding(config)(x, POSITIONS[None, :64])
    return ours(x), theirs(x, angles, None)[0]


def t5_attention() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    one = scheme("t5", n_heads=4, causal=False)
    ours = MultiHeadAttention(WIDTH, 4, one, causal=False, bias=False, logit_scale=1.0)
    config = T5Config(d_model=WIDTH, d_kv=WIDTH // 4, num_heads=4)
    theirs, x = t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0), drawn(2, 64, WIDTH)
    copy_weights(ours, (theirs.q, theirs.k, theirs.v, theirs.o))
    theirs.relative_attention_bias.weight.data = one.weight.data
    return ours(x), theirs.eval()(x)[0]


def copy_weights(ours: MultiHeadAttention, theirs: tuple[nn.Module, ...]) -> None:
    for mine, other in zip((ours.query, ours.key, ours.value, ours.output), theirs, strict=True):
        other.weight.data = mine.weight.data


def learned_rows() -> tuple[Tensor, Tensor]:
    theirs = nn.Embedding(LENGTH, WIDTH)
    x, at = drawn(1, LENGTH, WIDTH), POSITIONS.flip(0)
    return encodings.Learned(table=theirs.weight).add(x, at), x + theirs(at)


def learnable_at_the_start() -> tuple[Tensor, Tensor]:
    return encodings.LearnableSinusoidal(WIDTH).rows(POSITIONS), peers.sinusoids_distilbert(LENGTH, WIDTH)


# Of 64 products with sums of about one.
SUMS = 4 * UNIT
AGREEMENTS = [
    Agreement(
        "nopos", "torch MultiheadAttention", "outputs of a layer", torch_attention, SUMS, "sums in another order"
    ),
    sinusoids("transformers distilbert", "interleaved", peers.sinusoids_distilbert, ROUNDED_ONCE, BOTH_ROUNDED),
    sinusoids("transformers roformer", "concat", peers.sinusoids_roformer, ROUNDED_ONCE, BOTH_ROUNDED),
    sinusoids("transformers m2m_100", "tensor2tensor", peers.sinusoids_m2m100, ANGLES, FLOAT32_ANGLES),
    sinusoids("transformers whisper", "tensor2tensor", peers.sinusoids_whisper, ANGLES, FLOAT32_ANGLES),
    sinusoids(
        "x-transformers ScaledSinusoidalEmbedding", "concat", peers.sinusoids_x_transformers, ANGLES, FLOAT32_ANGLES
    ),
    Agreement("learned", "torch Embedding", "sums with the rows", learned_rows, 0.0, SAME),
    Agreement(
        "learnable_sinusoidal",
        "transformers distilbert",
        "rows before training",
        learnable_at_the_start,
        LENGTH * UNIT,
        "a trained frequency is a float32 number",
    ),
    Agreement("shaw", "transformers wav2vec2_bert", "bias", shaw_bias, 8 * SUMS, "sums in another order"),
    Agreement("shaw", "transformers speecht5", "vector of each pair", shaw_rows, 0.0, SAME),
    *(t5_bias("transformers t5", peers.t5_bias_transformers, causal) for causal in (True, False)),
    *(t5_bias("x-transformers RelativePositionBias", peers.t5_bias_x_transformers, causal) for causal in (True, False)),
    Agreement(
        "t5", "transformers t5", "outputs of a layer", t5_attention, 4 * SUMS, "sums of logits that are not scaled"
    ),
    slopes("transformers bloom", peers.alibi_slopes_bloom, UNIT),
    slopes("transformers mpt", peers.alibi_slopes_mpt, UNIT),
    slopes("x-transformers AlibiPositionalBias", peers.alibi_slopes_x_transformers, UNIT),
    Agreement(
        "alibi",
        "transformers bloom",
        "attention weights of zero logits",
        bloom_attention,
        LENGTH * UNIT,
        "theirs adds hundreds before softmax takes them off",
    ),
    rope("transformers llama", "half", lambda x: peers.rope_llama(x, POSITIONS)),
    rope(
        "transformers gpt_neox",
        "half, a quarter of the head",
        lambda x: peers.rope_gpt_neox(x, POSITIONS, fraction=0.25),
        fraction=0.25,
    ),
    rope("transformers gptj", "interleaved", lambda x: peers.rope_gptj(x, POSITIONS), layout="interleaved"),
    rope("transformers cohere", "interleaved", lambda x: peers.rope_cohere(x, POSITIONS), layout="interleaved"),
    rope(
        "transformers roformer",
        "interleaved",
        lambda x: peers.rope_roformer(x, LENGTH),
        allowed=4 * UNIT,
        because="theirs computes angles in float64 too",
        layout="interleaved",
    ),
    rope(
        "transformers glm",
        "interleaved, half of the head",
        lambda x: peers.rope_glm(x, POSITIONS, fraction=0.5),
        layout="interleaved",
        fraction=0.5,
    ),
    rope(
        "rotary-embedding-torch RotaryEmbedding",
        "interleaved",
        lambda x: peers.rope_rotary_embedding_torch(x, POSITIONS),
        layout="interleaved",
    ),
    rope(
        "x-transformers RotaryEmbedding",
        "interleaved",
        lambda x: peers.rope_x_transformers(x, POSITIONS),
        layout="interleaved",
    ),
    grid_rope("transformers qwen2_vl", "half", peers.rope_qwen2_vl_vision),
    grid_rope(
        "rotary-embedding-torch RotaryEmbedding",
        "interleaved",
        lambda x, grid: peers.rope_grid_rotary_embedding_torch(x, (16, 32)),
    ),
    Agreement(
        "rope", "transformers llama", "outputs of a layer, grouped queries", llama_attention, 64 * UNIT, FLOAT32_ANGLES
    ),
    scaling("linear", encodings.LinearScaling(4.0), factor=4.0),
    # What is dynamic there has our factor for a text four times as long as the training's.
    scaling("dynamic", encodings.NTKScaling(factor=13.0), factor=4.0, seq_len=8192),
    scaling("yarn", encodings.YaRNScaling(4.0, 2048), factor=4.0, original_max_position_embeddings=2048),
    scaling(
        "llama3",
        encodings.Llama3Scaling(8.0, 8192),
        factor=8.0,
        original_max_position_embeddings=8192,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
    ),
    Agreement(
        "xpos",
        "x-transformers RotaryEmbedding",
        "products of queries and keys",
        lambda: xpos_products(lambda q, k: peers.xpos_x_transformers(q, k, POSITIONS)),
        4 * ANGLES,
        FLOAT32_ANGLES,
    ),
    Agreement(
        "xpos",
        "rotary-embedding-torch RotaryEmbedding",
        "products of queries and keys",
        lambda: xpos_products(peers.xpos_rotary_embedding_torch),
        4 * ANGLES,
        FLOAT32_ANGLES,
    ),
    Agreement(
        "pope",
        "x-transformers PolarEmbedding",
        "products of queries and keys, as shares of the largest",
        pope_products,
        2 * ANGLES,
        FLOAT32_ANGLES,
    ),
    Agreement("cope", "x-transformers CoPE", "bias", cope_bias, 64 * SUMS, "sums of up to 64 gates in another order"),
    Agreement(
        "forgetting",
        "x-transformers DataDependentAlibi",
        "bias",
        forgetting_bias,
        64 * 64 * UNIT,
        "theirs is a difference of two sums from the first token on",
    ),
]
# No library here has these.
WITHOUT_PEER = ("kerple", "fire", "scaled_logits")
