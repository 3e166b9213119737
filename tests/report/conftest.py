import dataclasses
import datetime

import pytest
import torch

from posembed import sinusoidal
from posembed.report.findings import examine
from posembed.report.page import render
from posembed.tables import as_table


@pytest.fixture(scope="session")
def made():
    """The day on which the pages were made."""
    return datetime.date(2026, 1, 2)


@pytest.fixture(scope="session")
def waves():
    """A sinusoid whose row 40 was never trained."""
    weight = sinusoidal(64, 32).clone()
    weight[40] = 0
    return dataclasses.replace(as_table(weight), source="some/waves", file="model.safetensors", revision="c0ffee")


@pytest.fixture(scope="session")
def findings(waves):
    return examine(waves, "waves")


@pytest.fixture(scope="session")
def broken():
    """A table of which a row holds NaN, so that nothing can be computed but the health of its rows."""
    weight = sinusoidal(20, 16).clone()
    weight[3] = torch.nan
    return examine(as_table(weight), "broken")


@pytest.fixture(scope="session")
def page(findings, made):
    return render([findings], made)
