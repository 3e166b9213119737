"""Measure its three properties.

Once the definitions are settled they are a few lines of NumPy, and nothing is lost by writing them. What the package
adds are the cases at the edges: ties that rounding alone would order, rows that are not finite, causal maps, and tables
of more rows than a matrix can hold.
"""

import numpy as np

from .controls import given as given  # the same table

ABSENT = {}


def posembed(table):
    """The three numbers, with ties and bad rows taken care of."""
    from posembed import properties

    found = properties(table, max_offset=50)
    return found.monotonicity, found.translation_invariance, found.symmetry


def plain(table):
    """The three numbers, by NumPy; ties are those that are exact."""
    import numpy as np

    x = table.double().numpy()
    a, n = x @ x.T, len(x)
    sides = [
        side[:50] for i in range(n) for side in (a[i, i + 1 :], a[i, :i][::-1])
    ]
    signs = [
        np.sign(side[:, None] - side)[np.triu_indices(len(side), 1)]
        for side in sides
    ]
    monotonicity = (1 + np.concatenate(signs).mean()) / 2
    diagonals = [a.diagonal(offset) for offset in range(1 - n, n) if offset]
    inside = sum(len(each) * each.var() for each in diagonals)
    invariance = 1 - inside / (n * (n - 1) * np.concatenate(diagonals).var())
    symmetry = 1 - ((a - a.T) ** 2).sum() / (4 * ((a - a.mean()) ** 2).sum())
    return monotonicity, invariance, symmetry


def shown(answer, _):
    """In their order."""
    return "monotonicity {:.4f}, invariance {:.4f}, symmetry {:.0f}".format(
        *answer
    )


def agree(answers, _):
    """The same up to rounding."""
    assert all(
        np.allclose(each, answers["posembed"], atol=1e-9)
        for each in answers.values()
    )
