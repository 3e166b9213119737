"""The functions and the numbers of one course: of the first question, and of questions that are answered on paper."""

# What treats all places alike, and what does not; students get three of each.
EQUIVARIANT = (
    "x.softmax(dim=1)",
    "x - x.mean(dim=1, keepdim=True)",
    "F.layer_norm(x, x.shape[-1:])",
    "x / x.norm(dim=1, keepdim=True)",
    "x * x.amax(dim=1, keepdim=True)",
    "x.softmax(dim=2)",
    "x.sum(dim=1, keepdim=True) - x",
    "x.flip(2)",
)
NOT = (
    "x.cumsum(dim=1)",
    "x.sort(dim=1).values",
    "x + x[:, :1]",
    "x.flip(1)",
    "x.roll(1, dims=1)",
    "x.cummax(dim=1).values",
    "x * torch.arange(x.shape[1])[:, None]",
    "x - x[:, -1:]",
)
LETTERS = "abcdef"
VALUES = range(-9, 10)


def make(draws):
    """No files, and what is true."""
    return {}, functions(draws) | head(draws) | row(draws)


def functions(draws):
    """Six functions, in pairs of which one is equivariant: what is said of all alike finds none of them."""
    pairs = zip(draws.order(EQUIVARIANT)[:3], draws.order(NOT)[:3], strict=True)
    shown, letters = {}, draws.order(LETTERS)
    truth = {"pairs": [letters[:2], letters[2:4], letters[4:]], "equivariant": {}}
    for places, pair in zip(truth["pairs"], pairs, strict=True):
        shown |= dict(zip(places, pair, strict=True))
        truth["equivariant"] |= dict(zip(places, (True, False), strict=True))
    lines = [f"- `{letter}`: `{shown[letter]}`" for letter in LETTERS]
    return (
        truth | {"functions": "\n".join(lines)} | {f"is_{letter}": truth["equivariant"][letter] for letter in LETTERS}
    )


def head(draws):
    """Logits as logarithms of whole numbers, values, and what attention gives."""

    def drawn(draws):
        first, third = draws.order(range(2, 8))[:2]
        values = draws.order(VALUES)[:3]
        both = first * values[0] + values[1]
        right = {"without_mask": (both + third * values[2]) / (first + third + 1), "with_mask": both / (first + 1)}
        shares = {"first_share": first, "third_share": third, "values": values}
        return right | shares | dict(zip(("value_1", "value_2", "value_3"), values, strict=True))

    def apart(found):
        told = [0, 0.5, 1, *found["values"], found["without_mask"], found["with_mask"]]
        return min(abs(a - b) for i, a in enumerate(told) for b in told[:i]) > 0.2

    return draws.until(drawn, apart)


def row(draws):
    """A row of a table under SGD with momentum: once a gradient, then twice none."""
    rate, momentum = draws.one((0.05, 0.1, 0.2, 0.5)), draws.one((0.5, 0.6, 0.7, 0.8, 0.9))
    gradient = draws.one((0.5, 2, 3, 4))
    moved = round(-rate * gradient * (1 + momentum + momentum**2), 6)
    return {"row": draws.whole(2, 9), "rate": rate, "momentum": momentum, "gradient": gradient, "moved": moved}
