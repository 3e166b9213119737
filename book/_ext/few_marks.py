"""Code with marks where they show something.

Dots, equals signs and numbers, each with a mark of its own, were most of the
elements of a page, and a browser is slowed by each.
"""

from pygments.formatters import HtmlFormatter
from pygments.token import Token
from sphinx.highlighting import PygmentsBridge

# What looks alike in every mode has one mark, or none.
ONE_MARK = (Token.Comment, Token.Literal.String, Token.Operator.Word)
PLAIN = (
    Token.Operator,
    Token.Punctuation,
    Token.Literal.Number,
    Token.Text,
    Token.Generic.Output,
)


def shown(kind):
    """The kind of a token by which it is marked."""
    for family in ONE_MARK:
        if kind in family:
            return family
    is_plain = kind is Token.Name or any(kind in family for family in PLAIN)
    return Token.Text if is_plain else kind


class FewMarks(HtmlFormatter):
    """Write neighbours of one kind as one, and what is plain without a mark."""

    def format_unencoded(self, tokensource, outfile):
        """Pass tokens on by how they are shown; what is empty is no token."""
        tokens = ((shown(kind), text) for kind, text in tokensource if text)
        super().format_unencoded(tokens, outfile)


def setup(app):
    """Let Sphinx write code by it; Sphinx calls this."""
    PygmentsBridge.html_formatter = FewMarks
