# %% A regression from rows to positions
off = np.abs(result.predictions - odd)
# Holds: "Predicted against true position for the odd rows, by least squares"
assert 0.78 < (off < 33).mean() < 0.82
# Holds: "The encoder of this book, all-MiniLM-L6-v2, has a table of 512 rows"
assert rows.shape == (512, 384)
# Holds: "The points keep near the diagonal: they miss it by 21.5 positions on"
error, guess = result.test_mae, result.baselines.constant
assert round(error, 1) == 21.5 and abs(error / guess - 1 / 6) < 0.005

# Holds: "There are 256 equations and 385 numbers to choose."
assert (len(even), table.weight.shape[1] + 1) == (256, 385)

# %% Perfect, and worth nothing
# Holds in A regression from rows to positions: "That its even rows hold their positions exactly."
assert error < 1e-9

# %% A fit that was not finished
from transformers import BertConfig, RobertaConfig

from posembed.probing import Ridge

# roberta-base says 514 where the class's own default is 512.
roberta_base = RobertaConfig(max_position_embeddings=514)
# Holds in Perfect, and worth nothing: "So a fit without error to *all* rows says nothing of a table"
for config, n in ((BertConfig(), 512), (roberta_base, 514)):
    assert config.max_position_embeddings == n < config.hidden_size == 768
# Holds: "BERT's table has more columns than rows, so least squares leaves"
like_bert = np.random.default_rng(4).normal(size=(512, 768))
assert np.abs(fitted(like_bert, positions)(like_bert) - positions).max() < 1e-6
# Holds: "After 10,000 steps the rows that were fitted are still 2.8"
assert round(early[0], 1) == 2.8 and on_even < 0.01
# Holds: "That is no loss on new rows: an early end acts like ridge"
assert early[1] < np.abs(read(rows[odd]) - odd).mean() - 3

# The picture, the largest weights, and no peak with ridge: also checked.
# By definition in Perfect, and worth nothing: "The picture shows this error and the error on new rows"
# Holds in Perfect, and worth nothing: "Error of least squares on random rows of 384 columns"
assert max(e for e, n in zip(on_fitted, counts, strict=True) if n < 386) < 1e-9
assert round(on_fitted[-1], 1) == 0.8 and on_fitted[5:] == sorted(on_fitted[5:])
# Holds in Perfect, and worth nothing: "On new rows the same maps are worse than a constant guess"
assert min(on_new) > 1 and counts[np.argmax(on_new)] == 385
draws, size, missed = np.random.default_rng(1), {}, {}
for n in (200, 385, 1200):
    x, y = draws.normal(size=(n, 384)), draws.permutation(n) / n
    new, true = draws.normal(size=(300, 384)), draws.uniform(size=300)
    size[n] = np.abs(np.linalg.lstsq(x - x.mean(0), y - 0.5)[0]).mean()
    missed[n] = 4 * np.abs(Ridge().fit(x, y).predict(new) - true).mean()
assert max(size, key=size.get) == 385 and max(missed.values()) < 1.2

# The same of the picture.
# Holds in Perfect, and worth nothing: "Up to 385 rows the fit is perfect with nothing to learn; on new rows"
assert max(e for e, n in zip(on_fitted, counts, strict=True) if n < 386) < 1e-9
assert min(on_new) > 1

# How long a step is, checked: one lands at the bottom of the steepest slope,
# so a longer one would overshoot it.
# Holds: "We take as many steps of gradient descent on the encoder's even rows"
x = rows[even] - rows[even].mean(0)
steepest = np.linalg.svd(x, full_matrices=False)[0][:, 0]
one = GradientDescent(1).fit(rows[even], even).predict(rows[even])
assert abs(steepest @ (one - even)) < 1e-6 < 1
assert abs(steepest @ (even - even.mean())) > 1

from posembed.stored import stored_studies

of_gpt2 = stored_studies()["gpt2"]
# Holds: "GPT-2's table has 1,024 rows of 768 numbers."
assert (of_gpt2.n_positions, of_gpt2.d_model) == (1024, 768)
# Holds: "Least squares fitted to all of them leaves an error of 1.4 positions."
# Holds: "Yes: a constant guess has 256."
# Holds: "That is about 118 positions"
# Holds: "fitting 769 numbers more than halves the error on 1,024 random rows"
score = of_gpt2.score("ols", "all")
assert (round(score.test_mae, 1), score.constant, round(score.random_table)) == (1.4, 256, 118)

# %% What a score is to be compared with
# Holds: "In every table the odd positions can be read"
for study in studies.values():
    score = study.score("ridge", "even-odd")
    chance = min(score.constant, score.permuted_labels, score.random_table)
    assert score.high < chance / 2

# Holds: "A's model understands word order better."
assert walked.test_mae < 1

from posembed import sinusoidal
from posembed.stored import stored_studies

of_gpt2 = stored_studies()["gpt2"]
# By definition: "The scores of checkpoints below stand beside three others."
# By definition: "The best **constant guess** is what can be had without"
# Holds: "The last line can be had again anywhere."
waves = probe_table(sinusoidal(512, 768), probe="ols", split="folds")
assert (waves.predictions.round() == positions).all()
# Holds: "wherever a table has no more rows than columns, the picture"
for each in stored_studies().values():
    by_heart = each.score("ols", "all").random_table < 1e-6
    assert by_heart == (each.n_positions <= each.d_model)
# Holds: "The 95 % interval comes from resampling blocks"
assert walked.interval.level == 0.95 and walked.interval.block > 1
missed = np.abs(probe_table(table).predictions - odd)
assert np.corrcoef(missed[1:], missed[:-1])[0, 1] > 0.3

# The same of all rows of GPT-2.
# Holds: "And a score belongs to the number of rows as well as to the table"
by_probe = [of_gpt2.score(each, "folds").test_mae for each in ("ols", "ridge")]
assert np.round(by_probe, 1).tolist() == [10.9, 2.5] and 1024 * 4 // 5 == 819

# Holds: "The walk has less than 1 % of a constant guess's error"
real = stored_studies()["gpt2"].score("ridge", "even-odd")
assert walked.test_mae < 0.01 * 128 and real.test_mae < 0.01 * real.constant
# Holds: "Here are four smooth curves, with 512 rows along each."
for x in shapes.values():
    apart = ((x[:, None] - x[None]) ** 2).sum(axis=-1)
    assert len(x) == 512 and apart[~np.eye(512, dtype=bool)].min() > 1e-9
# Holds: "On the circle, half a turn rises and the other half falls"
assert round(error_of["a circle, one turn"] / 128, 1) == 0.5
# Holds: "From the flat spiral nothing is read"
assert error_of["a spiral of eight turns"] > 127
assert error_of["a helix of eight turns"] < 0.01
# By definition: "The positions between known ones can be read from both"
# Holds: "A trained table has come to have one from random"
# Holds: "B's rows are nearly random."
drawn = probe_table(np.random.default_rng(2).normal(size=(512, 384)))
assert abs(drawn.test_mae - 128) < 5
# By definition: "better than another table is more than the score can say."

# It shows least squares.
# Holds: "Its probe is least squares, not ridge regression as in the list"
scores = [studies[CHECKPOINTS[4]].score(probe, "even-odd") for probe in ("ols", "ridge")]
assert [round(each.test_mae, 1) for each in scores] == [21.5, 14.3]
figure = ProbeFigure({"the encoder": studies[CHECKPOINTS[4]]})
assert figure.probe == "least squares"
shown = figure.tables[0]["scores"]
# Holds: "The figure below holds all splits and controls, and opens"
assert opened.table == CHECKPOINTS[4] and "MiniLM" in opened.table
assert shown["even-odd"]["error"] == round(scores[0].test_mae, 3)
assert set(shown) == {"even-odd", "all", "folds", "half"}
assert {"constant", "permuted labels", "random table"} <= set(shown["half"])

# The same of rows whose neighbours are not alike: one column grows.
# Holds: "So the even-odd score asks:"
# Holds: "Order alone is not enough: a column that grows as the cube"
assert round(probe_table(positions[:, None] ** 3.0).test_mae) == 51
# Holds: "Rows that change gradually can have such a direction, as the"
noisy = np.random.default_rng(5).normal(size=(512, 20))
noisy = np.column_stack([positions / 512, noisy])
alike = [np.corrcoef(noisy[i], noisy[i + 1])[0, 1] for i in range(511)]
assert abs(np.mean(alike)) < 0.05 and probe_table(noisy).test_mae < 0.01
spiral = shapes["a spiral of eight turns"]
step = np.linalg.norm(np.diff(spiral, axis=0), axis=1)
assert step.max() < 0.1 * np.linalg.norm(spiral, axis=1).max()
step = np.linalg.norm(np.diff(walk, axis=0), axis=1)
assert step.max() < 0.1 * np.linalg.norm(walk, axis=1).max()
assert error_of["a spiral of eight turns"] > 127

# By definition: "A score near it is no better than not looking."
# Holds: "Random rows have, by ridge regression, about the error"
by_ols = probe_table(np.random.default_rng(2).normal(size=(512, 384)), probe="ols")
assert by_ols.test_mae > 1.4 * 128

# The same of the figure's controls.
# Holds: "Without a test even a random table with no more rows than columns"
for each in stored_studies().values():
    by_heart = each.score("ols", "all").random_table < 1e-6
    assert by_heart == (each.n_positions <= each.d_model)
    # Holds: "With one, neither permuted labels nor a random table does much better"
    for split in ("even-odd", "folds", "half"):
        score = each.score("ols", split)
        assert min(score.permuted_labels, score.random_table) > (0.9 * score.constant)

# The smooth random tables, which the same probe reads.
# Holds: "On rows held out they cannot, whatever the table: each row occurs once"
from posembed.probing import split_rows

smooth = smooth_table(128)
for x, split in ((smooth, "even-odd"), (smooth, "half"), (table, "folds")):
    beside = probe_table(x, split=split).baselines
    assert min(beside.permuted_labels, beside.random_table) > 0.9 * beside.constant
# Holds: "Each of its columns is drawn from a Gaussian process: a row is"
for scale in (8, 32):
    x = smooth_table(scale)
    alike = [np.corrcoef(x[i], x[i + scale])[0, 1] for i in range(512 - scale)]
    assert abs(np.mean(alike) - np.exp(-1 / 2)) < 0.05
# Holds: "On even-odd, and on `folds`, which deals the rows at random into five"
# Holds: "A small error on these splits needs nothing but smoothness."
by_scale = {scale: errors[f"smooth, scale {scale}"] for scale in (2, 8, 32, 128)}
for each in by_scale.values():
    assert max(each[:2]) < 0.8 * min(errors["the encoder"][:2])
assert max(max(by_scale[scale][:2]) for scale in (8, 32, 128)) < 0.05
# Holds: "Both splits ask whether a row lies where its neighbours put it"
beside = [{row - 1, row + 1} & set(part.train) for part in split_rows(positions, "folds") for row in part.test]
assert len(beside) == 512 and np.mean([bool(each) for each in beside]) > 0.9
# Holds: "A map that is right at the fitted rows is then nearly right between"
for scale in (8, 32, 128):
    x = smooth_table(scale)
    assert np.abs(fitted(x[even], even)(x[odd]) - odd).mean() < 0.05
    assert probe_table(x[:, :2]).test_mae > 0.25 * 128
# Holds: "**The smooth table is the null to beat**, and on even-odd none of the four"
stored = [stored_studies()[name] for name in CHECKPOINTS[2:]]
for study in stored:
    assert study.score("ridge", "even-odd").test_mae > 1 > 10 * by_scale[8][0]
# Holds: "With short scales a smooth table fails it: the second half has little"
assert min(by_scale[scale][2] for scale in (2, 8, 32)) > 0.75 * 256
# Holds: "With scale 128, a quarter of the table, it has an eighth of a constant"
assert abs(by_scale[128][2] / 256 - 1 / 8) < 0.03 and len(table) / 4 == 128
# By definition: "The split `half` fits the first half and tests on the second."
# Holds in A split that asks for more: "A failure does not show that a table has no order, and success on either"
for study in stored:
    score = study.score("ridge", "half")
    assert score.test_mae / score.constant > 1.2 * by_scale[128][2] / 256
# Holds in What to remember: "On rows held out the last two are sanity checks of the probe"
assert by_scale[8][0] < 0.05

# Holds: "The walk has less than 1 % of a constant guess's error, as GPT-2's table has."
score = stored_studies()["gpt2"].score("ridge", "even-odd")
assert walked.test_mae / walked.baselines.constant < 0.01 and score.test_mae / score.constant < 0.01

# %% A split that asks for more
# Holds: "The map that was fitted to the first half does not go on as it"
slope = {}
for name in CHECKPOINTS[2:]:
    score = stored_studies()[name].score("ridge", "half")
    slope[name] = np.polyfit(*np.array(score.points["table"]).T, 1)[0]
for study in studies.values():
    near = study.score("ridge", "even-odd")
    beyond = study.score("ridge", "half")
    assert beyond.test_mae > 2 * near.test_mae
assert slope["sentence-transformers/all-MiniLM-L6-v2"] < -0.5
assert abs(slope["sentence-transformers/all-mpnet-base-v2"]) < 0.1
assert all(0.5 < slope[each] < 0.9 for each in CHECKPOINTS[2:4])
assert formula.test_mae > 0.5 * formula.baselines.constant

# The same of the two constant guesses.
# Holds: "The constant guess in the list is the median of the rows that"
# Holds: "Beside it three of these four do worse, and GPT-2 does somewhat"
kept = stored_studies()
beside = {}
for name in CHECKPOINTS[2:]:
    n, score = kept[name].n_positions, kept[name].score("ridge", "half")
    tested = np.arange(n // 2, n)
    best = np.abs(tested - np.median(tested)).mean()
    assert (score.constant, best) == (n / 2, n / 8)
    beside[name] = score.test_mae / best
assert [name for name, each in beside.items() if each < 1] == ["gpt2"]

# By definition: "The split `half` fits the first half of the positions"
# By definition: "Any table of a model that generalises to longer texts."
# Holds: "Predicted against true position for the second half"
assert abs(halved.predictions[0] - 256) < 20 and halved.predictions[-1] < 100
# Holds: "It has one: its column 382, the slowest of the sines"
assert 512 * 10000 ** (-382 / 384) / (2 * np.pi) < 0.01 and r > 0.9999999
# Holds: "Among the rows that are fitted it holds less than a millionth"
assert share < 1e-6 and alone < 0.1 < 0.5 * 256 < formula.test_mae
finished = probe_table(waves, probe="ols", split="half")
assert finished.test_mae > 0.5 * 256
without = waves.copy()
without[:, 382] = 0
fit = Ridge().fit(waves[:256], positions[:256])
assert np.abs(fit.predict(waves) - fit.predict(without)).max() < 1
# Holds: "The predictions begin at the diagonal and turn away from it: the map"
assert abs(halved.predictions[0] - 256) < 20 and halved.predictions[-1] < 100

# Holds: "Every one with a direction along which the position grows"
wide = np.random.default_rng(3).normal(size=(512, 512))
assert np.abs(fitted(wide, positions)(wide) - positions).max() < 1e-6
assert probe_table(wide, split="half").test_mae > 200
# Holds: "So the split `half` asks:"
# Holds: "One in which the position goes on along the directions that"
for name in ("a straight line", "a helix of eight turns"):
    assert probe_table(shapes[name], split="half").test_mae < 0.01
assert probe_table(eight, split="half").train_mae > 0.9 * 64
# Holds: "Large waves come first, where they will do; where they will not"
flat = np.column_stack([eight, positions / 512_000])
assert flat[:256, 2].var() < 0.2 * share * flat[:256].var(axis=0).sum()
assert probe_table(flat, split="half").test_mae < 0.1

# Holds: "The even rows surround each odd one but the last."
split = probe_table(table, split="even-odd")
assert [row for row in split.positions if not {row - 1, row + 1} <= set(split.train_positions)] == [511]

# %% What shape do the rows have?
# Holds: "Here are those of 64 rows of GPT-2's table, evenly spaced."
steps = np.diff(of_gpt2.products["even"].positions)
assert len(steps) == 63 and set(steps) == {16, 17}
# Holds: "This one is 97 positions off on `half`; its drift is no straight"
assert round(of_gpt2.score("ridge", "half").test_mae) == 97
# Holds: "As badly as a constant guess."
twice = np.column_stack([np.cos(2 * turn), np.sin(2 * turn)])
assert probe_table(twice).test_mae > 127
# Holds: "For 27 % of the odd rows it is a neighbour"
assert round(adjacent, 2) == 0.27 and 2 / len(even) < 0.01
# Holds: "Well: each odd row has its even neighbours beside it."
assert error_of["a spiral of eight turns"] > 127

# The picture of GPT-2's three components, checked on the stored study.
G = np.array(of_gpt2.products["even"].dots)
G = G - G.mean(axis=0) - G.mean(axis=1)[:, None] + G.mean()
wave, other, drift = np.linalg.eigh(G)[1][:, ::-1][:, :3].T
at = of_gpt2.products["even"].positions
# Holds: "its drift is no straight line, and correlates with"
assert round(abs(np.corrcoef(drift, at)[0, 1]), 2) == 0.89
# Holds: "Scores of 64 rows of GPT-2's table on three principal components."
waves_of = np.fft.rfft([wave, other])
assert np.abs(waves_of).argmax(axis=1).tolist() == [2, 2]  # two turns
quarter = np.angle(waves_of[0, 2] / waves_of[1, 2]) / (np.pi / 2)
assert abs(abs(quarter) - 1) < 0.1

# Holds: "Two components swing together, and the third drifts, unevenly, from"
falls = np.diff(drift * np.sign(drift[0]))
assert falls[-1] > 0.3 * np.ptp(drift)
assert falls[:-1].sum() < -0.9 * np.ptp(drift)
# Holds: "Fitted to these 64 rows, a linear map is 110 positions off"
ten = np.linalg.eigh(G)[1][:, ::-1][:, :10]
left = [
    np.abs(fitted(ten[:, some], np.array(at))(ten[:, some]) - at).mean() for some in ([2], [0, 1], [0, 1, 2], range(10))
]
assert [round(each) for each in left] == [110, 249, 36, 16]
assert round(np.abs(np.array(at) - np.mean(at)).mean()) == 260

# The same of its caption.
# Holds: "Two waves a quarter of a turn apart and an uneven drift together"
assert np.abs(waves_of).argmax(axis=1).tolist() == [2, 2]
assert abs(abs(quarter) - 1) < 0.1 and abs(np.corrcoef(drift, at)[0, 1]) > 0.8

# The part of the first two components, checked: erased before the fit, and
# taken out of the rows that are read after it.
# Holds: "The first two components, which hold a quarter of the variance"
assert round(sum(shape.explained_variance_ratio[:2]), 2) == 0.25
assert probe_table(erased[2]).test_mae < probe_table(table).test_mae + 0.1
fit = Ridge().fit(rows[even], even)
without = erased[2].numpy() + rows.mean(0)
here, there = fit.predict(rows[odd]), fit.predict(without[odd])
more = np.abs(there - odd).mean() - np.abs(here - odd).mean()
assert 0 < more < 0.6 and 2 < np.abs(there - here).mean() < 4

# Holds: "about two turns of a spring"
assert round(of_gpt2.n_positions / of_gpt2.helix["period"]) == 2
# Holds: "128 positions is the error of a constant guess"
assert result.baselines.constant == 128
left_over = {k: probe_table(part).test_mae for k, part in erased.items()}
# Holds: "Without the first twelve of 384 directions nothing is left that *this probe* reads"
assert abs(left_over[12] - 128) < 0.5
# Holds in Does the model use what the probe reads?: "Without the first *two* components it reads the positions as
# well as before"
assert abs(left_over[2] - probe_table(table).test_mae) < 0.1

# %% Does the model use what the probe reads?
for done in changes.values():
    assert done.changed > max(done.control.high, done.control_same_size.high)

explained = shape.explained_variance_ratio
# Holds: "It moves the rows less."
assert round(sum(explained[:12]), 2) == 0.96 and round(12 / 384, 2) == 0.03
# Holds: "A direction that turns once in six positions is of hardly any"
score = np.asarray(shape.components)[128:, 0]
period = len(score) / (np.abs(np.fft.rfft(score))[1:].argmax() + 1)
assert round(period) == 6 and probe_table(erased[2]).test_mae < 15
assert probe_table(centred - erased[2]).test_mae > 127  # kept alone
# Holds: "Random subspaces differ from draw to draw."
assert changes[12].control.low < changes[12].control.high

# What the second control does, by hand.
import torch

from posembed import with_position_table


def states(new):
    with torch.no_grad(), with_position_table(model, new):
        out = model(**batch).last_hidden_state
    return out[batch["attention_mask"] == 1].double()


main = position_subspace(table, n_components=12).double()
drawn = torch.randn(384, 12, generator=torch.Generator().manual_seed(0))
elsewhere = torch.linalg.qr(drawn.double()).Q.T
moves, before = centred @ main.T, states(weight)
far = []
for directions in (main, elsewhere):
    moved = states(weight - moves @ directions) - before
    far.append((moved.norm(dim=1) / before.norm(dim=1)).mean())

# The same of what they change.
# Holds: "In the second, every row is moved *as far* as the erasing moves it"
# Holds: "This is one subspace for all rows, and each row moves there"
sizes = [(moves @ each).norm(dim=1) for each in (main, elsewhere)]
assert torch.allclose(*sizes)
# Holds: "Moving the rows as far within a random subspace does a third"
assert abs(far[0] - changes[12].changed) < 1e-3
assert abs(far[1] - changes[12].control_same_size.mean) < 0.05
assert abs(far[1] / far[0] - 1 / 3) < 0.07

# Holds: "A change of 0.67 means that the output vectors are off by two thirds of their length."
assert round(changes[12].changed, 2) == 0.67
# Holds: "Moving the rows as far within a random subspace does a third of that."
assert abs(changes[12].control_same_size.mean / changes[12].changed - 1 / 3) < 0.05
# Holds: "the model's outputs change three times as much as by the control"
assert abs(changes[2].changed / changes[2].control_same_size.mean - 3) < 0.35

# %% Models without a table
# A row for each range, a column for a head.
# Holds: "Its knowledge sits in the attention"
biases = [n for n, _ in others[1].named_parameters() if "relative" in n]
(name,) = biases
assert others[1].get_parameter(name).shape == (32, 2)
# Holds: "T5 has a hidden table of positions."
sizes = {p.shape[0] for n, p in others[1].named_parameters() if n != name}
assert sizes == {16, 50}  # widths and words: nothing counts positions

# %% Exercises
# Holds: "385 rows: 384 weights and the intercept."
# Holds: "The 386th equation has nothing left to adjust."
assert largest_error(385) < 1e-8 < 1e-2 < largest_error(386)

assert walks.accuracy > ours.accuracy > 0.9 and spiral.accuracy < 0.6

# %% What to remember
# Holds: "A fit without error on no more rows than columns says nothing"
assert largest_error(384) < 1e-6 and early[0] > 1
# By definition: "A score stands beside a constant guess, permuted labels"
# Holds: "Even-odd asks how evenly the odd rows grow with the position"
assert walked.test_mae < 1.28 and formula.test_mae > 0.5 * 256
# Holds: "What one probe does not read may be there all the same."
assert probe_table(erased[12]).test_mae > 127 and adjacent > 0.2
# Holds: "In the encoder, erasing the table's main directions"
for done in changes.values():
    assert done.changed > 2.5 * done.control_same_size.mean

# The same of narrow tables, which behave otherwise.
off = {}
for columns in (1, 64):
    steps = [np.random.default_rng(seed).normal(size=(512, columns)) for seed in range(5)]
    off[columns] = [probe_table(each.cumsum(axis=0)).test_mae for each in steps]
# Holds: "a random walk of many columns passes it."
assert max(off[64]) < 0.04 * 128 < 0.3 * 128 < min(off[1])
# Holds: "even the sinusoidal table of the encoder's size fails it."
assert waves.shape == rows.shape and formula.test_mae > 3 * 64
assert probe_table(sinusoidal(512, 8), split="half").test_mae < 0.1 * 64

# Holds: "a random walk of many columns passes it"
walks_of = {
    columns: [
        probe_table(np.random.default_rng(seed).normal(size=(512, columns)).cumsum(axis=0)).test_mae
        for seed in range(5)
    ]
    for columns in (1, 4, 64, 384)
}
assert max(walks_of[384]) < 1 < max(walks_of[64]) < 5 < 20 < min(walks_of[4]) and min(walks_of[1]) > 40
# Holds: "even the sinusoidal table of the encoder's size fails it"
by_width = {width: probe_table(sinusoidal(512, width), split="half").test_mae for width in (8, 16, 32, 384)}
assert max(by_width[width] for width in (8, 16, 32)) < 10 < 64 < by_width[384]
