# %% Picture
start, end = (each.frequencies.detach().abs() for each in schemes.values())
assert end[8:].mean() > 5 * start[8:].mean()

# %% In code
first, learned = (2 * torch.pi / each.frequencies.detach().abs() for each in schemes.values())
# Holds in Learnable sinusoidal: "with frequencies that are trained: 384 numbers at width 768"
wide = scheme("learnable_sinusoidal", d_model=768)
assert sum(p.numel() for p in wide.parameters()) == 384
# Holds in Picture: "of a tiny model before and after 150 steps on texts of 32 characters"
assert (config.steps, config.length, config.n_layers) == (150, 32, 1)
# Holds in Picture: "One step of 0.01 is more than the whole of a frequency"
# Holds in When to use it: "Trap: one learning rate for frequencies from 1 down to 0.0001."
assert config.learning_rate == 0.01 > 2 * torch.pi / 1000
assert first[0] < 6.3 and 2 * torch.pi / first[-1] < 0.0002
# Holds in Picture: "At the start a straight line from 6 to more than 30,000."
assert 30_000 < first[-1] < 40_000
assert torch.allclose(first.log().diff(), first.log().diff().mean())

# And after training, and of its learning rate.
from posembed import load_study

# Holds in Picture: "After training the four fastest pairs are within a factor of 1.5 of"
# Holds in Picture: "The four fastest pairs stay about where they were; the others end"
moved = learned / first
assert moved[:4].max() < 1.5 and moved[:4].min() > 1 / 1.5 > moved[4]
assert learned[4:].min() > 20 and learned[4:].max() < 1000
assert not torch.equal(learned[4:].sort().values, learned[4:])

# Holds in Picture: "of a tiny model before and after 150 steps on texts of 32 characters"
chapter_3 = load_study("encodings").by_arm["learnable_sinusoidal"]
kept = {run.config.learning_rate for run in chapter_3}
assert kept == {config.learning_rate} == {0.01}
