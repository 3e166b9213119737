import jaxtyping

# The shapes in the package's signatures are checked while tests and doctests run, at no cost to a reader. It stands
# here because `pytest posembed` does not read tests/conftest.py, and because it must run before posembed is imported.
jaxtyping.install_import_hook("posembed", "beartype.beartype")
