# ruff: noqa: F821 (names of course/grading/checking.py, behind which `make course` puts this)
"""What the tests of this assignment share; `make course` puts it behind course/grading/checking.py."""

# What a candidate may be made of. All of it stands in each, so that no name in one tells what it gives.
PARTS = {
    "itself": "x",
    "softmax": "x.softmax(dim=-1)",
    "running sum": "x.cumsum(dim=1)",
    "centred": "x - x.mean(dim=1, keepdim=True)",
    "running mean": "x.cumsum(dim=1) / torch.arange(1, x.shape[1] + 1)[:, None]",
    "both neighbours": "x.roll(1, dims=1) + x.roll(-1, dims=1)",
    "first three": "x[:, :3].sum(dim=1, keepdim=True).expand_as(x)",
    "mean": "x.mean(dim=1, keepdim=True).expand_as(x)",
    "first text": "x[:1].expand_as(x)",
}


def sums(env, **candidates):
    """Functions that add up some of the parts, each times a number that belongs to the submission."""
    found = {}
    for name, parts in candidates.items():
        size = 1 + seed_of(env, name) % 1000 / 1000
        weights = [size if part in parts else 0.0 for part in PARTS]
        terms = ", ".join(PARTS.values())
        found[name] = f"def candidate(x): return sum(w * part for w, part in zip({weights}, ({terms})))"
    return found
