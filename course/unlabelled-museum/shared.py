# ruff: noqa: F821 (names of course/grading/checking.py, behind which `make course` puts this)
"""What the tests of this assignment share; `make course` puts it behind course/grading/checking.py."""


def named(name, value):
    """A dictionary of faults and their properties, which may be empty."""
    assert isinstance(value, dict), f"{name}: put a dict of faults and properties, {{}} where there is no fault"
    return {key: plain(each) for key, each in dict.items(value)}


def found_one(faults):
    """Whether at least one of these faults was found alone: to find none anywhere is not to look."""
    return any(isinstance(found, dict) and list(found) == [fault] for fault, found in faults.items())
