"""Refused where similarities are measured, or biases made."""

import numpy as np
import torch

from posembed import scheme
from posembed.encodings import ALiBi, RoPE, Shaw, Sinusoidal
from posembed.errors import PositionTableError, PropertiesInputError
from posembed.similarity import perturbed_bias, properties, properties_of_matrix

TABLE, MATRIX = torch.randn(20, 4), torch.randn(9, 9)
MASKED = torch.randn(9, 9).masked_fill(torch.ones(9, 9).triu(1).bool(), -torch.inf)

PADDED = MASKED.masked_fill(torch.arange(9) < 3, -1e9).masked_fill(MASKED.isinf(), -1e9).softmax(-1)
PADDED[:3] = 1 / 9


def changed(matrix, place, value):
    matrix = matrix.clone()
    matrix[place] = value
    return matrix


P, T = PropertiesInputError, PositionTableError
CASES = {
    "a matrix that is not square": (
        P,
        lambda: properties_of_matrix(torch.zeros(3, 4)),
        "matrix is a Tensor of torch.float32 and shape (3, 4); give a tensor",
    ),
    "a bias of any length": (P, lambda: properties(ALiBi(2)), "ALiBi has no table, and serves any length; say n="),
    "a bias that reads queries": (P, lambda: properties(Shaw(4), n=9), "Shaw has no bias that the offset decides"),
    "rows of any length": (
        P,
        lambda: properties(Sinusoidal(4)),
        "Sinusoidal has no table, and serves any length; say n=",
    ),
    "angles": (P, lambda: properties(RoPE(4), n=9), "the product of what scheme.rotate turns"),
    "rows beside a bias": (
        P,
        lambda: properties(scheme("sinusoidal+alibi", d_model=8, n_heads=2), n=9),
        "measure each alone: of a sum, properties(part, n=9) for part in scheme",
    ),
    "a rotation beside a bias": (P, lambda: properties(RoPE(4) + ALiBi(2), n=9), "acts in several places"),
    "a scheme for each layer": (
        P,
        lambda: properties(Sinusoidal(8) + scheme("shaw", d_model=8, n_heads=2, n_layers=2), n=9),
        "measure one: properties(scheme.layer(0), n=9)",
    ),
    "a number of rows for positions": (P, lambda: properties(TABLE, n=9), "of a table choose rows="),
    "whole numbers": (P, lambda: properties_of_matrix(torch.zeros(3, 3, dtype=torch.int64)), "Float[Tensor"),
    "a masked array": (P, lambda: properties_of_matrix(np.ma.masked_array(np.eye(3), np.eye(3) > 0)), "would be lost"),
    "an offset that is none": (
        P,
        lambda: properties(TABLE, max_offset=0),
        "max_offset is 0; it must be a whole number",
    ),
    "an unknown similarity": (
        P,
        lambda: properties(TABLE, similarity="l2"),
        "similarity is 'l2'; choose among dot, cosine",
    ),
    "rows that are not there": (P, lambda: properties(TABLE, rows=21), "rows=21 goes beyond"),
    "a row that is NaN": (T, lambda: properties(changed(TABLE, (3, 1), torch.nan)), "row 3 of the table holds NaN"),
    "infinity in a matrix": (
        T,
        lambda: properties_of_matrix(changed(MATRIX, (4, 6), torch.inf)),
        "row 4 of the matrix",
    ),
    "minus infinity in the past": (T, lambda: properties_of_matrix(changed(MASKED, (5, 2), -torch.inf)), "row 5 of"),
    "a future open in part": (T, lambda: properties_of_matrix(changed(MASKED, (4, 8), 0.0)), "may only fill the whole"),
    "rows of padding in front": (
        P,
        lambda: properties_of_matrix(PADDED),
        "3 rows are spread evenly over all keys and the others hide the future, so they are padding; leave them out",
    ),
    "an unknown property": (
        P,
        lambda: perturbed_bias("locality", 1),
        "violated is 'locality'; choose among monotonicity",
    ),
    "too large a dose": (P, lambda: perturbed_bias("symmetry", 60), "with 32 positions allows doses from 0 to 51"),
}
