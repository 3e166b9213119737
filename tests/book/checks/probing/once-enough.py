# %% First, an exhibit
# Holds: "This slip stops at once."
# Holds: "`super()` alone calls no constructor"
# By definition in Is once enough?: "An answer that is often given says that once is enough"
try:
    Slipped(4, 8)
    raise AssertionError
except AttributeError as error:
    assert "__init__()" in str(error)
# Holds: "`x += ...` changes the caller's tensor"
# Holds: "who calls twice adds twice"
with torch.no_grad():
    layer, words = InPlace(4, 8), torch.zeros(4, 8)
    assert torch.equal(layer(words), layer.positions)
    assert torch.equal(layer(words), 2 * layer.positions)
    layer, words = Mended(4, 8), torch.zeros(4, 8)
    assert torch.equal(layer(words), layer.positions) and not words.any()
# Holds: "The shape is right, and so are the values, at the first call."
# Holds: "Right, as any test that makes the module would."

# %% What is there
# The model with a table.
table = profiles["learned"]
share = [each.shares.position for each in table]
total = [each.shares.total for each in table]
# By definition: "That is the argument for once, and it is an argument about a"
# By definition: "State 0 enters the first layer, state 4 is the last, after"
# Holds in What to remember: "A share falls when the rest grows. In our causal model position has"
# Holds: "The **share** of position falls from 0.32 to 0.02 in the first layer."
assert abs(share[0] - 0.315) < 0.01 and abs(share[1] - 0.015) < 0.006
# Holds: "the variance grows from 39 to 797 meanwhile, and position has about"
square = [each.shares.position_square for each in table]
assert abs(total[0] - 39) < 1 and abs(total[1] - 797) < 3
assert all(abs(each - 12) < 1 for each in square[:2])
# Holds: "(At state 3 it has 20.)"
assert abs(square[3] - 20) < 1.5  # Holds: "from always to 0.27, where a constant guess has 0.02"
read_off = [each.position.accuracy for each in table]
assert read_off[0] > 0.999 and abs(read_off[1] - 0.27) < 0.02

# The same of what is left, of its twin, and of the sum.
# Holds: "from 0.16, what a constant guess has, to 0.93"
before = [each.before.accuracy for each in table]
assert abs(before[0] - 0.16) < 0.02 and abs(before[1] - 0.93) < 0.02
# Holds: "Of the table's rows the regression finds 0.45 times after one layer"
assert abs(table[1].left.coefficient - 0.45) < 0.03
# Holds: "by state 2 position has 0.29 of the variance, more than the table's"
own = [each.shares.position for each in profiles["nopos"]]
assert abs(own[0]) < 0.01 and abs(own[2] - 0.29) < 0.03
assert own[2] > max(share[1:])
# Holds: "With a table, position goes as the token before comes."
# Holds: "With a table, position falls from 1 to 0.27 after one layer and to"
assert read_off == sorted(read_off, reverse=True) and abs(read_off[4] - 0.12) < 0.02
assert before[1:] == sorted(before[1:], reverse=True) and abs(before[4] - 0.77) < 0.02

# The same of the figure, without positions.
# Holds: "Without positions neither is there at first."
# Holds: "NoPos: position rises from 0.02 to 0.15 at state 2; the token before"
at_place = [each.position.accuracy for each in profiles["nopos"]]
at_before = [each.before.accuracy for each in profiles["nopos"]]
bare = profiles["nopos"][0]
assert at_place[0] < bare.position.chance + 0.01
assert at_before[0] < bare.before.chance + 0.01
assert at_place[:3] == sorted(at_place[:3]) and max(at_place) == at_place[2]
assert abs(at_place[0] - 0.02) < 0.01 and abs(at_place[2] - 0.15) < 0.02
assert max(at_before[:3]) < 0.3 and at_before[3] > 2 * at_before[2]
assert all(abs(each - 0.71) < 0.02 for each in at_before[3:])

# The same of the sum.
# Holds in What to remember: "In a pre-norm model a position that is added once stays a term"
# Holds: "So $p_t$ is still a term of every state, however deep"
# By definition: "In a post-norm model, such as BERT, a norm follows each"
inner, updates = models["learned"].transformer, []
hooks = [
    part.register_forward_hook(lambda module, given, out: updates.append(out))
    for layer in inner.layers
    for part in (layer.attention, layer.feed_forward)
]
with torch.no_grad():
    stream = inner.embed(tested[:1], torch.arange(64))
    reached = inner.hidden_states(tested[:1])
for hook in hooks:
    hook.remove()
for state in range(4):
    assert torch.allclose(stream, reached[state], atol=1e-3)
    stream = stream + updates[2 * state] + updates[2 * state + 1]
assert torch.allclose(inner.norm(stream), reached[4], atol=1e-3)

# %% What is used
lost = {name: [each.ablations[0] for each in layers] for name, layers in profiles.items()}
# By definition: "What is counted is the rise of the loss, in nats."
# Holds: "With a table, position is used **in the first layer and hardly after"
# Holds: "taken out of what enters, it costs 1.9 nats, and 0.05 or less"
assert abs(lost["learned"][0].cost - 1.88) < 0.06
for out in lost["learned"][1:]:
    assert out.cost < 0.055 and out.cost - out.control < 0.035
# Holds: "position is made in the first layers and used up to the last, less"
# Holds: "One single direction, taken out of state 2, costs 1.4 nats."
costs = [out.cost - out.control for out in lost["nopos"]]
assert min(costs[1:4]) > 0.3 and max(abs(costs[0]), abs(costs[4])) < 0.05
assert lost["nopos"][2].n_directions == 1
assert abs(lost["nopos"][2].cost - 1.41) < 0.06


# The same of the tokens before.
def before_by(n, state):
    fit, test = states_of_table
    ids = fitted[:, :-n], tested[:, :-n]
    return read(fit[state][:, n:], ids[0], test[state][:, n:], ids[1]).accuracy


with torch.no_grad():
    states_of_table = [models["learned"].transformer.hidden_states(x) for x in (fitted, tested)]
# Holds: "What the first layer has made of them is, among other things, *who"
far = [before_by(n, 1) for n in (1, 2, 3)]
assert torch.allclose(torch.tensor(far), torch.tensor([0.93, 0.9, 0.54]), atol=0.02)


# The same of what the main directions leave, and of position taken off whole.
def place_read(state, n):  # without n directions, or without all
    fit, test = (each[state].double() for each in states_of_table)
    rows = fit.mean(0) - fit.mean((0, 1))
    main = torch.linalg.svd(rows, full_matrices=False).Vh[:n]
    off = (lambda x: rows) if n is None else (lambda x: x @ main.mT @ main)
    at = torch.arange(64)
    fit, test = fit - off(fit), test - off(test)
    given = fit, at.expand(len(fit), -1), test, at.expand(len(test), -1)
    return rows, read(*given).accuracy


# Holds: "Main directions are not all of them: of the model with a table, a"
of_state = [each.ablations[0].n_directions for each in table]
assert place_read(0, of_state[0])[1] > 0.99
assert abs(place_read(3, of_state[3])[1] - 0.13) < 0.02

# The same of position taken off whole.
from posembed.layers import next_token_loss

# Holds: "Taken off state 3 whole, so that a probe reads it no more often than"
rows, accuracy = place_read(3, None)
assert accuracy < 0.025


def without_rows(states):
    return (states.double() - rows[: states.shape[1]]).to(states)


with torch.no_grad():
    as_it_is = next_token_loss(models["learned"], tested).mean()
    with changed(layers_of(models["learned"].transformer), 3, without_rows):
        off = next_token_loss(models["learned"], tested).mean() - as_it_is
assert abs(off - 0.01) < 0.008

# The same of the coordinate.
# By definition: "To **project out** takes away the main directions in which"
# Holds: "The coordinate rises from the first position to the last."
assert (along.diff() > 0).all()
# Holds: "This is more than [chapter 12](chapter-how) could show"
# Holds: "read from its states in 0.71 of the cases, the token before is read"
assert abs(usual - 0.71) < 0.02 and abs(without - 0.29) < 0.03
# Holds: "Given to each state what its position has on average, and nothing of"
assert abs(only_position - 0.8) < 0.03
# Holds: "(The loss still rises by 0.26 nats then: for the guesses, what the"
with torch.no_grad():
    before_change = next_token_loss(models["nopos"], tested).mean()
    with along_is(((mean_states - middle) @ direction)[:63]):
        rise = next_token_loss(models["nopos"], tested).mean() - before_change
assert abs(rise - 0.26) < 0.02

# The same of the exchange.
# By definition: "To **exchange** gives each text, in the same directions, what"
exchanged = {name: [each.ablations[3] for each in layers] for name, layers in profiles.items()}
# Holds: "It is position that is missed, and not what else these ten directions"
first = exchanged["learned"][0]
assert first.n_directions == 10 and first.interval.high < 0.06
assert abs(first.control - 0.51) < 0.05
# Holds: "Exchanged between texts it costs 0.5, as at the same position it does"
second = exchanged["nopos"][2]
assert abs(second.cost - 0.53) < 0.05 and second.control < 0.2
with torch.no_grad():
    spread = nopos.hidden_states(tested)[2].double() @ direction
assert spread.std(0)[1:].min() > 0.3

# The same of the questions.
# Holds in What to remember: "Our causal models with a table and four layers use it in the first"
# Holds in What is there: "In share it has."
# Holds in What is there: "From state 0 to state 1 the share of position falls to a twentieth."
assert 15 < share[0] / share[1] < 25
assert 16 < read_off[1] / table[1].position.chance < 18
# Holds: "In the model with a table, position can be read from state 3 ten"
third = lost["learned"][3]
assert 9 < read_off[3] / table[3].position.chance < 11.5
assert abs(third.cost - 0.046) < 0.01 and abs(third.control - 0.02) < 0.015
# By definition in What is there: "Right. A share falls when the rest grows."
# Holds: "Right. And little of it is left of the input's rows: of the 20"
rows_square = table[3].left.coefficient ** 2 * square[0]
assert abs(rows_square - 2) < 0.5 and abs(square[3] - 20) < 1.5

# %% Once or again
# The plan, and what adding again gave.
import numpy as np

from posembed.stored import load_plan
from studies.training.runs import make_model

table_of_all = study.contrasts
plans = {arm.name: arm for arm in load_plan("depth").arms}


def of(name, digits=2):
    return table_of_all.loc[name, ["mean", "low", "high"]].astype(float).round(digits).tolist()


# Holds: "We trained causal models of characters with four layers and with"
for n, thousands in ((4, 153), (12, 152)):
    of_layers = make_model(study.by_arm[f"{n} layers, none"][0].config, corpus)
    size = sum(p.numel() for p in of_layers.transformer.layers.parameters())
    assert round(size / 1000) == thousands
# Holds: "The same texts, 1500 steps, five seeds; the rate was chosen for each"
for name in (f"{n} layers, {arm}" for n in (4, 12) for arm in ARMS):
    assert {run.steps for run in plans[name].runs} == {1500}
    seeds = [{run.seed for run in its} for its in (plans[name].runs, plans[name].trials)]
    assert [len(each) for each in seeds] == [5, 2] and not seeds[0] & seeds[1]
# Holds: "*Holm* is its p, corrected for all 67 of this chapter"
assert len(table_of_all) == 67
# Holds: "With four layers the table at the input is worth 0.087 nats."
assert of("4 layers: input minus none", 3)[0] == -0.087
# Holds: "The same rows at every layer add 0.007 (-0.004 to 0.018) to the loss"
again, anew = (f"4 layers: {arm} minus input" for arm in ARMS[2:4])
assert of(again, 3) == [0.007, -0.004, 0.018]
assert of(anew, 3) == [0.002, -0.011, 0.014]

# The same of the rates.
# Holds: "The same texts, 1500 steps, five seeds; the rate was chosen for each"
for name in (f"{n} layers, {arm}" for n in (4, 12) for arm in ARMS):
    tried = sorted({config.learning_rate for config in plans[name].trials})
    rate = study.by_arm[name][0].config.learning_rate
    assert tried[:3] == [0.003, 0.01, 0.03] and tried[0] < rate < tried[-1]

# The same with twelve layers, and of RoPE.
# Holds: "With twelve layers the means are worse again, by 0.026 and by 0.028"
deep = [of(f"12 layers: {a} minus input", 3) for a in ARMS[2:]]
assert [each[0] for each in deep] == [0.026, 0.028, -0.091]
# Holds: "Nor is there a sign that depth asks for it"
for arm in ARMS[2:4]:
    assert of(f"{arm} minus input: 12 layers minus 4", 3)[0] > 0
# Holds: "**RoPE gave a good deal**: 0.097 nats with four layers and 0.091 with"
assert of("4 layers: rope minus input", 3)[0] == -0.097
for n in (4, 12):
    assert table_of_all.loc[f"{n} layers: rope minus input", "holm"] < 0.05
    assert of(f"{n} layers: rope minus input")[0] < of(f"{n} layers: input minus none")[0]
# Holds: "**Adding again gave nothing.**"
# Holds in What to remember: "Adding positions again, the same rows or new ones, lowered no mean"
again = table_of_all.filter(regex=r"layers: (every|layers) .*input$", axis=0)
assert len(again) == 4 and (again["mean"] > 0).all()
assert (again["holm"] > 0.05).all()


# The same by layer.
def by_layer(n, arm, column):
    each = study.by_arm[f"{n} layers, {arm}"]
    return np.mean([r.metrics["depth"]["trained"][column] for r in each], 0)


# Holds: "A probe reads it from them in 0.03 of the cases (chance 0.02), and"
for n in (4, 12):
    assert by_layer(n, "rope", "read position").max() < 0.035
    out = by_layer(n, "rope", "project out")
    assert (out - by_layer(n, "rope", "project out, control")).max() < 0.0125

# The same of the rows that are left.
# Holds: "With twelve layers its mean over seeds is 0.83 to 0.95, but single"
single = [r.metrics["depth"]["trained"]["left, coefficient"][1:-1] for r in study.by_arm["12 layers, input"]]
assert [round(each(map(each, single)), 2) for each in (min, max)] == [0.4, 1.35]
left = [by_layer(n, "input", "left, coefficient")[1:-1] for n in (4, 12)]
assert round(left[0][0], 2) == 0.42
assert [round(float(x), 2) for x in (min(left[1]), max(left[1]))] == [
    0.83,
    0.95,
]

# The same of early and late.
# Holds: "Position was to be read less well late: so it is with four layers"
# Holds: "Taking it out was to cost less late: that cannot be told with either."
holm, late = table_of_all["holm"], "early minus late"
read_late = [holm[f"{n} layers, input: position read, {late}"] for n in (4, 12)]
assert read_late[0] < 0.05 < read_late[1]
assert of(f"4 layers, input: position read, {late}", 3)[1] > 0
for what in ("project out", "shuffle"):
    for n in (4, 12):
        assert holm[f"{n} layers, input: cost to {what}, {late}"] > 0.05

# The same of use in four layers, seed by seed.
# Holds in What to remember: "Our causal models with a table and four layers use it in the first"
# Holds: "So use in the first layer alone, or nearly, is what our causal models"
for run in study.by_arm["4 layers, input"]:
    costs = run.metrics["depth"]["trained"]
    for what, most in (("project out", 0.05), ("shuffle", 0)):
        beyond = np.subtract(costs[what], costs[f"{what}, control"])
        assert beyond[0] > 0.9 and beyond[1:].max() < most

# The same of use in twelve layers, and of adding again.
# Holds: "Two of the five models with twelve layers use position for longer"
# Holds in What to remember: "Adding positions again, the same rows or new ones"


def first_layer(run, kind="project out"):
    measured = run.metrics["depth"]["trained"]
    return measured[kind][1] - measured[f"{kind}, control"][1]


of_twelve = study.by_arm["12 layers, input"]
used = sorted(map(first_layer, of_twelve))
assert np.round(used[-2:], 2).tolist() == [0.44, 0.53] and used[2] < 0.08
anew = sorted(first_layer(run, "shuffle") for run in of_twelve)
assert np.round(anew[-2:], 2).tolist() == [0.48, 0.64] and anew[2] < 0.08
# Holds: "These two have the lowest losses, 1.36; the other three are between"
deep_ones = sorted(of_twelve, key=first_layer)
of_each = [r.metrics["loss"] for r in deep_ones]
assert {round(loss, 2) for loss in of_each[-2:]} == {1.36}
assert min(of_each[:3]) > 1.38 and round(max(of_each), 2) == 1.41
assert round(loss["12 layers, none"], 2) == 1.39
# Holds: "And twelve layers *without* positions lose only 0.013 more (-0.016 to"
assert of("12 layers: input minus none", 3) == [-0.013, -0.043, 0.016]
assert round(by_layer(12, "none", "position").max(), 2) == 0.25

# The same of the masked model.
hidden = [r.metrics["depth"]["trained"] for r in study.by_arm["masked, 4 layers, input"]]
out, control, position = (
    np.mean([each[column] for each in hidden], 0) for column in ("project out", "project out, control", "read position")
)
# Holds: "One more arm, reported beside the plan's contrasts, guesses hidden"
assert study.by_arm["masked, 4 layers, input"][0].config.steps == 2000
# Holds: "So use in the first layer alone, or nearly, is what our causal models"
# Holds: "After its first layer position can be read in 0.96 of the cases,"
assert np.round(out[1:], 2).tolist() == [0.71, 0.54, 0.45, 0.43]
assert np.round(control[[1, 4]], 2).tolist() == [0.14, 0.11]
assert np.round(position[[1, 4]], 2).tolist() == [0.96, 0.5]

# The same of what the masked model misses.
dealt, beside = (np.mean([each[column] for each in hidden], 0)[1:] for column in ("shuffle", "shuffle, control"))
# Holds: "**A masked model shows what to check.**"
# Holds: "Dealt out anew among the tokens of a text (shuffle), position costs"
# Holds: "What is missed is something else that these directions hold."
assert round(dealt.max(), 2) == 0.03 and round(beside.max(), 2) == 0.02
# Holds: "Exchanged between texts, the directions cost more than taken out"
out, exchange = first[0], first[3]
assert exchange.difference > out.difference + 0.2 and first[1].cost < 0.06
# By definition: "A direction in which positions differ may hold much else"

# The same of what can be read.
# Holds: "Where the *same* rows are added again, position can be read *better*"
readable = by_layer(4, "every layer", "read position")[1:4]
assert np.round(readable, 2)[[0, 2]].tolist() == [0.2, 0.8]
for n in (4, 12):
    rising = by_layer(n, "every layer", "read position")[1:n]
    assert (np.diff(rising) > 0).all()
# Holds: "After ten more additions of the same rows, the position is read"
once = by_layer(12, "input", "read position")[11]
often = by_layer(12, "every layer", "read position")[11]
assert round(once, 2) == 0.12 and round(often, 2) == 0.8
# By definition: "That cannot be excluded by these runs."
# By definition: "Right. Presence is not use, and the loss is no lower for it."
# Holds: "But its first layers have named the neighbours before"
assert round(by_layer(12, "every layer", "read before")[1], 2) == 0.85

# %% And in images?
# Right answers.
# Holds: "the model reads 36 patches of 2 × 2, has six layers, width 64, and"
model_of_images = arms["none"][0].config
assert (model_of_images.length, model_of_images.n_layers, model_of_images.d_model) == (36, 6, 64)
# Holds: "Five schemes, five seeds, the rate chosen for each alike; a constant"
assert {len(each) for each in arms.values()} == {5} and len(arms) == 5
assert round(of_arm("none", "baseline"), 2) == 0.12
# By definition: "Two of the schemes know that an image has two axes."
# By definition: "**Sinusoids on two axes** give half of the columns to the row"
# By definition: "**RoPE on two axes** (axial RoPE) turns half of each head by"
# Holds: "Without positions two thirds of the digits are named"
assert round(of_arm("none", "accuracy"), 2) == 0.67
# Holds: "Each scheme adds 0.27 to 0.30."
gains = [of(f"images: {arm} minus none")[0] for arm in [*arms][1:]]
assert (min(gains), max(gains)) == (0.27, 0.3)
# Holds: "Knowing the two axes did not help RoPE at this size"
assert of("images: rope, 2-D minus rope, 1-D", 3) == [-0.017, -0.036, 0.001]

# The same of what is highest.
# Holds: "and of the four schemes with positions the highest mean is"
best = max(arms, key=lambda arm: of_arm(arm, "accuracy"))
assert best == "rope, 1-D"
# Holds: "RoPE by the running number cannot be interpolated so"
line = [of_arm(best, "patches", "sizes", "24", h) for h in HOW]
assert line[0] == line[1] and round(line[0], 2) == 0.13


# The same of shares.
# By definition: "The share of **place** is what places add to contents"
# Holds in What to remember: "Early layers dominated by position, semantics later: the second"
def layers_of_arm(arm, kind, when="layers"):
    return of_arm(arm, "patches", when, "shares", kind)


# Holds: "the share of the class rises with the layers, and not by itself, for"
# Holds: "The second half of the sentence holds for all five"
for arm in arms:
    assert (np.diff(layers_of_arm(arm, "class")) > 0).all()
    assert max(layers_of_arm(arm, "class", "untrained")) < 0.005
    assert of(f"images, {arm}: share of class, late minus early")[1] > 0

# The same of the first half.
# Holds: "with learned rows place has more than contents after the first layer"
pairs = [[layers_of_arm(a, k)[1] for k in KINDS[:2]] for a in [*arms][1:4]]
assert np.round(pairs, 2).tolist()[:2] == [[0.46, 0.36], [0.32, 0.44]]
# Holds: "The first half holds **with learned rows alone**, which differ"
# Holds: "(Both kinds of rows begin equally large, but a sinusoid's differ"
# Holds: "And three of the planned differences of these shares cannot be"
holm = table_of_all["holm"]
for arm, what in (
    ("sinusoidal, 2-D", "early, place minus contents"),
    ("rope, 1-D", "share of place, early minus late"),
    ("rope, 2-D", "share of place, early minus late"),
):
    assert holm[f"images, {arm}: {what}"] > 0.05
assert round(pairs[2][0], 2) == 0.04
for arm in ("rope, 1-D", "rope, 2-D"):
    place = layers_of_arm(arm, KINDS[0])
    assert place.argmax() in (3, 4) and place[-1] < place.max() / 2

# The same of how they began, of contents, and of what was not planned.
from posembed.training import difference

# Holds: "(Both kinds of rows begin equally large, but a sinusoid's differ"
began = [layers_of_arm(a, KINDS[0], "untrained")[0] for a in [*arms][1:3]]
assert np.round(began, 2).tolist() == [0.57, 0.14]
# Holds: "so a patch's contents seldom tell where it stands: in 0.06 of the"
by_contents = of_arm("none", "patches", "layers", "read", "place")[0]
assert round(by_contents, 2) == 0.06 and round(1 / 36, 2) == 0.03
# Holds: "RoPE by the running number names 0.028 more than the table"

right = [[r.metrics["accuracy"] for r in arms[a]] for a in ("rope, 1-D", "learned")]
gap = difference(*right)
assert np.round([gap.mean, gap.low, gap.high], 3).tolist() == [
    0.028,
    0.016,
    0.039,
]

# The same of their sizes, of which one is drawn and one is of sines.
from studies.training.runs import make_model
from studies.training.tasks import load_task

# Holds: "(Both kinds of rows begin equally large, but a sinusoid's differ"
at_places = torch.cartesian_prod(torch.arange(6), torch.arange(6))
for arm, at_rows in (
    ("learned", torch.arange(36)),
    ("sinusoidal, 2-D", at_places),
):
    config = arms[arm][0].config
    added = make_model(config, load_task(config)).transformer.position_scheme
    with torch.no_grad():
        rows = added.add(torch.zeros(1, 36, 64), at_rows)
    assert abs(rows.square().mean().sqrt() - 0.71) < 0.04

# The same of the figure.
# Holds: "Choose the images and RoPE of either kind: place has its largest"
for arm in ("rope, 1-D", "rope, 2-D"):
    assert layers_of_arm(arm, KINDS[0]).argmax() in (3, 4)

# The same of neighbours and of what is used.
# Holds: "After the first layer 96 % of the neighbours of a patch with ink in"
near = {arm: of_arm(arm, "patches", "layers", "neighbours", "place")[1] for arm in arms}
assert round(near["learned"], 2) == 0.96
assert {round(near[arm], 1) for arm in ("rope, 1-D", "rope, 2-D")} == {0.1}
assert round(near["none"], 2) == 0.08
right_of = {arm: np.mean([r.metrics["accuracy"] for r in arms[arm]]) for arm in ("none", "rope, 2-D")}
assert round(right_of["rope, 2-D"], 2) == 0.95
assert round(right_of["rope, 2-D"] - right_of["none"], 2) == 0.28

# Holds: "Taken out after the first layer, place costs the models with RoPE"
# Holds: "RoPE's early layers show hardly more of places than contents give"
taken = {arm: of_arm(arm, "patches", "ablations", "project out", "cost")[1] for arm in arms}
assert round(taken["rope, 1-D"], 2) == 0.74
assert round(taken["rope, 2-D"], 2) == 0.73 and taken["learned"] > 0.6


# The same of the first component.
def first_component(kind, state):
    return [of_arm(arm, "patches", "layers", "components", kind)[state][0] for arm in arms]


# Holds: "Of the variance along the first principal component, which pictures"
found = first_component("class", 6), first_component("place", 1)
ends = [(min(each), max(each)) for each in found]
assert np.round(ends, 2).tolist() == [[0.4, 0.73], [0.31, 0.44]]
assert round(min(found[0][1:]), 2) == 0.65
# Holds: "after the first layer place has 0.31 without positions, because"
early = np.round(first_component("place", 1), 2).tolist()
assert early == [0.31, 0.44, 0.44, 0.32, 0.31]

# The same of the second.
# Holds: "Of the second, place has 0.76 and 0.70 with rows, and 0.09 with RoPE"
second = [of_arm(arm, "patches", "layers", "components", "place")[1][1] for arm in arms]
assert np.round(second, 2).tolist() == [0.09, 0.76, 0.7, 0.09, 0.09]

# The same of the model without positions.
# Holds: "Of what each has above guessing that is the same part, so it does not"
parts = [taken[a] / (of_arm(a, "accuracy") - 0.1167) for a in ("none", "rope, 1-D", "rope, 2-D")]
assert max(parts) - min(parts) < 0.03
assert round(taken["none"], 2) == 0.48
# By definition: "Right, or they have become small, or lie in directions"
# Holds: "RoPE on two axes and the table, whose early layers look as"
low, high = of("images: rope, 2-D minus learned", 3)[1:]
assert low < 0 < high

# The same of larger images.
from studies.training.digits import enlarged
from studies.training.digits import images as all_digits

# By definition: "**A larger image than trained.**"
# Holds in What to remember: "On images of twice the side no scheme goes along as it is."
twice = {arm: [of_arm(arm, "patches", "sizes", "24", h) for h in HOW] for arm in arms}
# Holds: "as they are, they name 0.16 and 0.08 of the digits, where a constant"
assert round(twice["none"][0], 2) == 0.21
axial = [round(twice[a][0], 2) for a in ("sinusoidal, 2-D", "rope, 2-D")]
assert axial == [0.16, 0.08]

# Holds: "The image is stretched to twice the side, and the digit with it"
digits = all_digits(12)["test"].ids[:4]
stretched = enlarged(digits, 24)
assert stretched.shape[1:] == (24, 24) and (24 // 2) ** 2 == 144
ink, more_ink = ((each > 0).float().mean() for each in (digits, stretched))
assert abs(more_ink / ink - 1) < 0.2  # as large a share of the image
# Holds: "RoPE on two axes names 0.80, the sinusoids 0.65, and the table 0.63"
between = ("rope, 2-D", "sinusoidal, 2-D", "learned")
assert [round(twice[a][1], 2) for a in between] == [0.8, 0.65, 0.63]
# Holds: "So that positions exist is not enough: *where* they are put"
assert np.isnan(twice["learned"][0])
assert all(twice[a][1] > 3 * twice[a][0] for a in ("rope, 2-D", "sinusoidal, 2-D"))

from transformers import Qwen2VLTextConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLRotaryEmbedding

rotary = Qwen2VLRotaryEmbedding(Qwen2VLTextConfig(hidden_size=128, num_attention_heads=1))
x, at = torch.zeros(1, 9, 128), torch.arange(9)
# Holds: "The tokens of a text have the same number three times, and for them M-RoPE *is* RoPE."
same = rotary(x, at.expand(3, 1, 9))[0][0]
assert torch.allclose(same, (at[:, None] * rotary.inv_freq).cos().repeat(1, 2), atol=1e-6)
# Holds: "lets each of them turn a part of the pairs of columns of one RoPE: 16, 24 and 24 pairs of a head of 128 in
# the implementation of transformers"
assert (rotary.inv_freq.diff() < 0).all()  # the parts divide one range of frequencies
for axis, pairs in enumerate((range(16), range(16, 40), range(40, 64))):
    alone = torch.zeros(3, 1, 9, dtype=torch.long)
    alone[axis] = 1000 * at
    turned = (rotary(x, alone)[0][0, :, :64] != 1).any(0).nonzero().flatten()
    assert turned.tolist() == [*pairs]

# %% Models of others
# Holds: "a BERT of six layers"
# By definition: "Right: it is always the same token at the same place"
# By definition: "It has row 0 of the table added, like any first token."
assert len(bert) == 7 and encoder.config.model_type == "bert"
# Holds: "In this encoder position is read from the embeddings in every case"
of_bert = [each.position.accuracy for each in bert]
assert of_bert[0] == 1 and abs(of_bert[3] - 0.97) < 0.015
assert abs(of_bert[6] - 0.19) < 0.02
assert round(bert[6].position.chance, 2) == 0.03
# Holds: "and its share of the variance goes from 0.08 to 0.009"
shares = [each.shares.position for each in bert]
assert abs(shares[0] - 0.079) < 0.005 and abs(shares[6] - 0.009) < 0.002

# %% Exercises > found
assert abs(found.position - 0.05) < 0.004
# Holds: "19, as 1 / (1 + 19) is 0.05."
# Holds: "Position is as large as before, and its share a fifth of what it was."
assert abs(found.position_square / 64 - 1) < 0.05

# %% Exercises > ablate
swaps = [its[2].cost for its in found.values()]
# Holds: "Expect more than a nat somewhere, and elsewhere less than a"
assert swaps[0] > 1 and swaps[1] < 0.05
# Holds: "The swap costs less than projecting out, and still 1.2 nats"
assert abs(swaps[0] - 1.2) < 0.1 and swaps[0] < found[0][0].cost
# Holds: "At state 1 neither costs anything to speak of."
# Holds: "Its control, the same vectors turned into other directions"
assert abs(found[0][2].control - 1.44) < 0.1 and found[1][2].control < 0.05
assert found[0][2].difference_interval.high < 0

# %% Exercises
more = [its[0].difference for its in found.values()]
# Holds: "Expect more than 0.05 at each of the two."
assert min(more) > 0.05
# Holds: "It still moves them: taken out of state 3 it moves the last states by"
third = found[3][0]
assert abs(third.cost - 0.3) < 0.04 and abs(third.control - 0.09) < 0.03
# Holds: "Taken out of the embeddings it moves them by 0.62"
assert abs(found[0][0].cost - 0.62) < 0.05
# Holds: "Exchanged between texts, the directions of state 3 move them by 0.14"
first, third = (found[n][3] for n in (0, 3))
assert abs(third.cost - 0.14) < 0.02 and abs(third.control - 0.12) < 0.02
assert abs(first.cost - 0.06) < 0.02 and abs(first.control - 0.1) < 0.02
