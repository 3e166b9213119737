"""Random numbers of a course: what `make course` draws for each assignment, or for each student."""

import hashlib

import numpy as np


class Draws:
    """Random numbers from a seed, the same on every machine and with every version of a library.

    Args:
        name: the assignment.
        seed: of the course, or of one student in it.
    """

    def __init__(self, name, seed):
        self.name, self.seed, self.used = name, seed, 0

    def uniform(self, *shape):
        """Numbers between 0 and 1."""
        self.used += 1
        digest = hashlib.shake_256(f"{self.name} {self.seed} {self.used}".encode()).digest(4 * int(np.prod(shape)))
        return (np.frombuffer(digest, "<u4").reshape(shape) + 0.5) / 2.0**32

    def normal(self, *shape):
        """Nearly normal: the sum of twelve uniform numbers has the variance 1."""
        return self.uniform(12, *shape).sum(axis=0) - 6

    def whole(self, low, high):
        """A whole number, both ends among them."""
        return low + int(self.uniform(1)[0] * (high - low + 1))

    def order(self, items):
        """The items in an order of chance."""
        return [items[i] for i in np.argsort(self.uniform(len(items)))]

    def one(self, items):
        """One of the items."""
        return items[self.whole(0, len(items) - 1)]

    def coin(self):
        """Heads or tails."""
        return self.whole(0, 1) == 1

    def until(self, draw, holds):
        """What `draw` gives, drawn again until it holds; it takes these numbers and gives a dictionary."""
        return next(found for found in (draw(self) for _ in range(100_000)) if holds(found))
