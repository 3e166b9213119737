"""What cells print, on a phone: sentences wrap, and columns stay columns.

In columns a line is a label and the rest, two spaces or more apart at the same
place in all lines that stand together; the rest scrolls beside its label. A
line that says by itself what its numbers are wraps.
"""

import html
import re
from itertools import groupby
from pathlib import Path

# Of a stream, or of a value: up to its text, and the text.
OUTPUT = re.compile(
    r'(<div class="output (?:stream|text_plain))\b(.*?<pre>(?:<span></span>)?)'
    r"([^<]*)(?=</pre>)",
    re.DOTALL,
)
COLUMNS = re.compile(r"\S {2,}\S")
# How a message of a check begins, in the museum.
FILLED = "caught: "
# Where lines are boxes, it would be one more.
END = '<span class="end">\n</span>'
PART = re.compile(r" {2,}\S")
MEASURED, NUMBER = re.compile(r"\d\.\d|\("), re.compile(r"[-+]?[\d.]+")
# A row of a table, whatever words are in it.
ROW = re.compile(r"(?:\d\.\d+ +[-+]?){4}\d\.\d")
WORD, DIGIT = re.compile(r"[A-Za-z]{3,}"), re.compile(r"\d")


def shape(output):
    """An output whose lines have parts, or which may wrap as it is."""
    start, rest, text = output.groups()
    if not COLUMNS.search(text):
        return f"{start} running{rest}{refilled(text)}"
    lines = html.unescape(text).rstrip("\n").split("\n")
    return f"{start}{rest}{''.join(marked(lines))}"


def refilled(text):
    """Let a message that was filled to a width be filled to another one."""
    if not text.startswith(FILLED):
        return text
    broken = '<span class="filled">\n</span>'
    return broken.join(text.rstrip("\n").split("\n")) + "\n"


def marked(lines):
    """Each line in its marks; what stands above columns, a title say, wraps."""
    wide, kind = 0, "alone"
    for apart, group in groupby(
        lines, key=lambda each: bool(PART.search(each))
    ):
        some = list(group)
        if apart:
            wide = gutter(some)
            speaks = wide >= 0 and alone(some, wide)
            kind = "alone" if speaks else "in-columns"
            wide = 0 if speaks else max(wide, 0)
        for line in some:
            wide = wide if line.strip() else 0
            own = (kind, wide) if apart or fits(line, wide) else ("alone", 0)
            marks, inner = f"line {own[0]}", parts(line, own[1])
            yield f'<span class="{marks}">{inner}{END}</span>'


def fits(line, wide):
    """Whether a longest label leaves one blank before the column."""
    return wide and line[:wide].endswith(" ") and line[wide : wide + 1].strip()


def gutter(lines):
    """Where labels end: before the first column that is lined up.

    After two blanks in all lines, or one where a sign takes the other. 0 where
    there are no columns, -1 where it cannot be told.
    """
    longest = max(map(len, lines))
    padded = [line.ljust(longest) for line in lines]
    blank = [{*column} == {" "} for column in zip(*padded, strict=True)]
    start = next((k for k, empty in enumerate(blank) if not empty), longest)
    ends = [k for k in range(start + 1, longest) if blank[k - 1] > blank[k]]
    apart = [end for end in ends if blank[end - 2]]
    for end in (*apart[:1], *(end for end in ends if signed(lines, end))):
        # What holds numbers of a column is more than a label.
        if not any(MEASURED.search(line[:end]) for line in lines):
            return end
    return -1 if apart else 0


def signed(lines, end):
    """Whether numbers begin here, below a header or from the first line on."""
    rests = [line[end:].strip() for line in lines]
    return all(NUMBER.match(rest) for rest in rests[1:]) and len(rests) > 1


def alone(lines, wide):
    """Whether each line says by itself what its numbers are."""
    first = lines[0]
    blank = not first[: max(wide, 2)].strip()
    is_header = not (MEASURED if blank else DIGIT).search(first)
    # Behind the label, or else behind the first number.
    rests = (
        line[wide:] if wide else DIGIT.split(line, maxsplit=1)[-1]
        for line in lines
    )
    if is_header or any(ROW.search(line) for line in lines):
        return False
    return all(WORD.search(rest) for rest in rests)


def parts(line, wide):
    """A line's label and rest, or the line."""
    if not wide:
        return html.escape(line, quote=False)
    label, rest = (
        html.escape(part, quote=False) for part in (line[:wide], line[wide:])
    )
    return (
        f'<span class="label" style="--ch: {wide}">{label}</span>'
        f'<span class="rest">{rest}</span>'
    )


def shape_outputs(app, exception):
    """Mark the outputs of the finished pages."""
    if exception or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(OUTPUT.sub(shape, text), encoding="utf-8")


def setup(app):
    """Come before what repairs pages; Sphinx calls this."""
    app.connect("build-finished", shape_outputs, priority=450)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
