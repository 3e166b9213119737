"""What is refused because it would give a wrong number in silence, and what a reader of the docs may mistake.

A module a room of the package, each with `CASES`: by a sentence that says what is refused, the error, a function
without arguments that raises it, and words of its message.
"""
