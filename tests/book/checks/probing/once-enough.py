# %% Is once enough?
def of(name, digits=3):
    return study.contrasts.loc[name, ["mean", "low", "high"]].astype(float).round(digits).tolist()


from posembed.stats import interval

planned = again.contrasts


def lead(n, one, other, **how):
    """Of an arm minus another, seed by seed."""
    pair = zip(of_arm[f"{n} layers, {one}"], of_arm[f"{n} layers, {other}"], strict=True)
    return interval([a - b for a, b in pair], **how)


# Holds: "**For a table once was enough: adding the same rows again in every layer lowered no mean loss"
# Holds: "To add the table again lowers nothing."
# Holds in What to remember: "To add a table again in every layer lowered no mean loss, with four layers"
# Holds in Once or again: "With twelve they are behind by 0.022, which the correction for many contrasts leaves open."
again_in = [planned.loc[f"{n} layers: table again minus table once"] for n in (4, 12)]
assert [round(each["mean"], 3) for each in again_in] == [0.002, 0.022] and min(each["holm"] for each in again_in) > 0.05
# Holds in Once or again: "With four layers the same rows again in every layer are equal to once, within the 0.01 nats"
within = lead(4, "table again", "table once", level=0.9)
assert max(abs(within.low), abs(within.high)) < 0.01 and "90 % interval within 0.01 nats" in again.about
# Holds: "RoPE is ahead of a table, by 0.066 and 0.044 nats a character, where it acts in every layer; in the first"
# Holds: "RoPE is ahead where it acts in all layers; in the first alone it cannot be told from the table with"
# Holds in What to remember: "RoPE is ahead of a table where it acts in every layer; in the first alone no lead can"
# Holds in Once or again: "**RoPE in the first or the last layer alone is not enough.**"
# Holds in Once or again: "In the first layer alone it tells the same distances, and no lead that can be told is left."
# Holds in Once or again: "With four layers it is 0.060 behind RoPE in all and cannot be told from a table; with twelve"
# Holds in Once or again: "So telling distances in the first layer alone, or in the last, is not all of RoPE's lead."
in_all, in_first = (
    [planned.loc[f"{n} layers: {pair}"] for n in (4, 12)]
    for pair in ("table once minus RoPE", "RoPE first minus table once")
)
assert [round(each["mean"], 3) for each in in_all] == [0.066, 0.044] and max(each["holm"] for each in in_all) < 0.05
assert in_first[0]["holm"] > 0.05 > in_first[1]["holm"] and round(in_first[1]["mean"], 3) == 0.055
assert max(planned.loc[f"{n} layers: RoPE first minus RoPE", "holm"] for n in (4, 12)) < 0.05
# Holds: "**How sure:** five seeds with four layers, three with twelve, one text, rates chosen in whole runs."
assert [{len(its) for arm, its in of_arm.items() if arm.startswith(f"{n} ")} for n in (4, 12)] == [{5}, {3}]
assert {run.config.steps for run in [*again.trials, *again.by_arm["4 layers, none"]]} == {3000}
# Holds: "Test losses in two panels of six rows. Four layers: no positions 1.45, table once 1.35"
means = [
    round(sum(each) / len(each), 2) for each in (of_arm[f"{n} layers, {a}"] for n in (4, 12) for a in ROWS.values())
]
assert means == [1.45, 1.35, 1.36, 1.29, 1.35, 1.51, 1.29, 1.26, 1.28, 1.21, 1.31, 1.40]
# Holds: "behind it a probe still reads them, but with four layers shuffling them costs next to nothing."
# Holds in What is used: "in the five models of that study a shuffle costs 0.02 at most"
shuffled = {
    n: [run.metrics["depth"]["trained"]["shuffle"] for run in study.by_arm[f"{n} layers, input"]] for n in (4, 12)
}
assert max(max(each[1:]) for each in shuffled[4]) < 0.025
assert sorted(round(each[1], 1) for each in shuffled[12])[-2:] == [0.8, 0.8] and len(shuffled[12]) == 5
assert sorted(each[1] for each in shuffled[12])[2] < 0.15
# Holds: "in two of five deeper ones a shuffle behind the first layer costs 0.8 nats."
# Holds in Once or again: "In the study on depth, whose twelve layers were narrow and, with positions, no better than"
# Holds in Once or again: "There a shuffle after the first layer costs 0.8 nats, its control 0.2 and 0.3."
of_deep = [run.metrics["depth"]["trained"] for run in study.by_arm["12 layers, input"]]
steep = [its["shuffle, control"][1] for its in of_deep if its["shuffle"][1] > 0.5]
assert sorted(round(each, 1) for each in steep) == [0.2, 0.3]
loss = study.runs.groupby("arm")["loss"].mean()
shallow, deep = (study.by_arm[f"{n} layers, input"] for n in (4, 12))
assert len(shallow) == 5 and (shallow[0].config.d_model, deep[0].config.d_model) == (56, 32)
assert loss["12 layers, input"] > loss["4 layers, input"]
# %% What is there
table = profiles["learned"]
share = [each.shares.position for each in table]
total = [each.shares.total for each in table]
square = [each.shares.position_square for each in table]
# Holds: "`depth_profile` answers all three, here for two causal models of another study, of width 64"
assert {model.transformer.words.weight.shape[1] for model in models.values()} == {64}
# By definition: "That is the usual argument for once, and it is an argument about a"
# By definition: "State 0 is what enters the first layer, state 4 leaves the last"
# Holds: "In the model with a table the share of position falls from 0.32"
assert abs(share[0] - 0.315) < 0.01 and abs(share[1] - 0.015) < 0.006
# Holds: "Of that less than half is left after the first layer, 0.42 in the mean of five models of a study on depth"
# Holds: "Most of what now varies with the position the layer has written itself."
# Holds in What to remember: "Of the row that was added less than half is left."
kept = [run.metrics["depth"]["trained"] for run in load_study("depth").by_arm["4 layers, input"]]
left = [its["left, coefficient"][1] for its in kept]
assert len(left) == 5 and round(sum(left) / 5, 2) == 0.42 and max(left) < 0.5
assert max(its["left, r2"][1] for its in kept) < 0.2
# Holds: "That is not so everywhere: with twelve layers 0.83 of the row is left in the mean, and in two of five"
elsewhere = (load_study("depth").by_arm[arm] for arm in ("12 layers, input", "masked, 4 layers, input"))
of_others = [[run.metrics["depth"]["trained"]["left, coefficient"][1] for run in runs] for runs in elsewhere]
assert [round(sum(each) / 5, 2) for each in of_others] == [0.83, 0.71]
assert len(of_others[0]) == 5 and sum(1 < each < 1.2 for each in of_others[0]) == 2
# Holds: "Position has about as much variance after the layer as before"
# Holds in What to remember: "A share falls when the rest grows: in our causal models of four layers position has"
import numpy as np

varying = [np.multiply(its["total"], its["position"])[:2] for its in kept]
assert all(0.7 < after / before < 1 for before, after in varying)
assert 0.04 < np.mean([its["position"][1] / its["position"][0] for its in kept]) < 0.06
assert all(abs(each - 12) < 1 for each in square[:2])
assert abs(total[0] - 39) < 1 and abs(total[1] - 797) < 3
read_off = [each.position.accuracy for each in table]
before = [each.before.accuracy for each in table]
# Holds: "What the probe reads falls in the first layer as well, from always to"
assert read_off[0] > 0.999 and abs(read_off[1] - 0.27) < 0.02
# Holds: "As the position fades *the token before* appears, from a guess to"
assert abs(before[0] - table[0].before.chance) < 0.02 and abs(before[1] - 0.93) < 0.02
# Holds: "Two tokens back is read nearly as well as one, and the third in half"
far = []
for n in (1, 2, 3):
    fit, test = (states[:, n:] for states in after_first)
    far.append(read(fit, fitted[:, :-n], test, tested[:, :-n]).accuracy)
assert torch.allclose(torch.tensor(far), torch.tensor([0.93, 0.9, 0.54]), atol=0.02)
# Holds: "With a table, position goes as the token before comes."
# Holds: "With a table, position falls from 1 to 0.27 after one layer and to"
assert read_off == sorted(read_off, reverse=True) and abs(read_off[4] - 0.12) < 0.02
assert before[1:] == sorted(before[1:], reverse=True) and abs(before[4] - 0.77) < 0.02
# Holds: "Without positions neither is there at first."
# Holds: "NoPos: position rises from 0.02 to 0.15 at state 2; the token before"
# Holds: "NoPos goes the other way in the picture: it begins with no position"
at_place = [each.position.accuracy for each in profiles["nopos"]]
at_before = [each.before.accuracy for each in profiles["nopos"]]
bare = profiles["nopos"][0]
assert at_place[0] < bare.position.chance + 0.01
assert at_before[0] < bare.before.chance + 0.01
assert at_place[:3] == sorted(at_place[:3]) and max(at_place) == at_place[2]
assert abs(at_place[0] - 0.02) < 0.01 and abs(at_place[2] - 0.15) < 0.02
assert max(at_before[:3]) < 0.3 and at_before[3] > 2 * at_before[2]
assert all(abs(each - 0.71) < 0.02 for each in at_before[3:])
# Holds: "In share it has."
# Holds: "From state 0 to state 1 the share of position falls to a twentieth."
assert 15 < share[0] / share[1] < 25
assert 16 < read_off[1] / table[1].position.chance < 18
# By definition: "Right. A share falls when the rest grows."

# The same of the sum.
# Holds in What to remember: "In a pre-norm model a position that is added once stays a term"
# Holds: "So $p_t$ is a term of every state, however deep."
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
by_table, by_nopos = shuffles["learned"], shuffles["nopos"]
assert {each.kind for each in by_table + by_nopos} == {"shuffle"}
# Holds: "**With a table**, position is used in the first layer and hardly"
# Holds: "Shuffled in what enters, it costs 2.36 nats, about twice its control."
assert abs(by_table[0].cost - 2.36) < 0.06 and 1.9 < by_table[0].cost / by_table[0].control < 2.2
# Holds: "From state 1 on neither costs more than 0.04"
# Holds: "what is left of them is, for this model, of hardly any use"
assert all(max(each.cost, each.control) < 0.04 for each in by_table[1:])
assert all(each.difference < 0.015 for each in by_table[1:])
# Holds: "With a table only what enters the first layer matters; NoPos uses"
# Holds: "Shuffled at state 1, position costs 1.53 nats, most of it through the first two tokens: with these"
# Holds: "there a shuffle costs 1.7 nats with the first two or without"
from posembed.layers import ablate

behind_two = ablate(models["nopos"], fitted, tested[:32], layers=[1, 2], skip=2)
for state, low, high in ((1, 0.07, 0.18), (2, 1.65, 1.85)):
    assert low < behind_two[state][1].cost < high, (state, behind_two[state][1])
    assert behind_two[state][1].difference_interval.low > 0
assert abs(by_nopos[2].cost - 1.69) < 0.06
assert abs(by_nopos[1].cost - 1.53) < 0.06 and 9 < by_nopos[1].cost / by_nopos[1].control < 12
assert min(each.difference_interval.low for each in by_nopos[1:4]) > 0.1
# Holds: "Rise of the loss at states 0 to 4. Learned table: shuffled 2.36"
found = [[round(each.cost, 1), round(each.control, 1)] for each in by_nopos[1:4]]
assert found == [[1.5, 0.1], [1.7, 0.8], [0.8, 0.5]] and abs(by_table[0].control - 1.15) < 0.06
assert max(abs(by_nopos[0].cost), abs(by_nopos[4].cost)) < 0.05
# Holds: "In this state position lies mostly along one direction."
assert profiles["nopos"][2].ablations[0].n_directions == 1
# Holds: "A state's place along it grows with the text"
assert (along.diff() > 0).all()
# Holds: "With the same place for all positions it finds it in 0.29 of the cases"
assert abs(usual - 0.71) < 0.02 and abs(without - 0.29) < 0.03
# Holds: "States that are moved as far in a random direction leave it at 0.68."
assert abs(elsewhere - 0.68) < 0.02
# Holds: "With the average of each position, and nothing of the text in it, in 0.80."
# Holds in What to remember: "Our model with a table uses positions in the first layer, and hardly"
assert abs(only_position - 0.8) < 0.03
# Holds: "But random directions hold little, so that control is too small."
# Holds: "In a masked model the directions after the first layer cost"
# Holds: "Shuffled, position costs no more there than its control does."
# Holds: "So these directions hold other things than position, and the model misses those."
# Holds in What to remember: "A control must be as large as what it controls"
of_masked = [r.metrics["depth"]["trained"] for r in study.by_arm["masked, 4 layers, input"]]
out, random, shuffled, as_large = (
    [each[kind][1] for each in of_masked]
    for kind in ("project out", "project out, control", "shuffle", "shuffle, control")
)
assert (round(sum(out) / 5, 2), round(sum(random) / 5, 2)) == (0.71, 0.14)
assert sum(shuffled) / 5 - sum(as_large) / 5 < 0.01

# The same of the question.
# Holds: "In the model with a table a probe reads the position from state 3"
third = profiles["learned"][3]
assert 9 < third.position.accuracy / third.position.chance < 11.5
# By definition: "Then a shuffle would hurt more than any change of this size."
assert abs(by_table[3].cost - 0.03) < 0.01 and abs(by_table[3].control - 0.03) < 0.01
# Holds: "Right. And little of it comes from the input's rows; the layers have written the rest."
rows_square = third.left.coefficient**2 * square[0]
assert abs(rows_square - 2) < 0.5 and abs(square[3] - 20) < 1.5

# %% Once or again
import numpy as np

from posembed.stored import load_plan

# Holds: "We trained causal models of characters, of width 32, in the six arms of the first picture"
# Holds: "They read the same texts in 3000 steps, and each arm has a learning rate that whole runs chose."
configs = [run.config for its in again.by_arm.values() for run in its]
assert {config.d_model for config in configs} == {32} and len(again.by_arm) == 2 * len(ROWS)
assert {config.data for config in configs} == {"sotu"}
assert not {config.seed for config in configs} & {run.config.seed for run in again.trials}
# Holds: "at rates of short runs, rows anew for each layer gave nothing either"
assert study.contrasts.filter(like="layers anew minus input", axis=0)["holm"].min() > 0.05
# Holds: "More these arms do not show, for some lose even to NoPos, which has no positions: RoPE in the last layer"
assert min(of_arm["12 layers, RoPE first"]) > max(of_arm["12 layers, none"])
for n in (4, 12):
    assert min(of_arm[f"{n} layers, RoPE last"]) > max(of_arm[f"{n} layers, none"])
# Holds: "With a table once, twelve layers, of three times the parameters, are better than four by 0.100."
in_layers = [again.by_arm[f"{n} layers, none"][0].metrics["parameters"] for n in (4, 12)]
assert round(in_layers[1] / in_layers[0]) == 3
deeper = planned.loc["table once: 12 layers minus 4"]
assert round(deeper["mean"], 3) == -0.100 and deeper["holm"] < 0.05
# Holds: "The table itself is worth less there: 0.030 beside none, where with four layers it is 0.101."
# By definition: "That was not planned."
worth = [lead(n, "none", "table once") for n in (12, 4)]
assert [round(each.mean, 3) for each in worth] == [0.030, 0.101] and worth[0].high < worth[1].low


def by_layer(n, arm, column):
    return np.mean([run.metrics["depth"]["trained"][column] for run in study.by_arm[f"{n} layers, {arm}"]], 0)


# Holds: "With the same rows again, a probe reads the position from the state"
assert [round(by_layer(4, arm, "read position")[3], 2) for arm in ("every layer", "input")] == [0.8, 0.13]
# Holds: "Look at table again: from state 1 to 3 the position is read better and better"
readable = by_layer(4, "every layer", "read position")
assert (np.diff(readable[1:4]) > 0).all()
# Holds: "Then choose the cost of shuffling position: there it costs next to nothing."
costs_again = by_layer(4, "every layer", "shuffle")
assert costs_again[0] > 2 and costs_again[1:].max() < 0.03
# By definition: "That cannot be excluded by these runs."
# By definition: "Right. Presence is not use, and the loss is no lower for it."
# Holds: "After two more additions of the same rows, the position is read from deep states in 0.80 of the cases"
assert (
    abs(by_layer(4, "every layer", "left, coefficient")[3] - by_layer(4, "every layer", "left, coefficient")[1] - 2)
    < 0.1
)
# Holds: "But the first layer has named the neighbours before"
assert round(by_layer(4, "every layer", "read before")[1], 2) == 0.92

# %% What this does not show
from posembed.stats import difference

# Holds: "What wider or larger models do: width 32, one text, and three seeds with twelve layers."
# Holds: "How far RoPE in the first of twelve layers is behind at another rate: 0.03 was taken, for it was better than"
tried = {
    run.config.learning_rate: run.metrics["validation_loss"]
    for run in again.trials
    if run.config.n_layers == 12 and run.config.layers_with_positions == (0,)
}
assert again.by_arm["12 layers, RoPE first"][0].config.learning_rate == 0.03 and min(tried, key=tried.get) == 0.03
assert round(tried[0.01] - tried[0.03], 3) == 0.001
# Holds: "How RoPE's lead grows or shrinks with size: on a ladder with rates by a rule three seeds cannot tell the two"
rungs = load_study("ladder").runs.pivot(index="seed", columns="arm", values="loss")
ahead = [difference(rungs[f"learned, width {w}"], rungs[f"rope, width {w}"]) for w in (32, 88)]
assert round(ahead[0].mean, 2) == 0.19 and [each.excludes_zero for each in ahead] == [True, False]
rates = {arm.name: arm for arm in load_plan("ladder").arms}
for kind in ("learned", "rope"):
    tuned, carried = (rates[f"{kind}, width {w}"] for w in (32, 88))
    assert {run.steps for run in tuned.trials} == {run.steps for run in tuned.runs} and not carried.trials
    assert len(tuned.runs) == len(carried.runs) == 3
# Holds: "Ours guess characters, with 0.05 to 0.2 million parameters, after 1500 or 3000 steps."
of_both = [its[0] for each in (study, again) for arm, its in each.by_arm.items() if "images" not in arm]
assert all(0.05 < run.metrics["parameters"] / 1e6 < 0.2 for run in of_both)

# %% Exercises > found
assert abs(found.position - 0.05) < 0.004
# Holds: "19, as 1 / (1 + 19) is 0.05."
# Holds: "Position is as large as before, and its share a fifth of what it was."
assert abs(found.position_square / 64 - 1) < 0.05

# %% Exercises > ablate
swaps = [its[2].cost for its in found.values()]
# Holds: "Expect more than a nat somewhere, and elsewhere less than a"
assert swaps[0] > 1 and swaps[1] < 0.05
# Holds: "The swap costs less than the shuffle, and still 1.2 nats"
assert abs(swaps[0] - 1.2) < 0.1 and swaps[0] < found[0][1].cost
# Holds: "At state 1 neither costs anything to speak of."
# Holds: "Its control, the same vectors turned into other directions"
assert abs(found[0][2].control - 1.44) < 0.1 and found[1][2].control < 0.05
assert found[0][2].difference_interval.high < 0

# %% Exercises
# Holds: "From its state 3 the position is read in 0.97 of the cases, from its last in 0.19."
assert encoder.config.model_type == "bert" and encoder.config.num_hidden_layers == 6
of_bert = depth_profile(encoder, given[0], test_ids=given[1], skip=1, ablations=False).layers
of_bert = torch.tensor([each.position.accuracy for each in of_bert])
assert torch.allclose(of_bert, torch.tensor([1, 1, 0.99, 0.97, 0.87, 0.33, 0.19]), atol=0.02)
shuffled_in = [its[1] for its in found.values()]
# Holds: "Expect more than 0.05 at each of the two."
assert min(each.difference for each in shuffled_in) > 0.05
# Holds: "It still matters: shuffled in state 3, position moves the last states"
assert abs(shuffled_in[1].cost - 0.39) < 0.04 and abs(shuffled_in[1].control - 0.26) < 0.04
# Holds: "Shuffled in the embeddings it moves them by 0.88, its control by"
assert abs(shuffled_in[0].cost - 0.88) < 0.05 and abs(shuffled_in[0].control - 0.24) < 0.04
# Holds: "This slip stops at once."
# Holds: "`super()` alone calls no constructor"
try:
    Slipped(4, 8)
    raise AssertionError
except AttributeError as error:
    assert "__init__()" in str(error)
# Holds: "`x += ...` changes the caller's tensor"
# Holds: "who calls twice adds twice"
assert words.sum() == 32
with torch.no_grad():
    layer, words = InPlace(4, 8), torch.zeros(4, 8)
    assert torch.equal(layer(words), layer.positions)
    assert torch.equal(layer(words), 2 * layer.positions)
