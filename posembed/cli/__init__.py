"""The command line: ``table``, ``probe``, ``properties``, ``report``, ``audit``, ``train`` ..."""

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code.

    The code is 0 when all went well, 1 for an error of ours in one line on stderr, 2 for a call that is not
    understood, 130 when it was interrupted.

    Args:
        arguments: the words after the command's name; by default those of this process.

    Raises:
        SystemExit: always; it carries the exit code.

    Example:
        >>> import contextlib, io
        >>> from posembed.cli import main
        >>> with contextlib.redirect_stdout(io.StringIO()) as shown:
        ...     try:
        ...         main(["--version"])
        ...     except SystemExit as end:
        ...         code = end.code
        >>> shown.getvalue()[:9], code
        ('posembed ', 0)
    """
    try:
        from .app import run
    except ModuleNotFoundError as error:
        # Everything else in posembed works without what draws in a terminal.
        raise SystemExit(f'posembed: there is no {error.name} here; pip install "posembed[cli]"') from None
    run(arguments)
