"""posembed's schemes beside their peers, in one run: `make bench`, or `python -m benchmarks --help`."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The adapters to other libraries are those of the tests.
if str(ROOT / "tests") not in sys.path:
    sys.path.append(str(ROOT / "tests"))
# torch.compile works in this process: its workers would stay, and take time from what is measured.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
