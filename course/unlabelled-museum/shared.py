# ruff: noqa: F821 (names of course/grading/checking.py, behind which `make course` puts this)
"""What the tests of this assignment share; `make course` puts it behind course/grading/checking.py."""

# Why what looks wrong in a piece without a fault is right.
CLEAN = {
    "a": "with both ends of the series included, the exponents are just these",
    "b": "padding has the count 0, and so row 1",
    "d": "the sign is right, and so are the slopes: compare with those of twice as many heads",
    "f": "padding sees nothing and is looked at by nobody",
    "g": "pass an identity matrix as values, and count what each query sees",
    "h": "it is T5's formula, written with log2. Bucket 16 is empty in T5 too",
}


def named(name, value):
    """A dictionary of faults and their properties, which may be empty."""
    assert isinstance(value, dict), f"{name}: put a dict of faults and properties, {{}} where there is no fault"
    return {key: plain(each) for key, each in dict.items(value)}


def is_an_answer(name, found, faults, properties):
    """Nothing, unless a name is none of the lists."""
    told = named(name, found)
    unknown = [each for each in told if each not in list(faults)]
    assert not unknown, f"{name}: {unknown[0]!r} is not in the list of faults"
    unknown = [each for each in told.values() if each not in list(properties)]
    assert not unknown, f"{name}: {unknown[0]!r} is not in the list of properties; put one for each fault"


def refuse_no_search(env, right):
    """Nothing, unless no fault is the answer and none was found anywhere else: that is not to look."""
    faults = drawn(env)["faults"]
    looked = any(of_piece and set(found_in(env, letter)) == set(of_piece) for letter, of_piece in faults.items())
    assert right not in ({}, "none") or looked, (
        "no fault anywhere is not an answer: this counts beside a piece in which you found what is wrong"
    )


def found_in(env, letter):
    """What was found in a piece, whichever question asks for it; nothing where that is no answer, or is not there."""
    try:
        return named(f"found_{letter}", env.get(f"found_{letter}"))
    except Exception:
        return {}


def refuse_found(env, letter, found, most):
    """Nothing, unless what was found in a piece is not there, or is not "some", "all" or "all with properties"."""
    faults, hints, found = drawn(env)["faults"][letter], drawn(env)["hints"], named(f"found_{letter}", found)
    assert faults or not found, f"Piece {letter.upper()} has no fault: {CLEAN.get(letter)}"
    refuse_no_search(env, faults)
    missing = [fault for fault in faults if fault not in found]
    assert len(missing) < len(faults) or not faults, hints[missing[0]]
    assert set(found) <= set(faults), f"piece {letter.upper()} has a fault that you found, but not all that you name"
    if most != "some":
        assert not missing, hints[missing[0]]
    if most == "all with properties":
        wrong = [fault for fault, those in faults.items() if found[fault] not in those]
        assert not wrong, f"{wrong[0]}: try the property on code that has this fault alone"
