"""Where a peer is wrong: each fault as a measurement of theirs, and the same measurement of ours."""

from collections.abc import Callable
from dataclasses import dataclass

import peers
import torch
from peers import bloom, llama, roformer, x_transformers
from rotary_embedding_torch import RotaryEmbedding
from torch import Tensor
from transformers import LlamaConfig, MptConfig, MptModel
from transformers.models.falcon import modeling_falcon as falcon

from posembed import encodings
from posembed.errors import PosembedError
from posembed.models import KeyValueCache, MultiHeadAttention

HALF = torch.bfloat16
LENGTH, WIDTH = 2048, 64


@dataclass(frozen=True)
class Fault:
    """What goes wrong where, measured on both sides; `theirs` and `ours` return a short text."""

    scheme: str
    peer: str
    what: str
    theirs: Callable[[], str]
    ours: Callable[[], str]


def equal_neighbours(rows: Tensor) -> str:
    return f"{int((rows[1:] == rows[:-1]).all(-1).sum())} of {len(rows) - 1} rows equal the row before"


def off_by(actual: Tensor, expected: Tensor) -> str:
    difference = float((actual.detach().double() - expected.detach().double()).abs().max())
    return (
        "no difference"
        if difference < 1e-5
        else f"off by {difference:.2f}"
        if difference < 10
        else f"off by {difference:.0f}"
    )


def unit_vectors() -> Tensor:
    """Heads whose every pair is (1, 0), so that a turned one shows its angles."""
    x = torch.zeros(1, 1, LENGTH, WIDTH)
    x[..., ::2] = 1
    return x


POSITIONS = torch.arange(LENGTH)


def our_rope_in_half(x: Tensor) -> Tensor:
    return encodings.RoPE(WIDTH, layout="interleaved").to(HALF).rotate(x.to(HALF), POSITIONS)[0, 0]


def their_cache_after_half() -> str:
    rotary, x = RotaryEmbedding(WIDTH), unit_vectors()
    rotary.rotate_queries_or_keys(x.to(HALF))
    return off_by(rotary.rotate_queries_or_keys(x), peers.rope_rotary_embedding_torch(x, POSITIONS))


def our_cache_after_half() -> str:
    rotary, x = encodings.RoPE(WIDTH, layout="interleaved"), unit_vectors()
    rotary.rotate(x.to(HALF), POSITIONS)
    return off_by(rotary.rotate(x, POSITIONS), encodings.RoPE(WIDTH, layout="interleaved").rotate(x, POSITIONS))


def x_transformers_rope_in_half() -> str:
    rotary = x_transformers.RotaryEmbedding(WIDTH).to(HALF)
    return equal_neighbours(x_transformers.apply_rotary_pos_emb(unit_vectors().to(HALF), *rotary(POSITIONS))[0, 0])


def x_transformers_sinusoids_in_half() -> str:
    module = x_transformers.ScaledSinusoidalEmbedding(WIDTH).to(HALF)
    return equal_neighbours(module(torch.ones(1, LENGTH, 1, dtype=HALF)))


def our_sinusoids_in_half() -> str:
    return equal_neighbours(encodings.Sinusoidal(WIDTH).to(HALF).add(torch.zeros(LENGTH, WIDTH, dtype=HALF), POSITIONS))


def changed_by(act: Callable[[], object], run: Callable[[], Tensor]) -> str:
    before = run()
    act()
    return off_by(run(), before)


def there_and_back(module: torch.nn.Module, run: Callable[[], Tensor]) -> str:
    return changed_by(lambda: module.to(HALF).float(), run)


def llama_there_and_back() -> str:
    module = llama.LlamaRotaryEmbedding(LlamaConfig(head_dim=WIDTH))
    return there_and_back(module, lambda: module(unit_vectors(), POSITIONS[None])[0])


def ours_there_and_back() -> str:
    module = encodings.RoPE(WIDTH)
    return there_and_back(module, lambda: module.rotate(unit_vectors(), POSITIONS))


def dynamic_after_a_longer_text() -> str:
    parameters = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
    module = llama.LlamaRotaryEmbedding(LlamaConfig(max_position_embeddings=8, rope_parameters=parameters))
    cosines = lambda length: module(torch.zeros(1, 1, length, 1), torch.arange(length)[None])[0][0, 5].clone()
    return changed_by(lambda: cosines(12), lambda: cosines(8))


def ours_after_a_longer_text() -> str:
    module, x = encodings.RoPE(WIDTH, scaling=encodings.NTKScaling(factor=4.0)), unit_vectors()
    turned = lambda length: module.rotate(x[:, :, :length], POSITIONS[:length])
    return changed_by(lambda: turned(12), lambda: turned(8))


def their_second_axis() -> str:
    columns = RotaryEmbedding(4).get_axial_freqs(8, 4, offsets=(100, 0))[0, :, 4]
    return off_by(columns, torch.arange(4))


def our_second_axis() -> str:
    """The angle of the second axis' first pair at columns 0 to 3 of row 100 is that column."""
    grid = torch.stack([torch.full((4,), 100), torch.arange(4)], -1)
    x = torch.tensor([0.0, 0.0, 1.0, 0.0]).expand(1, 1, 4, 4)
    turned = encodings.RoPE(4, layout="interleaved", axes=(2, 2)).rotate(x, grid)[0, 0]
    return off_by(torch.atan2(turned[:, 3], turned[:, 2]), torch.arange(4))


def xpos_with_a_cache(rotate_one: Callable, rotate_all: Callable) -> str:
    """The last query's products with all keys, asked alone and as part of the whole text, in units of the largest."""
    q, k = torch.randn(2, 1, 1, 600, WIDTH, generator=torch.Generator().manual_seed(0))
    (one, its_keys), (every, all_keys) = rotate_one(q[:, :, -1:], k), rotate_all(q, k)
    alone, whole = one @ its_keys.mT, (every @ all_keys.mT)[:, :, -1:]
    return off_by(alone / whole.abs().max(), whole / whole.abs().max())


def their_xpos_with_a_cache() -> str:
    module = RotaryEmbedding(WIDTH, use_xpos=True)
    return xpos_with_a_cache(module.rotate_queries_with_cached_keys, module.rotate_queries_and_keys)


def our_xpos_with_a_cache() -> str:
    module = encodings.XPos(WIDTH)
    rotate = lambda q, k: (module.rotate(q, torch.arange(600)[-q.shape[2] :]), module.rotate_keys(k, torch.arange(600)))
    return xpos_with_a_cache(rotate, rotate)


def raised(run: Callable[[], Tensor]) -> str:
    """What a user sees: the result is finite, is not, or an error's name."""
    try:
        return "finite" if bool(torch.isfinite(run()).all()) else "NaN, and no error"
    except PosembedError as error:
        return f"{type(error).__name__}, which says what to do"
    except Exception as error:
        return type(error).__name__


def far_xpos() -> Tensor:
    x, at = torch.ones(1, 1, 1, WIDTH), torch.tensor([73000])
    q, k = peers.xpos_x_transformers(x, x, at)
    return q @ k.mT


def our_far_xpos() -> Tensor:
    x, at, module = torch.ones(1, 1, 1, WIDTH), torch.tensor([73000]), encodings.XPos(WIDTH)
    return module.rotate(x, at) @ module.rotate_keys(x, at).mT


def cope_in_half() -> Tensor:
    logits = torch.full((1, 1, 600, 600), 9.0, dtype=HALF)
    return x_transformers.CoPE(8, 1, 260).to(HALF)(torch.randn(1, 1, 600, 8).to(HALF), logits)


def our_cope_in_half() -> Tensor:
    q, at, visible = torch.ones(1, 1, 600, 8, dtype=HALF), torch.arange(600), torch.ones(600, 600).tril().bool()
    return encodings.CoPE(8, n_positions=260).to(HALF).bias(q, q, at, at, visible=visible)


def their_alibi_there_and_back() -> str:
    module = x_transformers.AlibiPositionalBias(12)
    return there_and_back(module, lambda: module(16, 16))


def our_alibi_there_and_back() -> str:
    module = encodings.ALiBi(12)
    return there_and_back(module, lambda: module.bias_by_offset(torch.arange(-16, 16)))


def distinct(last: Tensor) -> str:
    return f"{len(last.unique())} values for the last {len(last)} keys"


def key_only_alibi(build: Callable) -> str:
    return distinct(build(torch.ones(1, 4096, dtype=torch.long), 8, HALF)[0, 0, -64:])


def our_alibi_in_half() -> str:
    return distinct(encodings.ALiBi(8).to(HALF).bias_by_offset(torch.arange(-4095, 1))[0, -64:])


def wav2vec2bert_with_a_cache() -> str:
    q, table = torch.randn(14, 8, generator=torch.Generator().manual_seed(0)).split([9, 5])
    q = q[None, None]
    whole = peers.shaw_wav2vec2bert(q, table, 9)[:, :, -1:]
    return off_by(peers.shaw_wav2vec2bert(q[:, :, -1:], table, 9) / whole.abs().max(), whole / whole.abs().max())


def our_shaw_with_a_cache() -> str:
    layer, cache = MultiHeadAttention(32, 4, "shaw", causal=True), KeyValueCache()
    x = torch.randn(1, 9, 32, generator=torch.Generator().manual_seed(0))
    steps = torch.cat([layer(x[:, [i]], cache=cache) for i in range(9)], 1)
    return off_by(steps, layer(x))


def mpt_past_its_length() -> Tensor:
    config = MptConfig(d_model=16, n_heads=2, n_layers=1, max_seq_len=8, vocab_size=9)
    return MptModel(config)(torch.ones(1, 12, dtype=torch.long)).last_hidden_state


def roformer_alone() -> str:
    one, other = (roformer.RoFormerSinusoidalPositionalEmbedding(4, 4).weight for _ in range(2))
    return "a table" if torch.equal(one, other) else "random numbers until a whole model loads it"


def ours_alone() -> str:
    one, other = (encodings.Sinusoidal(4).add(torch.zeros(1, 4, 4), torch.arange(4)) for _ in range(2))
    return "a table" if torch.equal(one, other) else "random numbers"


FAULTS = [
    Fault(
        "sinusoidal",
        "x-transformers ScaledSinusoidalEmbedding",
        "cast to bfloat16, 2,048 positions",
        x_transformers_sinusoids_in_half,
        our_sinusoids_in_half,
    ),
    Fault(
        "sinusoidal",
        "transformers roformer",
        "the module used by itself",
        roformer_alone,
        ours_alone,
    ),
    Fault(
        "rope",
        "rotary-embedding-torch RotaryEmbedding",
        "queries in bfloat16, 2,048 positions",
        lambda: equal_neighbours(RotaryEmbedding(WIDTH).rotate_queries_or_keys(unit_vectors().to(HALF))[0, 0]),
        lambda: equal_neighbours(our_rope_in_half(unit_vectors())),
    ),
    Fault(
        "rope",
        "rotary-embedding-torch RotaryEmbedding",
        "queries in float32 after others in bfloat16",
        their_cache_after_half,
        our_cache_after_half,
    ),
    Fault(
        "rope",
        "x-transformers RotaryEmbedding",
        "cast to bfloat16, 2,048 positions",
        x_transformers_rope_in_half,
        lambda: equal_neighbours(our_rope_in_half(unit_vectors())),
    ),
    Fault(
        "rope",
        "transformers llama",
        "cast to bfloat16 and back, 2,048 positions",
        llama_there_and_back,
        ours_there_and_back,
    ),
    Fault(
        "rope",
        "transformers dynamic",
        "a text of 8 after one of 12, position 5",
        dynamic_after_a_longer_text,
        ours_after_a_longer_text,
    ),
    Fault(
        "rope",
        "rotary-embedding-torch RotaryEmbedding",
        "columns 0 to 3 of a grid whose rows begin at 100",
        their_second_axis,
        our_second_axis,
    ),
    Fault(
        "xpos",
        "rotary-embedding-torch RotaryEmbedding",
        "the last of 600 queries alone, with cached keys",
        their_xpos_with_a_cache,
        our_xpos_with_a_cache,
    ),
    Fault(
        "xpos",
        "x-transformers RotaryEmbedding",
        "position 73,000",
        lambda: raised(far_xpos),
        lambda: raised(our_far_xpos),
    ),
    Fault(
        "alibi",
        "x-transformers AlibiPositionalBias",
        "12 heads, cast to bfloat16 and back",
        their_alibi_there_and_back,
        our_alibi_there_and_back,
    ),
    Fault(
        "alibi",
        "transformers bloom",
        "bfloat16, 4,096 keys",
        lambda: key_only_alibi(bloom.build_alibi_tensor),
        our_alibi_in_half,
    ),
    Fault(
        "alibi",
        "transformers falcon",
        "bfloat16, 4,096 keys",
        lambda: key_only_alibi(falcon.build_alibi_tensor),
        our_alibi_in_half,
    ),
    Fault(
        "alibi",
        "transformers mpt",
        "a text of 12 where max_seq_len is 8",
        lambda: raised(mpt_past_its_length),
        lambda: raised(lambda: encodings.ALiBi(2).bias_by_offset(torch.arange(-11, 1))),
    ),
    Fault(
        "shaw",
        "transformers wav2vec2_bert",
        "the last of 9 queries alone, with all keys",
        wav2vec2bert_with_a_cache,
        our_shaw_with_a_cache,
    ),
    Fault(
        "cope",
        "x-transformers CoPE",
        "bfloat16, 260 positions",
        lambda: raised(cope_in_half),
        lambda: raised(our_cope_in_half),
    ),
]
