# %% In code
# By definition in When to use it: "That paper has both: the sines were not found later"
from posembed import sinusoidal
from posembed.encodings import convert_layout

# Holds in Picture: "The left columns alternate quickly from row to row"
table = sinusoidal(128, 64, dtype=torch.float64)
swing = table.max(0).values - table.min(0).values
# Holds in Picture: "Neighbouring rows differ most in the first pair, which turns fastest;"
most = table.diff(dim=0).abs().amax(dim=0)
assert most[:2].min() > most[2:].max()
assert (swing[:24] > 1.7).all() and (swing[48:] < 0.15).all()
# Holds in When to use it: "`convert_layout` goes between the two of the same frequencies"
halves = convert_layout(sinusoidal(9, 8), source="interleaved", target="concat")
assert torch.equal(halves, sinusoidal(9, 8, layout="concat"))
# Holds in Tests that hold it: "offset 44 at width 768"
wide = sinusoidal(60, 768, dtype=torch.float64)
assert ((wide @ wide[0]).diff() > 0).nonzero()[0] + 1 == 44

# And of its costs.
from torch.overrides import TorchFunctionMode


class Watching(TorchFunctionMode):
    called = ()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.called = (*self.called, func.__name__)
        return func(*args, **(kwargs or {}))


# Holds in When to use it: "It costs one addition for each token, and here its row's sines anew"
for _ in range(2):
    with Watching() as watched:
        part.add(nothing, positions)
    counts = [watched.called.count(name) for name in ("sin", "cos", "add")]
    assert counts == [1, 1, 1]
