"""FlexAttention with a scheme's hook gives the numbers of attention without it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_every_hook_and_mask_is_the_formula(fresh_environment):
    script = Path(__file__).with_name("flexed.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=fresh_environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 64
    # Sums of a few hundred products in float32, of numbers around one.
    assert {case: difference for case, difference in found.items() if not difference < 5e-6} == {}
