"""Tests of the built book in a browser. A package, because tests/book has a test_pages.py too."""

import pytest

# What these helpers assert is explained as in a test.
pytest.register_assert_rewrite(f"{__name__}.checks")
