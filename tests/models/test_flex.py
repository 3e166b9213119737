"""FlexAttention with a scheme's hook gives the numbers of attention without it."""

import pytest
import torch

from posembed.models import flex


def test_a_mask_that_is_kept_serves_training_too():
    with torch.inference_mode():
        mask = flex._unpadded(3, 5, True, torch.device("cpu"))
    assert not mask.kv_num_blocks.is_inference()
    assert flex._unpadded(3, 5, True, torch.device("cpu")) is mask
    for causal, seen in ((True, torch.ones(3, 5).tril(2)), (False, torch.ones(3, 5))):
        sees = flex._unpadded(3, 5, causal, torch.device("cpu")).mask_mod
        found = sees(0, 0, torch.arange(3)[:, None], torch.arange(5))
        assert torch.equal(found, seen.bool())


@pytest.mark.slow
def test_every_hook_and_mask_is_the_formula(cases_of):
    found = cases_of("flexed")
    assert len(found) == 64
    # Sums of a few hundred products in float32, of numbers around one.
    assert {case: difference for case, difference in found.items() if not difference < 5e-6} == {}


@pytest.mark.slow
def test_more_hooks_than_the_compilers_limit_are_all_compiled(cases_of):
    assert cases_of("flex_programs") == {"programs": 2, "given up": 0}
