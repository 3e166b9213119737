# %% A port
# Holds: "It runs, it trains, and on one whole text it is right."
torch.manual_seed(0)
port, text = Port(), torch.arange(1, 9)[None]
whole = port(text)[0]
rows = port.words(text) + port.wpe(torch.arange(8))
q, k, v = port.qkv(rows).chunk(3, -1)
own = scaled_dot_product_attention(q, k, v, is_causal=True)
assert torch.allclose(whole, port.out(rows + own), atol=1e-6)
whole.sum().backward()
assert port.wpe.weight.grad[:8].any(1).all()

# Holds: "It copies the model into `float64`, so that rounding and faults are"
import posembed

before = {name: each.clone() for name, each in port.state_dict().items()}
posembed.audit(port, vocab_size=50)
assert all(torch.equal(before[name], each) for name, each in port.state_dict().items())
assert {each.dtype for each in port.parameters()} == {torch.float32}
assert port.training

# %% A port > report
# Holds: "Two identities are broken, and the audit says which fault each looks"
assert [each.check for each in report.broken] == ["padding in front", "in pieces with a cache"]
assert all(each.kind for each in report.broken)
# Holds: "What is certain is the identity, and where two runs differ a script shows it"
assert all(each.script and "posembed" not in each.script for each in report.broken)

# %% Mend it, a fault at a time
# Holds: "With a cache both the positions and the mask are wrong."
# Holds: "The cache is still reported: a second fault hides behind the first."
# Holds in What to remember: "One fault can hide another; mend one, and audit again."


def in_pieces(model):
    torch.manual_seed(0)
    model, ids = model(), torch.arange(1, 9)[None]
    first, cache = model(ids[:, :5])
    second, cache = model(ids[:, 5:], cache=cache)
    return (torch.cat([first, second], 1) - model(ids)[0]).abs().max()


class OnlyAligned(Aligned):
    positions = Port.positions


assert in_pieces(Port) > 0.01 and in_pieces(GoesOn) > 0.01 and in_pieces(OnlyAligned) > 0.01
assert in_pieces(Aligned) < 1e-5
# Holds: "What is left is {term}`padding`: where a text stands behind padding,"
left = posembed.audit(Aligned(), vocab_size=50, causal=True).broken
assert [each.kind for each in left] == ["positions count padding"]
# Holds: "Read them as well."
# Holds in What to remember: "A check that does not apply has found nothing, and is no praise."
assert verdicts["shifted positions"] == verdicts["packed, each as alone"] == "does not apply"

# Holds: "Two more checks are made on request, because they need something or take"
asked = {"made on the meta device", "exported, at another length"}
assert not asked & {*verdicts}
# Holds: "With `make=`, a function that makes such a model, one is made on the meta"


class WithBuffer(Mended):
    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.tensor(3.0), persistent=False)

    def forward(self, ids, mask=None, cache=None):
        logits, cache = super().forward(ids, mask, cache)
        return logits * self.factor, cache


for made, verdict in ((Mended, "holds"), (WithBuffer, "broken")):
    given = posembed.audit(made(), vocab_size=50, causal=True, make=made)
    assert {check.check: check.verdict for check in given.checks}["made on the meta device"] == verdict
# Holds: "With `exported=True` the model is exported by `torch.export` and run at"
given = posembed.audit(Mended(), vocab_size=50, causal=True, exported=True)
assert {check.check: check.verdict for check in given.checks}["exported, at another length"] == "holds"

# %% Models of transformers
# Holds in What to remember: "Two ways to give one text must give the same logits: that needs no"
found = {check.check: check.verdict for check in report.checks}
assert found["padding in front, positions given"] == found["in pieces with a cache"] == "holds"
# Holds: "GPT-2 counts padding unless it is told the positions, and it can be"
assert found["padding in front"] == found["shifted positions"] == "does not apply"

# Holds: "Of {doc}`sixty reported bugs <../evidence/bugs>` the audit finds 38, most of them by what"
# Holds: "A constant that is wrong everywhere alike it cannot see"
import json

from studies.bugs.__main__ import PATH

asked = json.loads(PATH.read_text(encoding="utf-8"))["bugs"]
assert (len(asked), sum(bool(bug["broken"]) for bug in asked)) == (60, 38)
assert not next(bug for bug in asked if bug["report"] == "google/gemma.cpp#986")["broken"]

# %% Exercises
# Holds: "Nothing is reported: a causal model that is given no positions hides it:"
# Holds: "The verdict is *not decided*."
hidden = posembed.audit(Cut(), vocab_size=50, causal=True, n_positions=64)
assert hidden.passed
assert [each.check for each in hidden.checks if each.verdict == "not decided"] == ["past the last position"]
# Holds: "A model that takes positions gives itself away."
assert [each.kind for each in report.broken] == ["table cut: the last position again"]
# Holds: "Nothing: the mask of a causal model tells order too"
assert blind.passed
# Holds: "An audit says that positions are handled consistently, not that they"
assert blind.count("holds") >= 8
