# %% What has a position table learned?
from posembed.stored import stored_studies

of_gpt2 = stored_studies()["gpt2"]
# Holds: "GPT-2's rows lie for the most part on a helix of about two turns"
# Holds in What shape do the rows have?: "The rows lie in few directions, and along the first two of their"
# Holds in What to remember: "GPT-2's table is for the most part a helix"
assert sum(of_gpt2.explained_variance[:3]) > 0.85 and of_gpt2.effective_rank < 40
assert round(of_gpt2.n_positions / of_gpt2.helix["period"]) == 2
stored = [stored_studies()[name] for name in CHECKPOINTS[2:]]
assert sum(bool(each.helix) for each in stored) == 3
# Holds: "and a linear map guesses positions that were left out of its fit with a mean error of 1.6"
score = of_gpt2.score("ridge", "even-odd")
assert (round(score.test_mae, 1), round(score.constant)) == (1.6, 256)
# Holds: "**How sure:** four tables measured, with the controls beside each"
assert len(stored) == 4
# The picture of GPT-2's three components, checked on the stored study.
wave, other, drift = np.linalg.eigh(G)[1][:, ::-1][:, :3].T
at = of_gpt2.products["even"].positions
# Holds: "Scores of 64 rows of GPT-2's table on three components."
# Holds: "Right, against the position: two waves a quarter of a turn apart and an"
steps = np.diff(at)
assert len(steps) == 63 and set(steps) == {16, 17}
waves_of = np.fft.rfft([wave, other])
assert np.abs(waves_of).argmax(axis=1).tolist() == [2, 2]  # two turns
quarter = np.angle(waves_of[0, 2] / waves_of[1, 2]) / (np.pi / 2)
# Holds: "Left, from position 0 (blue) to 1023 (orange): along the first two"
# But for the ends, which jump.
around = np.unwrap(np.arctan2(other, wave))[1:-2] / (2 * np.pi)
assert round(abs(around[-1] - around[0]), 1) == 2
assert abs(abs(quarter) - 1) < 0.1 and abs(np.corrcoef(drift, at)[0, 1]) > 0.8
falls = np.diff(drift * np.sign(drift[0]))
assert falls[-1] > 0.3 * np.ptp(drift)
assert falls[:-1].sum() < -0.9 * np.ptp(drift)

# %% What shape do the rows have?
# Holds: "Turn them: from the front, components 1 and 2, they go around twice"
# Around as above; and of two rows that a turn parts the later one has drifted.
turn = round(of_gpt2.helix["period"] / steps.mean())
drifted = scores[2, 1 : -1 - turn] - scores[2, 1 + turn : -1]
assert drifted.min() > np.std(scores[0])
# Holds: "The first row and the last stand far from their neighbours."
apart = np.linalg.norm(np.diff(scores, axis=1), axis=0)
assert apart[[0, -1]].min() > 2 * apart[1:-1].max()
# Holds: "In GPT-2 they are the first two and hold two thirds of the variance, so only its table"
assert of_gpt2.helix["components"] == [0, 1] and abs(sum(of_gpt2.explained_variance[:2]) - 2 / 3) < 0.02
# Holds: "Two components that turn together are no rarity: in smooth random tables, below, there are such too."
from posembed.probing import spectrum

around = np.arange(-512, 1024)
spread_out = np.exp(-(((np.arange(512)[:, None] - around) / 32) ** 2))
drawn = [spread_out @ np.random.default_rng(seed).normal(size=(len(around), 384)) for seed in range(12)]
assert sum(spectrum(each).helix is not None for each in drawn) > 1
# Holds: "No better than a constant guess."
from posembed import probe_table as probed_as

angle = 4 * np.pi * np.arange(512) / 512
twice = np.column_stack([np.cos(angle), np.sin(angle)])
assert probed_as(twice).test_mae > 127
# Its reason: of the two errors at a point at least half a table is made, by any map.
assert np.allclose(twice[:256], twice[256:]) and np.abs(np.arange(512) - 255.5).mean() == 512 / 4
# By definition: "Yes: rows that follow each other lie side by side."
# By definition: "its principal components are close to sines"
# By definition: "A table that compares positions by their distance comes out as waves"
lag = np.exp(-np.abs(np.subtract.outer(np.arange(256), np.arange(256))) / 20)
first = np.linalg.eigh(lag)[1][:, -3]
assert np.abs(np.fft.rfft(first))[1:4].max() > 5 * np.abs(np.fft.rfft(first))[10:].max()

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

from transformers import BertConfig, RobertaConfig

from posembed.probing import GradientDescent, Ridge

# roberta-base says 514 where the class's own default is 512.
roberta_base = RobertaConfig(max_position_embeddings=514)
# Holds: "So a fit without error to *all* rows says nothing of a table"
for config, n in ((BertConfig(), 512), (roberta_base, 514)):
    assert config.max_position_embeddings == n < config.hidden_size == 768
like_bert = np.random.default_rng(4).normal(size=(512, 768))
assert np.abs(fitted(like_bert, positions)(like_bert) - positions).max() < 1e-6
# Holds: "With no more rows than that it can meet any labels."
# Holds: "Least squares finds the perfect fit at once."
# Holds: "Gradient descent does not: after 10,000 steps it is still 2.8 positions off"
off_by = {}
for n_steps in (10_000, 1_000_000):
    by_steps = GradientDescent(n_steps).fit(rows[even], even)
    off_by[n_steps] = np.abs(by_steps.predict(rows[even]) - even).mean()
assert round(off_by[10_000], 1) == 2.8 and off_by[1_000_000] < 0.01

# The picture, the largest weights, and no peak with ridge: also checked.
# By definition: "The picture shows this error and the error on new rows"
# Holds: "Error of least squares on random rows of 384 columns"
assert max(e for e, n in zip(on_fitted, counts, strict=True) if n < 386) < 1e-9
assert round(on_fitted[-1], 1) == 0.8 and on_fitted[5:] == sorted(on_fitted[5:])
# Holds: "On new rows the same maps are worse than a constant guess"
assert min(on_new) > 1 and counts[np.argmax(on_new)] == 385
draws, size, missed = np.random.default_rng(1), {}, {}
for n in (200, 385, 1200):
    x, y = draws.normal(size=(n, 384)), draws.permutation(n) / n
    new, true = draws.normal(size=(300, 384)), draws.uniform(size=300)
    size[n] = np.abs(np.linalg.lstsq(x - x.mean(0), y - 0.5)[0]).mean()
    missed[n] = 4 * np.abs(Ridge().fit(x, y).predict(new) - true).mean()
assert max(size, key=size.get) == 385 and max(missed.values()) < 1.2

# The same of the picture.
# Holds: "Up to 385 rows the fit is perfect with nothing to learn; on new rows"
assert max(e for e, n in zip(on_fitted, counts, strict=True) if n < 386) < 1e-9
assert min(on_new) > 1

# Its steps are as long as they can be: one lands at the bottom of the steepest slope.
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
# Holds: "769 fitted numbers cut the error on 1,024 random rows by more than half"
score = of_gpt2.score("ols", "all")
assert (round(score.test_mae, 1), score.constant, round(score.random_table)) == (1.4, 256, 118)

# %% What a score is to be compared with
# Holds: "In every measured table the odd positions can be read: the upper"
for study in studies.values():
    score = study.score("ridge", "even-odd")
    chance = min(score.constant, score.permuted_labels, score.random_table)
    assert score.high < chance / 2
# By definition: "Four things stand beside a score."
# By definition: "The best **constant guess** is what can be had without"
# Holds: "On rows held out nothing can do well here, since each row occurs once."
smooth = smooth_table(128)
for x, split in ((smooth, "even-odd"), (smooth, "half"), (table, "folds")):
    beside = probe_table(x, split=split).baselines
    assert min(beside.permuted_labels, beside.random_table) > 0.9 * beside.constant
# Holds: "each column is drawn from a Gaussian process, so a row is a weighted"
for scale in (8, 32):
    x = smooth_table(scale)
    alike = [np.corrcoef(x[i], x[i + scale])[0, 1] for i in range(512 - scale)]
    assert abs(np.mean(alike) - np.exp(-1 / 2)) < 0.05
# Holds: "But the smooth tables are read better than the encoder's, and from"
# Holds in What has a position table learned?: "But random rows that are *smooth enough* are read better still."
# Holds: "**Smooth random rows are enough for a small error on even-odd**"
# Holds in What to remember: "A score stands beside a constant guess, permuted labels"
by_scale = {scale: errors[f"smooth, scale {scale}"] for scale in (2, 8, 32, 128)}
assert all(each[0] < 0.8 * errors["the encoder"][0] for each in by_scale.values())
assert max(by_scale[scale][0] for scale in (8, 32, 128)) < 0.05
for study in stored:
    assert study.score("ridge", "even-odd").test_mae > 1 > 10 * by_scale[8][0]
# By definition: "Nearly every tested row has a fitted one beside it"
# Holds: "and then the random table as control: the same perfect diagonal, as wherever"
# Holds: "Without a test even a random table with no more rows than columns"
for each in stored:
    by_heart = each.score("ols", "all").random_table < 1e-6
    assert by_heart == (each.n_positions <= each.d_model)
    # Holds: "With one, neither permuted labels nor a random table does much better"
    for split in ("even-odd", "folds", "half"):
        score = each.score("ols", split)
        assert min(score.permuted_labels, score.random_table) > 0.9 * score.constant
assert opened.table == CHECKPOINTS[4] and "MiniLM" in opened.table

# The same of curves and of the walk.
# Holds: "Here are four smooth curves, with 512 rows along each, none of which"
for x in shapes.values():
    apart = ((x[:, None] - x[None]) ** 2).sum(axis=-1)
    assert len(x) == 512 and apart[~np.eye(512, dtype=bool)].min() > 1e-9
assert walk.shape == (512, 384) and len(shapes) == 5
# Holds: "From the flat spiral nothing is read"
# Holds: "So even-odd asks: **is there one direction along which the rows move forward"
assert error_of["a spiral of eight turns"] > 127 and error_of["a helix of eight turns"] < 0.01
spiral = shapes["a spiral of eight turns"]
step = np.linalg.norm(np.diff(spiral, axis=0), axis=1)
assert step.max() < 0.1 * np.linalg.norm(spiral, axis=1).max()
# Holds: "On a circle of one turn half of a guess's error remains"
assert abs(error_of["a circle, one turn"] / 128 - 1 / 2) < 0.01
on_circle = fitted(circle[even], even)(circle)
assert [
    np.sign(np.diff(on_circle[quarter])).sum() for quarter in (slice(2, 127), slice(130, 382), slice(386, 511))
] == [-124, 251, -124]
# Holds: "A's model understands word order better."
assert error_of["a random walk"] < 1
# By definition: "The positions between known ones can be read from both"
# Holds: "B's rows are nearly random."
drawn = probe_table(np.random.default_rng(2).normal(size=(512, 384)))
assert abs(drawn.test_mae - 128) < 5

# %% A split that asks for more
# Holds: "The even rows surround each odd one but the last."
split = probe_table(table, split="even-odd")
assert [row for row in split.positions if not {row - 1, row + 1} <= set(split.train_positions)] == [511]
# By definition: "The split `half` fits the first half of the positions"
# Holds: "the sinusoidal table, where every row follows from a formula, is off by 203 positions."
assert int(formula.test_mae) == 203
# Holds: "The map that was fitted to the first half does not go on as it began"
slope = {}
for study, name in zip(stored, CHECKPOINTS[2:], strict=True):
    score = study.score("ridge", "half")
    slope[name] = np.polyfit(*np.array(score.points["table"]).T, 1)[0]
    assert score.test_mae > 2 * study.score("ridge", "even-odd").test_mae
    # Holds: "And random numbers that change slowly, on a scale of 128 rows, do"
    assert score.test_mae / score.constant > 1.2 * by_scale[128][1] / 256
assert slope["sentence-transformers/all-MiniLM-L6-v2"] < -0.5
assert abs(slope["sentence-transformers/all-mpnet-base-v2"]) < 0.1
assert formula.test_mae > 0.5 * formula.baselines.constant
# Holds: "Predicted against true position for the second half"
# Holds: "The predictions begin at the diagonal and turn away from it: the map"
halved_at = halved.predictions
assert abs(halved_at[0] - 256) < 20 and halved_at[-1] < 100
# By definition: "Any table of a model that generalises to longer texts."
# Holds: "Every one with a direction along which the position grows"
wide = np.random.default_rng(3).normal(size=(512, 512))
assert np.abs(fitted(wide, positions)(wide) - positions).max() < 1e-6
assert probe_table(wide, split="half").test_mae > 200
# Holds: "So the split asks one thing: **do rows go on growing evenly along the direction"
# Holds: "One in which the position goes on in the directions that the first half"
for name in ("a straight line", "a helix of eight turns"):
    assert probe_table(shapes[name], split="half").test_mae < 0.01

# %% Does the model use what the probe reads?
from posembed.probing import spectrum

shape = spectrum(table)
left_over = {k: probe_table(part).test_mae for k, part in erased.items()}
# Holds: "The probe does not need the first two components, which hold a"
# Holds: "Without the first *two* components the probe reads the positions as"
assert round(sum(shape.explained_variance_ratio[:2]), 2) == 0.25
assert abs(left_over[2] - probe_table(table).test_mae) < 0.1
# Holds: "Without the first twelve of 384 directions nothing is left that *this"
assert abs(left_over[12] - 128) < 0.5
for done in changes.values():
    assert done.changed > max(done.control.high, done.control_same_size.high)

explained = shape.explained_variance_ratio
# Holds: "It moves the rows less."
assert round(sum(explained[:12]), 2) == 0.96 and round(12 / 384, 2) == 0.03
# Holds: "A wave of six positions is of hardly any use to a linear map"
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
# Holds: "A fairer one moves every row *as far* as the erasing does"
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

# %% Exercises
# Holds: "385 rows: 384 weights and the intercept."
# Holds: "The 386th equation has nothing left to adjust."
assert largest_error(385) < 1e-8 < 1e-2 < largest_error(386)

assert walks.accuracy > ours.accuracy > 0.9 and spiral.accuracy < 0.6

# %% What to remember
# Holds: "A fit without error on no more rows than columns says nothing"
assert largest_error(384) < 1e-6
# Holds: "In the encoder, erasing the table's main directions"
for done in changes.values():
    assert done.changed > 2.5 * done.control_same_size.mean
# Holds: "Even-odd asks whether the rows move forward by equal steps along one"
walks_of = {
    columns: [
        probe_table(np.random.default_rng(seed).normal(size=(512, columns)).cumsum(axis=0)).test_mae
        for seed in range(5)
    ]
    for columns in (1, 64, 384)
}
assert max(walks_of[384]) < 1 < max(walks_of[64]) < 5 and min(walks_of[1]) > 40
assert formula.test_mae > 0.5 * 256
