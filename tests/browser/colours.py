"""Colours as a browser reports them, and how well they are told apart."""

import re

WHITE = "rgb(255, 255, 255)"
LIGHT_AND_DARK = ["light", "dark"]
# A luminance: what is darker is a dark background, what is lighter is light text.
DARK = 0.1
# What WCAG 2 asks of text of ordinary size, and of lines and marks.
READABLE, VISIBLE = 4.5, 3


def luminance(colour):
    """Return the relative luminance of `rgb(r, g, b)` as WCAG 2 defines it, from 0 for black to 1 for white."""
    channels = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first, second):
    """Return the contrast ratio of two colours, from 1 for equal ones to 21 for black and white."""
    low, high = sorted(map(luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def ink_and_paper(locator):
    """Return the colour of an element's text, and that of the nearest background behind it that is not clear."""
    return locator.evaluate(
        """(node) => {
          const paper = (place) => (place ? getComputedStyle(place).backgroundColor : "rgb(255, 255, 255)");
          let place = node;
          while (/, 0\\)$/.test(paper(place))) place = place.parentElement;
          return [getComputedStyle(node).color, paper(place)];
        }"""
    )
