"""The table of one course: four stretches, rows that were never trained, and a report that may claim too much."""

import io
import json

import numpy as np

WIDTH = 128
NAMES = "abcd"
# How many rows a stretch has, and how many stand between two of them, which belong to neither.
STRETCH, BETWEEN = (46, 58), (3, 5)
FRONT, TAIL = (2, 6), (8, 20)
# In units of the step from one row to the next, which is the same all along the table. What all rows have in common
# hides that untrained rows have nothing else in common; a row for one token alone is as long as MARK.
NOISE, DRIFT, UNTRAINED, COMMON, MARK = 0.45, 0.075, 5.0, 6.0, 24.0
STEP = 2.0**-5
# Entries are whole multiples of this: the last digits of a sine differ between machines, and the file must not.
GRID = 2.0**-16


def directions(draws, n):
    """So many unit vectors at right angles."""
    found = []
    for row in draws.normal(n, WIDTH):
        for other in found:
            row = row - (row * other).sum() * other
        found.append(row / length(row))
    return np.array(found)


def length(rows):
    """Of each row."""
    return np.sqrt((rows**2).sum(axis=-1))


def with_steps_of_one(path):
    """From zero, with steps that have the length 1 on average."""
    return (path - path[0]) / length(np.diff(path, axis=0)).mean()


def helix(draws, n, _):
    """Turns that widen or narrow, and a slow drift along the third direction: a linear map reads it, and goes on."""
    angle = 2 * np.pi * (2.2 + 0.6 * draws.uniform(1)[0]) * np.arange(n) / n
    radius = np.linspace(0.5, 1.5, n)[:: -1 if draws.coin() else 1]
    turns = with_steps_of_one(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))
    return np.column_stack([turns, DRIFT * np.arange(n)])


def walk(draws, n, _):
    """Each row is the one before and a random step."""
    return with_steps_of_one(draws.normal(n, WIDTH).cumsum(axis=0))


def curve(draws, n, _):
    """Three waves, less all of them that is linear in the position: linear maps are blind, the nearest row is not."""
    u = np.linspace(-1, 1, n)
    drawn = [waves(u, draws.uniform(3)) for _ in range(40)]
    return max(drawn, key=least_distance)


def waves(u, phases):
    """A turn, one and a half and two, less what is linear in u, with steps of one."""
    path = np.column_stack(
        [np.cos(np.pi * k * u / 2 + 2 * np.pi * phase) for k, phase in zip((2, 3, 4), phases, strict=True)]
    )
    path = path - path.mean(axis=0)
    return with_steps_of_one(path - u[:, None] * (u @ path) / (u @ u))


def least_distance(path):
    """How near the path comes to itself."""
    at = np.arange(len(path))
    return length(path[:, None] - path)[np.abs(at[:, None] - at) > 4].min()


def circle(draws, n, period):
    """Whole turns and nothing else: rows a period apart are alike."""
    angle = 2 * np.pi * np.arange(n) / period
    return with_steps_of_one(np.column_stack([np.cos(angle), np.sin(angle)]))


SHAPES = {"helix": helix, "walk": walk, "curve": curve, "circle": circle}


def make(draws):
    """The files that students get, and what is true of them."""
    table, truth = table_of(draws)
    stretches = {name: list(rows) for name, rows in truth["stretches"].items()}
    claims, truth["holds"] = claims_of(draws, table, truth)
    file = io.BytesIO()
    np.save(file, table)
    report = json.dumps({"stretches": stretches, "claims": claims}, indent=1) + "\n"
    return {"table.npy": file.getvalue(), "report.json": report.encode()}, truth


def table_of(draws):
    """The table, and what is true of its rows."""
    front, tail, period = draws.whole(*FRONT), draws.whole(*TAIL), draws.whole(13, 17)
    kinds, shared = draws.order(list(SHAPES)), directions(draws, 12)
    parts, bounds, at = [], {}, np.zeros(WIDTH)
    n_rows = front

    def go_on(path):
        nonlocal at, n_rows
        parts.append(at + path)
        at, n_rows = parts[-1][-1], n_rows + len(path)

    def pause():
        """A few steps, each in a direction of its own."""
        steps = draws.normal(draws.whole(*BETWEEN), WIDTH)
        go_on((steps / length(steps)[:, None]).cumsum(axis=0))
        return n_rows - len(steps)

    first = pause()
    cuts = []
    for name, kind in zip(NAMES, kinds, strict=True):
        path = SHAPES[kind](draws, draws.whole(*STRETCH), period)
        if path.shape[1] < WIDTH:
            path = path @ np.array(draws.order(list(shared)))[: path.shape[1]]
        step = draws.normal(WIDTH)
        go_on(path + step / length(step))
        bounds[name] = (n_rows - len(path), n_rows)
        cuts.append(pause() + 1)
    last, cut = n_rows - 1, cuts[draws.whole(0, 2)]
    trained = np.concatenate(parts)
    trained = trained - trained.mean(axis=0) + NOISE / WIDTH**0.5 * draws.normal(*trained.shape)
    rows = np.concatenate([draws.normal(front, WIDTH), trained, draws.normal(tail, WIDTH)])
    untrained = [row for row in range(len(rows)) if not first <= row <= last]
    rows[untrained] *= UNTRAINED / WIDTH**0.5
    for row in (first, cut, last):
        mark = draws.normal(WIDTH)
        rows[row] = MARK * mark / length(mark)
    common = draws.normal(WIDTH)
    common = common / length(common) + 0.5 * shared.sum(axis=0) / len(shared) ** 0.5
    rows = rows + COMMON * common / length(common)
    table = (np.round(rows * STEP / GRID) * GRID).astype("<f4")
    truth = {
        "stretches": bounds,
        "kinds": dict(zip(NAMES, kinds, strict=True)),
        "untrained": untrained,
        "offset": first,
        "n_positions": last + 1 - first,
        "cut_at": cut - first + 1,
        "period": period,
    }
    return table, truth


def claims_of(draws, table, truth):
    """Ten claims about the table, and which of them hold: five, others in each course."""
    name_of = {kind: name for name, kind in truth["kinds"].items()}
    offset, n_rows = truth["offset"], len(table)
    upto, position = draws.whole(63, 110), draws.whole(20, truth["n_positions"] - 20)
    wrong_row = draws.order([position, position + offset + 1])[0]
    in_order = sorted((name_of["walk"], name_of["helix"]))
    # Of each claim first what does not hold, then what does.
    both = {
        "1": (
            f"The table knows its positions 0 to {upto}: fitted to all of their rows, least squares leaves no error.",
            f"Fitted to all rows of the positions 0 to {upto}, least squares leaves no error. With these positions "
            "dealt out among these rows at random it leaves none either.",
        ),
        "2": tuple(
            f"Neither a linear map nor the nearest even row reads the odd rows of stretch {name_of[kind]}: the error "
            "of each is more than half of a constant guess's."
            for kind in ("curve", "circle")
        ),
        "3": tuple(
            f"The row of position {position} is row {row} of the file." for row in (wrong_row, position + offset)
        ),
        "4": (
            "Least squares, fitted to all rows of the file, leaves about the error that it leaves on as many random "
            "rows of this width. So it has learned them by heart, and the table says nothing.",
            "Least squares, fitted to all rows of the file, leaves less than a third of the error that it leaves on as "
            "many random rows of this width. So not all of the fit is learned by heart.",
        ),
        "5": tuple(
            f"A linear map fitted to the first half of stretch {name_of[kind]} goes on in the second: its error there "
            "is below that of the best constant for these rows."
            for kind in ("walk", "helix")
        ),
        "6": tuple(
            f"The products of the table's rows are symmetric: rows i and j have what rows j and i have. {conclusion}"
            for conclusion in (
                "So the model that it comes from treats left and right alike.",
                "That says nothing of whether the model that it comes from treats left and right alike.",
            )
        ),
        "7": tuple(
            "Whoever gives a linear probe the numbers of the rows in place of their positions, for the same rows, "
            f"finds {found}."
            for found in (f"an error that is larger by {offset}", "the same error")
        ),
        "8": tuple(
            f"Each of the rows {n_rows - 6} to {n_rows - 2} has a cosine of more than 0.5 with another row, which "
            f"hardly one of as many independent random rows of this width would have. {conclusion}"
            for conclusion in (
                "So training has moved these rows.",
                "Even so, training may never have moved these rows.",
            )
        ),
        "9": tuple(
            f"The odd rows of the stretches {' and '.join(in_order)} are read, from the even ones, with an error below "
            f"one position. {conclusion}"
            for conclusion in (
                f"So the model can count at least to {truth['n_positions'] // 4}.",
                "So are those of a random walk of this size: the number does not show that the model counts.",
            )
        ),
        "10": tuple(
            f"Of the four stretches, each less its mean, {name_of['circle']} has the highest translation invariance. "
            f"{conclusion}"
            for conclusion in (
                "So positions are read best from its rows.",
                "Even so, the odd rows of another stretch are read better from the even ones, by a linear map.",
            )
        ),
    }
    holds = dict(zip(both, draws.order([True, False] * 5), strict=True))
    return {number: both[number][holds[number]] for number in both}, holds
