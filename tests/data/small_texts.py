"""Texts to be cut, counted and encoded."""

import random


def prose(n_words, seed=0):
    """Words of several lengths and scripts, and all kinds of white space between them."""
    generator = random.Random(seed)
    words = ["a", "to", "the", "speech", "government's", "peace", "naïve", "東京", "🙂", "1790", "...", "don't"]
    gaps = [" "] * 12 + ["\n", "\n\n", "  ", "\t", " \n ", "\u00a0", "\r\n"]
    return "".join(generator.choice(words) + generator.choice(gaps) for _ in range(n_words))
