"""Attention with every scheme, compiled and exported: in a process of its own, because shape checks are in the way."""

import torch
from models.reference import CASES, D_MODEL, N_HEADS, made

from posembed.models import MultiHeadAttention

# The other one beyond where attention goes in blocks when it is not compiled.
LENGTH, LONGER = 8, 300


def differences(name, causal):
    torch.manual_seed(0)
    layer = MultiHeadAttention(D_MODEL, N_HEADS, made(name, causal), causal=causal).double().eval()
    x, positions = torch.randn(2, LENGTH, D_MODEL, dtype=torch.float64), torch.arange(LENGTH)
    expected, gradient = run(layer, x, positions)
    program = torch.compile(layer, backend="aot_eager", fullgraph=True)
    compiled, compiled_gradient = run(program, x, positions)
    exported = torch.export.export(layer, (x, positions)).module()(x, positions)
    # Again at another length: of one program for any, as ONNX files hold it.
    longer, its_positions = torch.randn(2, LONGER, D_MODEL, dtype=torch.float64), torch.arange(LONGER)
    seq = torch.export.Dim("seq", min=2, max=LONGER)
    with torch.no_grad():
        of_any_length = torch.export.export(layer, (x, positions), dynamic_shapes=({1: seq}, {0: seq})).module()
        whole = layer(longer, its_positions)
        others = program(longer, its_positions), of_any_length(longer, its_positions)
    torch._dynamo.reset()
    return {
        "compiled": float((compiled - expected).abs().max()),
        "gradient": float((compiled_gradient - gradient).abs().max()),
        "exported": float((exported - expected).abs().max()),
        "at another length": max(float((other - whole).abs().max()) for other in others),
    }


def run(layer, x, positions):
    """Output, and the gradient of the sum of its squares for x."""
    x = x.clone().requires_grad_()
    out = layer(x, positions)
    return out.detach(), torch.autograd.grad(out.square().sum(), x)[0]


def cases():
    """Each case with the largest differences from running it as it is."""
    return {f"{name}, {'causal' if causal else 'bidirectional'}": differences(name, causal) for name, causal in CASES}
