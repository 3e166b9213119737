"""The list of what is refused: a named error, one line, what was given and what to do."""

import importlib
import pkgutil

import pytest
import refused
from refusals import refused as message_of

pytestmark = pytest.mark.bad_input
ROOMS = {room.name: importlib.import_module(f"refused.{room.name}") for room in pkgutil.iter_modules(refused.__path__)}
CASES = {f"{name}: {case}": of for name, room in ROOMS.items() for case, of in room.CASES.items()}


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_in_one_line(case):
    error, call, words = CASES[case]
    assert words in message_of(error, call)
