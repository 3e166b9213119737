"""What results look like to people and to machines."""

import json

import numpy as np
import pytest
from probing_tables import linear_table

from posembed.probing import probe_order, probe_table, spectrum
from posembed.serialization import plain

every_measure = pytest.mark.parametrize("measure", [probe_table, probe_order, spectrum])


@every_measure
def test_every_result_becomes_json_and_back(measure):
    found = measure(linear_table(40, noise=1.0))
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert written == found.to_dict()
    assert written["n_rows"] == 40 and written["d_model"] == 24


@every_measure
def test_every_result_says_what_it_is_of_in_lines_that_fit(measure):
    found = measure(linear_table(40, noise=1.0))
    lines = str(found).splitlines()
    assert "40 rows x 24" in lines[0] and found.source in lines[0]
    assert len(lines) >= 4


def test_a_probe_without_a_test_says_so():
    table = linear_table(20, noise=1.0)
    assert "no test" in str(probe_table(table, split="all")) and "no test" in str(probe_order(table, split="all"))
    assert "no test" not in str(probe_table(table)) + str(probe_order(table))


def test_what_json_lacks_is_replaced():
    given = {"a": np.float32(1.5), 2: (np.nan, float("inf")), "c": np.array([[1, 2]]), "d": None, "e": np.bool_(True)}
    assert plain(given) == {"a": 1.5, "2": [None, None], "c": [[1, 2]], "d": None, "e": True}
