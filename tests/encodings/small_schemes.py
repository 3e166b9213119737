"""Small position schemes of every kind, and the vectors that they act on."""

import torch
from torch import Tensor, nn

from posembed import PositionScheme, scheme

D_MODEL, N_HEADS, D_HEAD = 16, 2, 8
N_POSITIONS = 64
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}

# A name of the registry, its options, and whether the model is causal.
KINDS = {
    "nopos": ("nopos", {}, True),
    "sinusoidal": ("sinusoidal", {}, True),
    "sinusoidal, tensor2tensor": ("sinusoidal", {"layout": "tensor2tensor"}, False),
    "learned": ("learned", {"std": 1.0}, True),
    "learnable_sinusoidal": ("learnable_sinusoidal", {}, True),
    "learnable_sinusoidal, concat": ("learnable_sinusoidal", {"layout": "concat"}, False),
    "shaw": ("shaw", {"std": 1.0}, True),
    "shaw, clipped soon": ("shaw", {"std": 1.0, "max_distance": 2}, False),
    "shaw, sinusoidal": ("shaw", {"vectors": "sinusoidal"}, False),
    "shaw, learnable_sinusoidal": ("shaw", {"vectors": "learnable_sinusoidal"}, False),
    "t5": ("t5", {}, True),
    "t5, bidirectional": ("t5", {"n_buckets": 8, "max_distance": 20}, False),
    "alibi": ("alibi", {}, True),
    "rope": ("rope", {}, True),
    "rope, interleaved": ("rope", {"layout": "interleaved"}, False),
    "rope, partial": ("rope", {"fraction": 0.5}, False),
    "rope, scaled": ("rope", {"scaling": YARN}, False),
    "xpos": ("xpos", {}, True),
    "xpos, half": ("xpos", {"layout": "half", "scale_base": 64.0}, True),
    "pope": ("pope", {}, True),
    "kerple": ("kerple", {}, True),
    "kerple, power": ("kerple", {"kernel": "power"}, False),
    "fire": ("fire", {"threshold": 4.0}, True),
    "cope": ("cope", {"n_positions": 4}, True),
    "forgetting": ("forgetting", {}, True),
    "scaled_logits": ("scaled_logits", {}, True),
}
ADDING = [kind for kind in KINDS if kind.startswith(("sinusoidal", "learn"))]
ROTATING = [kind for kind in KINDS if kind.startswith(("rope", "xpos", "pope"))]
BIASING = [kind for kind in KINDS if kind.startswith(("shaw", "t5", "alibi", "kerple", "fire", "cope", "forgetting"))]
SCALING = ["scaled_logits"]


def build(
    kind: str, *, seed: int = 0, d_model: int = D_MODEL, n_heads: int = N_HEADS, more: dict | None = None
) -> PositionScheme:
    """Build the scheme of a kind with random parameters, always the same ones."""
    name, options, causal = KINDS[kind]
    options = {name: options | (more or {})}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = scheme(name, d_model=d_model, n_heads=n_heads, n_positions=N_POSITIONS, causal=causal, options=options)
        if name == "forgetting":  # its gates begin all alike
            nn.init.normal_(made.gate.weight)
            nn.init.normal_(made.gate.bias)
        if name == "cope":  # it starts at zero, where every mistake gives the same zeros
            nn.init.normal_(made.weight)
        if name == "pope":  # it starts at zero too; numbers that are exact in every format, inside its bounds
            made.delta.data = -torch.arange(made.delta.numel()).reshape(made.delta.shape) / 4
        if kind == "t5":  # one number for each bucket, exact in every format
            made.weight.data = torch.stack([torch.arange(32.0), -torch.arange(32.0)], -1)[:, :n_heads].contiguous()
    return made


def vectors(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw normal numbers, the same ones for the same shape and seed."""
    generator = torch.Generator("cpu").manual_seed(seed)
    return torch.randn(*shape, generator=generator, device="cpu", dtype=torch.float64).to(dtype)


def tokens(
    seq: int = 7, *, batch: int = 2, d_model: int = D_MODEL, n_heads: int = N_HEADS, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings "batch seq d_model", and queries and keys "batch heads seq d_head"."""
    heads = (batch, n_heads, seq, d_model // n_heads)
    return vectors(batch, seq, d_model, dtype=dtype), vectors(*heads, seed=1, dtype=dtype), vectors(*heads, dtype=dtype)


def bias(
    made: PositionScheme, q: Tensor, k: Tensor, positions: Tensor, key_positions: Tensor, x: Tensor | None = None
) -> Tensor | None:
    """The scheme's bias; where the scheme wants a mask, each query sees the keys up to its own place from the end.

    Gates are read off the tokens of all keys, x, which are drawn where none are given.
    """
    n_queries, n_keys, extra = q.shape[-2], k.shape[-2], {}
    if made.reads_mask:
        seen = torch.ones(n_queries, n_keys, dtype=torch.bool, device=q.device).tril(n_keys - n_queries)
        extra["visible"] = seen
    if made.gated:
        x = vectors(k.shape[0], n_keys, D_MODEL, seed=2, dtype=k.dtype) if x is None else x
        extra["gates"] = made.gates(x)
    return made.bias(q, k, positions, key_positions, **extra)


def acts(made: PositionScheme, x: Tensor, q: Tensor, k: Tensor, positions: Tensor) -> dict[str, Tensor]:
    """What a scheme does in each of its places to embeddings, queries and keys that stand at the same positions."""
    done = {
        "add": made.add(x, positions),
        "rotate": made.rotate(q, positions),
        "rotate_keys": made.rotate_keys(k, positions),
        "bias": bias(made, q, k, positions, positions, x),
    }
    return {place: result for place, result in done.items() if result is not None}


def assert_same(actual: dict[str, Tensor], expected: dict[str, Tensor], **tolerances) -> None:
    """Compare what two schemes do: bit for bit, or within the tolerances of torch.testing.assert_close."""
    assert actual.keys() == expected.keys()
    for place, result in actual.items():
        say = lambda message, place=place: f"{place}: {message}"
        torch.testing.assert_close(result, expected[place], msg=say, **({"rtol": 0, "atol": 0} | tolerances))
