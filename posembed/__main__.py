"""``python -m posembed``: the command line, for where the ``posembed`` script is not on the path."""

from .cli import main

if __name__ == "__main__":
    main()
