"""Tests of the built book in a browser. A package, because tests/book has a test_pages.py too."""
