# ruff: noqa: F821 (names of course/grading/checking.py, behind which `make course` puts this)
"""What the tests of this assignment share; `make course` puts it behind course/grading/checking.py."""


def easy_tables(env):
    """Three lines and three tables of random rows, of sizes of chance that say nothing of which they are."""
    random = np.random.default_rng(seed_of(env, "easy"))
    tables = {}
    for kind in ("line", "random"):
        for i in range(3):
            n, width = int(random.integers(90, 150)), int(random.integers(3, 30))
            rows = random.normal(size=(n, width))
            if kind == "line":
                rows = rows / 10**4 + np.arange(n)[:, None] / n * random.normal(size=width)
            tables[f"{kind} {i}"] = rows
    return tables


def said_of_tables(is_read, env, **tables):
    """What `is_read` says of each table, by its name. A guess is found out, so that it earns nothing.

    Each table is asked about twice, in an order of chance: the second time turned, which changes no fit, and no column
    alone is what it was. And tables that are easy to tell apart are asked about in between.
    """
    import random

    easy, chance = easy_tables(env), np.random.default_rng(seed_of(env, "turned"))
    asked = list((tables | easy).items())
    asked += [(name, x @ np.linalg.qr(chance.normal(size=[x.shape[1]] * 2))[0]) for name, x in asked]
    random.Random(seed_of(env, len(asked))).shuffle(asked)
    said = {}
    for name, x in asked:
        told = truth(is_read(np.ascontiguousarray(x)), "is_read")
        assert said.setdefault(name, told) is told, "asked twice about one table, it says both True and False"
    assert all(said[name] for name in easy if "line" in name), "a straight line is not read"
    wrong = [name for name in easy if "random" in name and said[name]]
    assert not wrong, "random rows are read: which rows was the error measured on?"
    return said
