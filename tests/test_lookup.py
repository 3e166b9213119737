import pytest
import torch
import torch.nn.functional as F
from torch import nn

from posembed import one_hot_lookup
from posembed.lookup import gradient_bytes, rows_with_gradient

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
IDS = {
    "a number": torch.tensor(3),
    "one": torch.tensor([3]),
    "a vector with repeats": torch.tensor([1, 4, 1, 0, 4, 4]),
    "a batch": torch.tensor([[1, 2, 3], [4, 0, 1]]),
    "three axes": torch.arange(24).reshape(2, 3, 4) % 5,
    "every row": torch.arange(5),
    "empty": torch.zeros(0, dtype=torch.int64),
    "an empty batch": torch.zeros(2, 0, 3, dtype=torch.int64),
}


def random_table(n_rows=5, d_model=4, seed=0, dtype=torch.float32):
    return torch.randn(n_rows, d_model, generator=torch.Generator().manual_seed(seed)).to(dtype)


def bits(tensor):
    return tensor.detach().reshape(-1).view(torch.uint8)


def assert_identical(actual, expected):
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    assert torch.equal(bits(actual), bits(expected))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_the_rows_are_those_of_a_lookup_bit_for_bit(ids, dtype):
    """One product with a one and zeros otherwise: nothing is rounded."""
    table = random_table(dtype=dtype)
    assert_identical(one_hot_lookup(table, ids), F.embedding(ids, table))


SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint8, torch.uint16, torch.uint32, torch.uint64]


@pytest.mark.parametrize("dtype", SIGNED + UNSIGNED, ids=str)
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_ids_of_every_integer_format(ids, dtype):
    table = random_table()
    assert_identical(one_hot_lookup(table, ids.to(dtype)), F.embedding(ids, table))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_autocast_changes_nothing(dtype):
    """It turns products to bfloat16, but a lookup keeps its rows as they are, and so are their gradients."""
    table, ids, upstream = random_table(dtype=dtype), torch.tensor([3, 1]), torch.full((2, 4), 1.01, dtype=dtype)
    leaf = table.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        rows = one_hot_lookup(leaf, ids)
    assert_identical(rows, table[ids])
    rows.backward(upstream)
    assert_identical(leaf.grad, torch.zeros_like(table).index_copy(0, ids, upstream))


def table_gradients(ids, table, upstream):
    """The gradient of the table, through the product and through the lookup."""
    for lookup in (lambda t: one_hot_lookup(t, ids), lambda t: F.embedding(ids, t)):
        leaf = table.clone().requires_grad_()
        yield torch.autograd.grad(lookup(leaf), leaf, upstream)[0]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_the_gradient_is_that_of_a_lookup_bit_for_bit(ids, dtype):
    """With small integers coming back every sum is exact, in whatever order it is taken."""
    upstream = torch.randint(1, 5, (*ids.shape, 4), generator=torch.Generator().manual_seed(1)).to(dtype)
    product, lookup = table_gradients(ids, random_table(dtype=dtype), upstream)
    assert_identical(product, lookup)


@pytest.mark.parametrize("sparse", [False, True])
class TestGradientOfAnEmbedding:
    def after_backward(self, ids, sparse, **options):
        embedding = nn.Embedding(6, 3, sparse=sparse, **options)
        (embedding(torch.tensor(ids)) * torch.arange(1.0, 4.0)).sum().backward()
        return embedding

    @pytest.mark.parametrize(
        ("ids", "rows"),
        [([4, 1, 4], [1, 4]), ([5], [5]), ([[0, 2], [2, 0]], [0, 2]), ([5, 4, 3, 2, 1, 0], list(range(6)))],
    )
    def test_rows_in_rising_order_each_once(self, ids, rows, sparse):
        assert rows_with_gradient(self.after_backward(ids, sparse)) == rows

    @pytest.mark.parametrize("padding_idx", [0, 4])
    def test_padding_gets_none(self, padding_idx, sparse):
        assert rows_with_gradient(self.after_backward([0, 4, 2, 0], sparse, padding_idx=padding_idx)) == [
            row for row in (0, 2, 4) if row != padding_idx
        ]

    def test_a_gradient_of_zeros(self, sparse):
        """An entry in a sparse gradient, and nothing to be seen in a dense one."""
        embedding = nn.Embedding(6, 3, sparse=sparse)
        (0.0 * embedding(torch.tensor([4, 1]))).sum().backward()
        assert rows_with_gradient(embedding) == ([1, 4] if sparse else [])

    def test_one_entry_of_a_row_is_enough(self, sparse):
        embedding = nn.Embedding(6, 3, sparse=sparse)
        embedding(torch.tensor([4, 1]))[:, 2].sum().backward()
        assert rows_with_gradient(embedding) == [1, 4]

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
    def test_bytes(self, sparse, dtype):
        embedding = nn.Embedding(6, 3, sparse=sparse, dtype=dtype)
        embedding(torch.tensor([4, 1, 4, 2])).sum().backward()
        # Sparse: an eight-byte index and a row for each of the four ids, repeats included.
        assert gradient_bytes(embedding) == (4 * (8 + 3 * dtype.itemsize) if sparse else 6 * 3 * dtype.itemsize)
