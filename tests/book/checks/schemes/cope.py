# %% In code
# Holds in When to use it: "Joined with RoPE it reads turned ones: its vectors then meet a query"
for name, moves in (("rope", False), ("cope", False), ("rope+cope", True)):
    torch.manual_seed(0)
    alone = MultiHeadAttention(32, 4, name, causal=True).eval()
    for each in alone.parameters():
        torch.nn.init.normal_(each, std=0.3)
    change = (alone(x, here + 50) - alone(x, here)).abs().max()
    assert (change > 0.01) == moves and (moves or change < 1e-4)
# What the picture's description says.
# Holds in Picture: "For the last query, won, its own sentence is at position 0"
gates = torch.tensor([0.0, 0, 1, 0, 0, 1, 0, 0])  # full stops
keys = (200 * gates - 100)[:, None].expand(8, 8)[None, None]
counted = part.counted(torch.ones(1, 1, 8, 8), keys, torch.ones(8, 8).tril() > 0)
# Holds in Picture: "Read the last row: the tokens of one sentence share one number, so"
assert counted[0, 0, 7].round().tolist() == [2, 2, 2, 1, 1, 1, 0, 0]

# Past the trained length.
from posembed import load_study

past = load_study("length").contrasts["mean"]
# Holds in When to use it: "Past the trained length ours lost 0.6 nats at four times of it: more keys count further"
assert round(past["cope: plain minus the last 64"], 1) == 0.6
assert past["cope: stack minus the last 64"] > 0.9 * past["cope: plain minus the last 64"]
