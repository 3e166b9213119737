"""What the checks of the museum must refuse beside `broken`, and accept beside `mended`.

A wrong candidate is a plausible mistake, with a part of the message it must get. A right one is posembed's own, or
another library's, so that a check is seen to hold a property and not one text of code.
"""

import torch
import torch.nn.functional as F
from exhibits import exhibit
from torch import Tensor
from transformers import Gemma4TextConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.distilbert.modeling_distilbert import create_sinusoidal_embeddings
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

import posembed
from posembed.encodings import RoPE, Sinusoidal
from posembed.models import KeyValueCache, MultiHeadAttention, attend, positions_from_mask
from posembed.tables import resize_table

# Heads axis, layout mix-up: functions of "batch time heads d_head"


def rope_of_ours(layout="half"):
    return lambda x: RoPE(x.shape[-1], layout=layout).rotate(x, torch.arange(x.shape[1]), seq_dim=1)


def axes_not_exchanged(x: Tensor) -> Tensor:
    """Our own rotation, for which the tokens stand on the last axis but one."""
    return RoPE(x.shape[-1]).rotate(x, torch.arange(x.shape[2]))


def counted_over_heads(x: Tensor) -> Tensor:
    """The count goes on from head to head, as where both axes were made one."""
    positions = torch.arange(x.shape[1] * x.shape[2])
    return RoPE(x.shape[-1]).rotate(x.flatten(1, 2), positions).view(x.shape)


def batch_for_time(x: Tensor) -> Tensor:
    return x + exhibit("left_padding").sinusoids(torch.arange(len(x)), x.shape[-1])[:, None, None]


def transformers_llama(x: Tensor) -> Tensor:
    """Its tables of cosines and sines, for tokens on the axis of time."""
    angles = torch.arange(x.shape[1])[:, None] * frequencies(x.shape[-1])
    cosine, sine = (torch.cat([each, each], -1)[None] for each in (angles.cos(), angles.sin()))
    return apply_rotary_pos_emb(x, x, cosine, sine, unsqueeze_dim=2)[0]


def half_split_turn_interleaved_angles(x: Tensor) -> Tensor:
    angles = (torch.arange(x.shape[1])[:, None, None] * frequencies(x.shape[-1])).repeat_interleave(2, -1)
    first, second = x.chunk(2, -1)
    return x * angles.cos() + torch.cat([-second, first], -1) * angles.sin()


def added_not_turned(x: Tensor) -> Tensor:
    return x + exhibit("left_padding").sinusoids(torch.arange(x.shape[1]), x.shape[-1])[:, None]


# Wrong exponent, and odd widths


def table_of(exponents: Tensor, n_positions: int) -> Tensor:
    """A table whose column c turns by 10000^-exponents[c]: a sine where c is even, a cosine where it is odd."""
    angles = torch.arange(n_positions)[:, None] * 10000.0 ** -exponents.double()
    return torch.where(torch.arange(len(exponents)) % 2 == 0, angles.sin(), angles.cos()).float()


def paper_exponents(d_model: int, *, of: int | None = None) -> Tensor:
    """2i / of for columns 2i and 2i + 1; `of` is d_model in the paper."""
    return torch.arange(d_model) // 2 * 2 / (of or d_model)


def width_rounded_up(n_positions: int, d_model: int) -> Tensor:
    return table_of(paper_exponents(d_model, of=d_model + d_model % 2), n_positions)


def width_rounded_down(n_positions: int, d_model: int) -> Tensor:
    return table_of(paper_exponents(d_model, of=d_model - d_model % 2), n_positions)


def last_column_zero(n_positions: int, d_model: int) -> Tensor:
    table = table_of(paper_exponents(d_model), n_positions)
    return table if d_model % 2 == 0 else F.pad(table[:, :-1], (0, 1))


def column_for_pair(n_positions: int, d_model: int) -> Tensor:
    """Sines are right, cosines turn at frequencies in between."""
    return table_of(torch.arange(d_model) / d_model, n_positions)


def doubled_twice(n_positions: int, d_model: int) -> Tensor:
    return table_of(2 * paper_exponents(d_model), n_positions)


def other_base(n_positions: int, d_model: int) -> Tensor:
    """1000 in the place of 10000."""
    return table_of(0.75 * paper_exponents(d_model), n_positions)


def distilbert_table(n_positions: int, d_model: int) -> Tensor:
    table = torch.empty(n_positions, d_model)
    create_sinusoidal_embeddings(n_positions, d_model, table)
    return table


# Half-precision angles


def cos_sin(angles: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.cat([angles.cos(), angles.sin()], -1).to(dtype)


def frequencies(d_head: int) -> Tensor:
    return 10000.0 ** (-torch.arange(0, d_head, 2) / d_head)


def rounded_positions(positions: Tensor, d_head: int, dtype: torch.dtype) -> Tensor:
    return cos_sin(positions.to(dtype).float()[:, None] * frequencies(d_head), dtype)


def rounded_frequencies(positions: Tensor, d_head: int, dtype: torch.dtype) -> Tensor:
    return cos_sin(positions[:, None] * frequencies(d_head).to(dtype).float(), dtype)


def float16_forgotten(positions: Tensor, d_head: int, dtype: torch.dtype) -> Tensor:
    """A mend for bfloat16 alone."""
    museum = exhibit("half_precision_angles")
    return (museum.mended if dtype == torch.bfloat16 else museum.broken)(positions, d_head, dtype)


def our_rope_rows(positions: Tensor, d_head: int, dtype: torch.dtype) -> Tensor:
    """Pairs that are (1, 0) before they turn are (cos, sin) after it."""
    x = (torch.arange(d_head) < d_head // 2).to(dtype).expand(len(positions), d_head)
    return RoPE(d_head).to(dtype).rotate(x, positions)


# Cache offset


def cached(start, *, lower_right: bool = True):
    """The exhibit's attention with another rule for the first position of new tokens, or with its mask."""

    def candidate(x: Tensor, cache: list) -> Tensor:
        first = start(x, cache)
        cache.append(x + exhibit("cache_offset").sinusoids(first + torch.arange(len(x)), x.shape[1]))
        return (our_attention if lower_right else top_left)(cache[-1], torch.cat(cache))

    return candidate


def our_attention(q: Tensor, k: Tensor) -> Tensor:
    return attend(q[None, None], k[None, None], k[None, None], causal=True)[0, 0]


def top_left(q: Tensor, k: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, k, is_causal=True)


def half_a_mask(q: Tensor, k: Tensor) -> Tensor:
    """The common half mend: one new token sees all, several are still aligned to the first."""
    return F.scaled_dot_product_attention(q, k, k, is_causal=len(q) > 1)


def tokens_in(cache: list) -> int:
    return sum(len(part) for part in cache)


def without_positions(x: Tensor, cache: list) -> Tensor:
    cache.append(x)
    return our_attention(x, torch.cat(cache))


def half_mended_mask(x: Tensor, cache: list) -> Tensor:
    cache.append(x + exhibit("cache_offset").sinusoids(tokens_in(cache) + torch.arange(len(x)), x.shape[1]))
    return half_a_mask(cache[-1], torch.cat(cache))


def our_cache(name: str, n_kv_heads: int = 4):
    torch.manual_seed(0)
    attention = MultiHeadAttention(16, 4, name, causal=True, n_kv_heads=n_kv_heads).eval()

    def candidate(x: Tensor, cache: list) -> Tensor:
        if not cache:
            cache.append(KeyValueCache())
        return attention(x[None], cache=cache[0])[0].detach()

    return candidate


# Left padding


def padded(positions, *, masked: bool = True):
    """The exhibit's attention with another rule for positions, with or without its mask."""

    def candidate(x: Tensor, mask: Tensor) -> Tensor:
        x = x + exhibit("left_padding").sinusoids(positions(mask), x.shape[2])
        logits = x @ x.mT / x.shape[2] ** 0.5
        return (logits.masked_fill(mask[:, None] == 0, -torch.inf) if masked else logits).softmax(-1) @ x

    return candidate


def padding_without_positions(x: Tensor, mask: Tensor) -> Tensor:
    logits = (x @ x.mT).masked_fill(mask[:, None] == 0, -torch.inf)
    return logits.softmax(-1) @ x


def from_the_end(mask: Tensor) -> Tensor:
    """Right with padding in front, wrong with padding behind."""
    return torch.arange(mask.shape[1]) - mask.shape[1]


def our_padding(*, causal: bool):
    torch.manual_seed(0)
    attention = MultiHeadAttention(16, 4, causal=causal).eval()

    def candidate(x: Tensor, mask: Tensor) -> Tensor:
        x = Sinusoidal(16).add(x, positions_from_mask(mask))
        return attention(x, attention_mask=mask.bool()).detach()

    return candidate


def our_rope_with_counted_padding(x: Tensor, mask: Tensor) -> Tensor:
    """A scheme of offsets alone: positions that count the padding do no harm, as the exhibit says."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(16, 4, "rope", causal=True).eval()
    return attention(x, attention_mask=mask.bool()).detach()


# Packing


def packed(positions, seen):
    """The exhibit's attention with another rule for positions or for what is seen."""

    def candidate(x: Tensor, text: Tensor) -> Tensor:
        x = x + exhibit("packing_leak").sinusoids(positions(text), x.shape[1])
        return exhibit("packing_leak").attend(x, seen(text))

    return candidate


def one_count(text: Tensor) -> Tensor:
    return torch.arange(len(text))


def own_count(text: Tensor) -> Tensor:
    return torch.cat([torch.arange(n) for n in text.bincount()])


def own_keys(text: Tensor) -> Tensor:
    return (text[:, None] == text).tril()


def first_keys_left_out(text: Tensor) -> Tensor:
    """The common half mend: what follows the first text does not see that one, and still the ones between."""
    return ((text[:, None] == text) | (text > 0)).tril()


def no_positions(text: Tensor) -> Tensor:
    return torch.zeros_like(text)


def our_pack(scheme: str):
    """With RoPE positions may go on counting, as the chapter says."""
    torch.manual_seed(0)
    attention = MultiHeadAttention(16, 4, scheme, causal=True).eval()

    def candidate(x: Tensor, text: Tensor) -> Tensor:
        positions = one_count(text) if scheme == "rope" else own_count(text)
        x = x if scheme == "rope" else x + Sinusoidal(16).add(torch.zeros_like(x), positions)
        return attention(x[None], attention_mask=(text[:, None] == text)[None])[0].detach()

    return candidate


# Partial for proportional


def our_rope(pairs: str):
    """Our rotation of a part of a head; pairs as `RoPE` has them."""

    def candidate(x: Tensor, part: float) -> Tensor:
        rope = RoPE(x.shape[1], fraction=part, pairs=pairs)
        return rope.rotate(x, torch.arange(len(x)))

    return candidate


def the_slowest(x: Tensor, part: float) -> Tensor:
    """The other end of the head turns."""
    angles = torch.arange(len(x))[:, None] * frequencies(x.shape[1])
    angles[:, : len(angles[0]) - int(part * x.shape[1]) // 2] = 0
    return exhibit("partial_for_proportional").turn(x, angles)


def whole_head(x: Tensor, part: float) -> Tensor:
    return exhibit("partial_for_proportional").mended(x, 1.0)


def proportional_of_transformers(x: Tensor, part: float) -> Tensor:
    config = Gemma4TextConfig(head_dim=x.shape[1], global_head_dim=x.shape[1])
    entry = {"rope_type": "proportional", "rope_theta": 10000.0, "partial_rotary_factor": part}
    config.rope_parameters = {"full_attention": entry, "sliding_attention": entry}
    speeds, _ = ROPE_INIT_FUNCTIONS["proportional"](config, device="cpu", layer_type="full_attention")
    return exhibit("partial_for_proportional").turn(x, torch.arange(len(x))[:, None] * speeds)


# Kinds of layers


def entry_of(choose):
    """The exhibit's speeds by another choice of the entry."""

    def candidate(config: dict, layer: int, d_head: int) -> Tensor:
        rope = config["rope_parameters"][choose(config["layer_types"], layer)]
        return exhibit("layer_kinds").frequencies(d_head, rope["rope_theta"]) / rope.get("factor", 1.0)

    return candidate


def no_factor(config: dict, layer: int, d_head: int) -> Tensor:
    rope = config["rope_parameters"][config["layer_types"][layer]]
    return exhibit("layer_kinds").frequencies(d_head, rope["rope_theta"])


def factor_everywhere(config: dict, layer: int, d_head: int) -> Tensor:
    return no_factor(config, layer, d_head) / 8


def our_layer(config: dict, layer: int, d_head: int) -> Tensor:
    named = {"model_type": "gemma3_text", "head_dim": d_head, "num_hidden_layers": len(config["layer_types"])}
    near = {"rope_type": "default"} | config["rope_parameters"]["sliding_attention"]
    entries = config["rope_parameters"] | {"sliding_attention": near}
    return RoPE.from_config(named | config | {"rope_parameters": entries}, layer).frequencies


# Other grid


def by_a_factor(table: Tensor, old: tuple, new: tuple) -> Tensor:
    """A factor that is just too small, as rounding makes it."""
    image, factor = table.T.unflatten(1, old)[None], [n / o - 1e-6 for n, o in zip(new, old, strict=True)]
    return F.interpolate(image, scale_factor=factor, mode="bilinear")[0].flatten(1).T


def axes_exchanged(table: Tensor, old: tuple, new: tuple) -> Tensor:
    return exhibit("other_grid").mended(table, old[::-1], new)


def in_a_line(table: Tensor, old: tuple, new: tuple) -> Tensor:
    """As a table of texts is stretched."""
    return F.interpolate(table.T[None], new[0] * new[1], mode="linear")[0].T


def cut_out(table: Tensor, old: tuple, new: tuple) -> Tensor:
    """A corner of the grid, with its last row and column again and again."""
    down, across = (torch.arange(n).clamp(max=o - 1) for n, o in zip(new, old, strict=True))
    return table.unflatten(0, old)[down][:, across].flatten(0, 1)


def our_resize(how: str):
    return lambda table, old, new: resize_table(table, new[0] * new[1], how=how, old_grid=old, new_grid=new)


WRONG = {
    "heads_axis": [
        (lambda x: x, "no product depends on positions"),
        (axes_not_exchanged, "no product depends on positions"),
        (batch_for_time, "no product depends on positions"),
        (counted_over_heads, "two heads turn by different angles"),
        (added_not_turned, "when query and key move together"),
    ],
    "layout_mix_up": [
        (half_split_turn_interleaved_angles, "when query and key move together"),
        (added_not_turned, "when query and key move together"),
        (lambda x: x, "no product depends on positions"),
    ],
    "wrong_exponent": [
        (column_for_pair, "at width 32 the squares of columns 2i and 2i + 1 do not add up to 1"),
        (doubled_twice, "has exponent 0.125, not 2/32, and the last 1.875, not 0.938"),
        (other_base, "the last 0.703, not 0.938"),
        (width_rounded_up, "at width 31 pair 1 has exponent 0.062, not 2/31"),
        (width_rounded_down, "at width 31 pair 1 has exponent 0.067, not 2/31"),
        (last_column_zero, "at width 31 pair 1 has exponent 0.065, not 2/31, and the last inf"),
    ],
    "half_precision_angles": [
        (rounded_positions, "rows 256 and 257 are identical"),
        (rounded_frequencies, "are frequencies or angles rounded?"),
        # At every call: its own rows in float64 are wrong as well.
        (lambda p, d, dtype: rounded_frequencies(p, d, torch.float16).to(dtype), "are frequencies or angles rounded?"),
        (float16_forgotten, "rows 2048 and 2049 are identical: are positions or angles in torch.float16?"),
    ],
    "left_padding": [
        (padded(lambda mask: mask.cumsum(1) - 1, masked=False), "padding changes the outputs"),
        (padded(from_the_end), "padding changes the outputs"),
        (padding_without_positions, "a reversed text changes nothing"),
    ],
    "cache_offset": [
        (cached(lambda x, cache: len(cache)), "when a text comes in parts"),
        (cached(lambda x, cache: tokens_in(cache) + bool(cache)), "when a text comes in parts"),
        (cached(lambda x, cache: max(tokens_in(cache) - 1, 0)), "when a text comes in parts"),
        (cached(lambda x, cache: 0), "when a text comes in parts"),
        (cached(lambda x, cache: tokens_in(cache), lower_right=False), "when a text comes in parts"),
        (half_mended_mask, "when a text comes in parts"),
        (without_positions, "swapped tokens change nothing"),
    ],
    "packing_leak": [
        (packed(one_count, own_keys), "a text in a pack is off by"),
        (packed(own_count, first_keys_left_out), "a text in a pack is off by"),
        (packed(no_positions, own_keys), "swapped tokens change nothing"),
    ],
    "partial_for_proportional": [
        (our_rope("first"), "a quarter of a head is off by"),
        (the_slowest, "a quarter of a head is off by"),
        (whole_head, "a quarter of a head is off by"),
        (lambda x, part: x, "nothing turns"),
    ],
    "layer_kinds": [
        (entry_of(lambda kinds, layer: "sliding_attention"), "layer 5, full_attention"),
        (entry_of(lambda kinds, layer: kinds[layer - 1]), "layer 0, sliding_attention"),
        (no_factor, "layer 5, full_attention"),
        (factor_everywhere, "layer 0, sliding_attention"),
    ],
    "other_grid": [
        (by_a_factor, "rows: give it"),
        (axes_exchanged, "a row of patches is no row"),
        (in_a_line, "a row of patches is no row"),
        (cut_out, "ends are lost"),
    ],
}

RIGHT = {
    "heads_axis": [rope_of_ours(), rope_of_ours("interleaved"), transformers_llama],
    "layout_mix_up": [rope_of_ours(), rope_of_ours("interleaved"), transformers_llama],
    "wrong_exponent": [posembed.sinusoidal, distilbert_table],
    "half_precision_angles": [our_rope_rows],
    "left_padding": [our_padding(causal=False), our_padding(causal=True), our_rope_with_counted_padding],
    "cache_offset": [our_cache("rope"), our_cache("alibi"), our_cache("t5"), our_cache("rope", n_kv_heads=2)],
    "packing_leak": [our_pack("nopos"), our_pack("rope")],
    "partial_for_proportional": [our_rope("proportional"), proportional_of_transformers],
    "layer_kinds": [our_layer],
    "other_grid": [our_resize("linear"), our_resize("bicubic")],
}
