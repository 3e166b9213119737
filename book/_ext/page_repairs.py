"""Repairs of the theme's pages that no option offers."""

import re
from collections import defaultdict
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path

from sphinx.errors import ExtensionError

# The theme loads its icons as fonts as well; the script that draws them would
# add more to each page than everything else together.
ICON_SCRIPT = re.compile(
    r'<script [^>]*src="[^"]*fontawesome/[^"]*\.js[^"]*"[^>]*></script>'
)
# Fonts cannot be taken from a file, are loaded again, and leave an error;
# scripts, which run in the end, came before the styles that all waits for.
PRELOAD = re.compile(r'<link rel="preload" as="(?:font|script)"[^>]*>')
# Until the theme's script has run, or where none may, "auto" has no colours.
UNKNOWN_COLOURS = re.compile(r'(<html [^>]*)data-theme="auto"')
# On a first visit all was drawn without them, and again when the script ran.
LATE_COLOURS = 'localStorage.getItem("theme") || "auto"'
EARLY_COLOURS = (
    '((mode) => (mode !== "auto" ? mode'
    ' : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"))'
    "(document.documentElement.dataset.mode)"
)
# The button that folds a part of the contents has a picture and no name.
UNNAMED_FOLD = '<summary><span class="toctree-toggle"'
NAMED_FOLD = UNNAMED_FOLD.replace(
    "<summary>", '<summary aria-label="The pages of this section">'
)
# What a note of the margin is a note to: below it where there is no margin.
NOTED = re.compile(
    r'((?:<aside class="margin sidebar">(?:(?!</aside>).)*</aside>\s*)+)'
    r"(<p>.*?</p>)",
    re.DOTALL,
)
WITH_NOTES = r'<div class="noted">\1\2</div>'
# On a phone it is scrolled, also by a keyboard, if it can have the focus.
WIDE_TABLE = re.compile(r'<table (class="[^"]*\b(?:wide|contrasts)\b[^"]*")')
SIGNATURE = re.compile(r'<dt class="sig .*?</dt>', re.DOTALL)
SIGNATURE_LINE = re.compile(r'<dd><em class="sig-param">(.*?)</em>(,?)</dd>')
# Parts of it that no style here tells apart.
PLAIN_PART = re.compile(r' class="(?:k|n|nn|p|s|w|sig-return[\w-]*)"')
# Shapes begin with a blank for type checkers. Names are long words.
SHAPE = re.compile(r"(?<=, )('|&#39;) (\w[\w ]*)\1(?=\])")
LONG_NAME_OF_API = re.compile(r"(?<=>)[\w.]{12,}(?=<)")
DEFAULT = re.compile(
    r'<span class="o">=</span>( ?)<span class="default_value">'
)
# What a function takes and raises, a paragraph in each point of the list.
FIELDS = re.compile(r'<dl class="field-list.*?</dl>', re.DOTALL)
FIELD = re.compile(r"<li><p>((?:(?!</?(?:p|li)>).)*)</p></li>", re.DOTALL)
# A name in the contents, which is one word of code, and the methods below it:
# half of the entries of some pages, which nobody was shown.
NAME_IN_CONTENTS = re.compile(
    r'nav-link" (href="[^"]*")><code class="[^"]*">([^<]*)</code></a>'
    r'(?:<ul class="[^"]*">\s*'
    r'(?:<li class="toc-h[45] [^\n]*</li>\s*)+</ul>\s*)?'
)
PLAIN_NAME = r'nav-link literal" \1>\2</a>'
# Drawings have a group around everything, most of them without a purpose.
DRAWING = re.compile(r'<svg [^>]*class="plot".*?</svg>', re.DOTALL)
NO_ATTRIBUTE = re.compile("")
# A column is at least as wide as its longest word; names are long words, and
# may go on in the next line between their parts.
TABLE = re.compile(r'<table [^>]*class="[^"]*\btable\b.*?</table>', re.DOTALL)
LONG_NAME = re.compile(r"[\w(]{12,}(?=[^<>]*<)")
PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[_(/:])(?=\w)")
# A number and its sign of per cent stay together in prose.
PROSE = re.compile(r"<(pre|script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)
SENTENCES = re.compile(
    r"<(pre|script|style|code|math|svg|table|option|title)\b.*?</\1>|<[^>]*>",
    re.DOTALL,
)
HYPHEN = re.compile(r"(?<![\w.,)\]/\N{EN DASH}-])-(?=\d)")
PER_CENT = re.compile(r"(?<=\d) %")
# A cell with more than some words; beside others on a phone it needs room.
CELL = re.compile(r"<td>(.*?)</td>", re.DOTALL)
TAG, MANY = re.compile(r"<[^>]*>"), 40
# The name of a test, which is longer than a line of a phone.
TEST_NAME = re.compile(r"(?<=>)tests/[\w/.]+::\w+(?=<)")
# On pages without a number figures and exercises are counted through the book:
# "Figure 8" is the only one of its page.
COUNTED_FIGURE = re.compile(
    r'<span class="caption-number">(?:Figure|Table) \d+ </span>'
)
COUNTED_EXERCISE = re.compile(r"(?<=Exercise )(\d+)(?!\.?\d)")
# Code, its marks, and neighbours with the same one.
CODE = re.compile(r"<pre>.*?</pre>", re.DOTALL)
MARK = re.compile(r'<span class="(\w+)">([^<]*)</span>')
NEIGHBOURS = re.compile(
    r'<span class="(\w+)">[^<]*</span>(?:\s*<span class="\1">[^<]*</span>)+'
)
# It keeps an empty first line, where there is one.
EMPTY_MARK = re.compile(r"<span></span>(?!\n)")
NUMBERS = ("m", "mb", "mf", "mh", "mi", "mo", "il")
STYLE_OF_MARK = re.compile(r"\.highlight \.(\w+) \{([^}]*)\}")
# The words of a name, which no style here tells apart.
WORD = re.compile(r'<span class="pre">([^<]*)</span>')
# A size in a style would be lost with the height, which follows the width.
SIZE = re.compile(r' style="width: (\d+)px; height: (\d+)px;"')
SIZED = r' width="\1" height="\2" loading="lazy"'
# Pages that run their own code by a server are not offered.
THEBE = re.compile(
    r'<script type="text/x-thebe-config">.*?</script>|'
    r"<script>kernelName = .*?</script>",
    re.DOTALL,
)
# Scripts run in their order once the page is there, the theme's and the
# search's too.
OTHER_SCRIPT = re.compile(r'<script (src="[^"]*")')
# What nobody uses before the first touch, menus, hints and the buttons that
# copy, comes then: book.js loads it, and no browser loads this type.
LATER_SCRIPT = re.compile(
    r'<script [^>]*src="([^"]*'
    r'/(?:bootstrap|clipboard\.min|copybutton)\.js[^"]*)"></script>'
)
# By what a page must have if it is to have the script.
NEEDS = {
    "togglebutton.js": re.compile(
        r'class="(?=[^"]*\bdropdown\b)[^"]*(?<![\w-])admonition\b'
    ),
    "design-tabs.js": re.compile('class="[^"]*\\bsd-tab-set\\b'),
}
# What the theme writes by a script, so that nobody sees it without one, holds
# up the page four times; a style hides it from those who have none.
WRITTEN = re.compile(
    r"<script>\s*document\.write\(`(.*?)`\);?\s*</script>", re.DOTALL
)
# Bootstrap's mark of the section that is read misses long sections, and stands
# still after a jump to the top: book.js has one of its own.
SPY = re.compile(r' data-bs-spy="scroll"')
# For paper the theme writes title and contents a second time.
ON_PAPER = re.compile(
    r'<div id="jb-print-docs-body".*?(?=<div id="searchbox">)', re.DOTALL
)
# What the search quotes of a page: its prose, without the bars around it.
SEARCH = {
    '[role="main"]': "article.bd-article",
    '[".headerlink", "script", "style"]': (
        '[".headerlink", "script", "style", ".cell", "h1"]'
    ),
    # Chapters and schemes come before what only names them.
    "    // let the scorer override scores with a custom scoring function\n": (
        "    Scorer.score = ([page, , , , score]) => score"
        ' + (page.startsWith("schemes/") ? 6 : page.includes("/") ? 4'
        " : /^(api|alternatives|benchmarks|conformance|errata|bibliography)/"
        ".test(page) ? -6 : 0);\n"
    ),
    # Its first and last word are whole ones.
    "text.substr(startWithContext, 240).trim()": (
        "text.substr(startWithContext, 240)"
        r'.replace(top ? /^\S*\s/ : "", "").replace(/\s\S*$/, "").trim()'
    ),
}

# Code that scrolls has a tab stop. The theme asked for the size of each box in
# turn and changed it, so that all of the page was laid out again and again; now
# each is asked when it is near.
SCROLLS = (
    "forEach((e=>{e.tabIndex=e.scrollWidth>e.clientWidth||"
    "e.scrollHeight>e.clientHeight?0:-1}))}"
)
TAB_STOPS = {
    'const e=()=>{document.querySelectorAll("pre, ': (
        "const near=new IntersectionObserver((seen=>seen"
        ".filter((e=>e.isIntersecting)).map((({target:e})=>[e,"
        "e.scrollWidth>e.clientWidth||e.scrollHeight>e.clientHeight]))"
        ".forEach((([e,scrolls])=>{e.tabIndex=scrolls?0:-1}))),"
        '{rootMargin:"2000px"}),'
        'e=()=>{document.querySelectorAll("pre, '
    ),
    SCROLLS: "forEach((e=>{near.unobserve(e),near.observe(e)}))}",
}
# What was looked for is marked in the text alone, where a word begins with it,
# and on the page that a reader came to from the search.
MARKS = {
    "indexOf(text);": (
        "search(new RegExp(`(?<![\\\\p{L}\\\\p{N}])"
        "${text.replace(/[.*+?^${}()|[\\]\\\\]/g, '\\\\$&')}`, 'u'));"
    ),
    'document.querySelector("body");': (
        'document.querySelector("article.bd-article") || document.body;'
    ),
    'localStorage.getItem("sphinx_highlight_terms")\n': (
        '(location.protocol === "file:"'
        " || /search\\.html/.test(document.referrer))\n"
        '        && localStorage.getItem("sphinx_highlight_terms")\n'
    ),
}
# Where the contents are a drawer, they are shut, and book.js moves them when
# they open: to ask where they are would lay out the page once more.
CONTENTS = {
    'if(!document.querySelector(".bd-docs-nav"))return;': (
        'if(!document.querySelector(".bd-docs-nav")'
        '||matchMedia("(max-width: 991px)").matches)return;'
    ),
    # Beside the page they scroll below the search.
    'var e=document.querySelector("div.bd-sidebar");let t': (
        'var e=document.querySelector(".sidebar-primary-item:has(>.bd-links)"'
        ");let t"
    ),
}
SCRIPTS = {
    "searchtools.js": SEARCH,
    "sphinx_highlight.js": MARKS,
    "scripts/pydata-sphinx-theme.js": TAB_STOPS | CONTENTS,
}


def order_scripts(app, pagename, templatename, context, doctree):
    """Run scripts once the page is there, each once, and only those it needs.

    Two extensions register theirs twice, and a second `const` of one name is an
    error in the page.
    """
    seen, kept = set(), []
    for script in context.get("script_files", []):
        attributes = getattr(script, "attributes", {})
        body = attributes.get("body", "")
        name = str(getattr(script, "filename", None) or "")
        if body in seen - {""} or "thebe" in name + body:
            continue
        seen.add(body)
        if name:
            attributes["defer"] = "defer"
        elif body.startswith("DOCUMENTATION_OPTIONS"):
            # It waits for the script before it.
            attributes["type"] = "module"
        kept.append(script)
    context["script_files"][:] = kept


def unwrapped(text, element, idle):
    """Take away the elements of a name whose attributes show nothing."""
    is_idle = []

    def kept(tag):
        closes, attributes = tag.groups()
        if not closes:
            is_idle.append(idle.fullmatch(attributes))
        gone = is_idle.pop() if closes else is_idle[-1]
        return "" if gone else tag[0]

    return re.sub(rf"<(/?){element}\b([^>]*)(?<!/)>", kept, text)


def plain_lines(signature):
    """Make the lines of a signature plain lines, not a list of definitions."""
    text = unwrapped(signature[0], "span", PLAIN_PART)
    text = DEFAULT.sub(r'<span class="default_value">=\1', text)
    text = SIGNATURE_LINE.sub(r'<em class="sig-param sig-line">\1\2</em>', text)
    text = SHAPE.sub(r"\1\2\1", LONG_NAME_OF_API.sub(broken_name, text))
    text = text.replace("<dl>", '<span class="sig-lines">')
    return text.replace("</dl>", "</span>")


def plain_points(fields):
    """Make the points of a list of parameters one line of text each."""
    text = fields[0].replace('<span class="colon">:</span>', ":")
    text = LONG_NAME_OF_API.sub(broken_name, text)
    return FIELD.sub(r"<li>\1</li>", text)


def breakable(table):
    """Let long names of a table break between their parts; mark long cells."""
    return CELL.sub(
        marked_if_long, LONG_NAME.sub(break_between_parts, table.group())
    )


def without_loose_signs(text):
    """Keep "5 %" on one line, and begin "-5" with a minus, in all words."""
    text = in_words(text, PROSE, PER_CENT, "\N{NO-BREAK SPACE}%")
    if 'class="sig ' in text:  # values there are typed, such as n_workers=-1
        return text
    return in_words(text, SENTENCES, HYPHEN, "\N{MINUS SIGN}")


def in_words(text, others, sign, mended):
    """Mend a sign wherever there is nothing that is left out."""
    parts, end = [], 0
    for tag in others.finditer(text):
        parts += [sign.sub(mended, text[end : tag.start()]), tag[0]]
        end = tag.end()
    return "".join(parts) + text[end:]


def without_idle_scripts(text):
    """Take away the scripts that find nothing to do on a page."""
    for name, needed in NEEDS.items():
        if not needed.search(text):
            text = re.sub(
                rf"<script [^>]*/{re.escape(name)}[^>]*></script>", "", text
            )
    return text


def marked_if_long(cell):
    """A cell, with a class where it holds a sentence."""
    is_long = len(TAG.sub("", cell[1]).strip()) > MANY
    return f'<td class="long">{cell[1]}</td>' if is_long else cell[0]


def break_between_parts(name):
    """Allow a line break between the parts of one name."""
    return PARTS.sub("<wbr>", name.group())


def broken_name(name):
    """Allow a line break between the parts of a name of the reference."""
    return PARTS.sub("<wbr>", name[0]).replace(".", ".<wbr>")


def counted_on_its_page(text):
    """Count what stands on a page without a number from 1 on, or not at all."""
    numbers = sorted(set(map(int, COUNTED_EXERCISE.findall(text))))
    place = {str(number): str(k) for k, number in enumerate(numbers, 1)}
    text = COUNTED_EXERCISE.sub(lambda number: place[number[0]], text)
    return COUNTED_FIGURE.sub("", text)


def looks(styles):
    """For each mark on code one that looks the same in light and dark.

    None for what looks as plain text, for operators, and for numbers: dots and
    equals signs had the colour of strings and were a third of all marks, and
    numbers, each with a mark of its own, half of those that were left.
    """
    rules = defaultdict(list)
    for mark, style in STYLE_OF_MARK.findall(styles):
        rules[mark].append(style)
    one = {str(style): mark for mark, style in rules.items()}
    one[str(rules["n"])] = None
    same = {mark: one[str(style)] for mark, style in rules.items()}
    return same | dict.fromkeys(("o", "go", *NUMBERS))


def few_marks(code, same):
    """Take away the marks that show nothing, and unite neighbours.

    A browser is slowed by each, and a chapter had thousands.
    """

    def marked(token):
        mark = same.get(token[1], token[1])
        return f'<span class="{mark}">{token[2]}</span>' if mark else token[2]

    def united(run):
        text = TAG.sub("", run[0])
        return f'<span class="{run[1]}">{text}</span>'

    text = MARK.sub(marked, EMPTY_MARK.sub("", code[0]))
    return NEIGHBOURS.sub(
        lambda run: united(run) if run[1] in same else run[0], text
    )


def show_made_defaults(app, what, name, obj, options, signature, returns):
    """Show what makes a default that is made anew for each object.

    Sphinx cannot read Python's own `<factory>`, nor then the whole signature.
    """
    if not (signature and is_dataclass(obj) and isinstance(obj, type)):
        return None
    for field in fields(obj):
        if field.init and field.default_factory is not MISSING:
            made = f"{field.default_factory.__name__}()"
            signature = signature.replace("<factory>", made, 1)
    return signature, returns


def repair_pages(app, exception):
    """Mend the finished pages."""
    if exception:
        return
    styles = Path(app.outdir, "_static", "pygments.css")
    same = looks(styles.read_text(encoding="utf-8"))
    for page in Path(app.outdir).rglob("*.html"):
        text = ICON_SCRIPT.sub("", page.read_text(encoding="utf-8"))
        text = PRELOAD.sub("", text)
        text = THEBE.sub("", text)
        text = OTHER_SCRIPT.sub(r"<script defer \1", text)
        text = LATER_SCRIPT.sub(
            r'<script type="text/later" src="\1"></script>', text
        )
        text = without_idle_scripts(text)
        text = WRITTEN.sub(r"\1", text)
        text = UNKNOWN_COLOURS.sub(r'\1data-theme="light"', text)
        text = text.replace(LATE_COLOURS, EARLY_COLOURS)
        text = WORD.sub(r"\1", text)
        text = SIGNATURE.sub(plain_lines, text)
        text = FIELDS.sub(plain_points, text)
        text = NAME_IN_CONTENTS.sub(PLAIN_NAME, text)
        text = DRAWING.sub(
            lambda drawing: unwrapped(drawing[0], "g", NO_ATTRIBUTE), text
        )
        text = TABLE.sub(breakable, text)
        text = TEST_NAME.sub(break_between_parts, text)
        text = without_loose_signs(counted_on_its_page(text))
        text = CODE.sub(lambda code: few_marks(code, same), text)
        text = SIZE.sub(SIZED, text)
        text = NOTED.sub(WITH_NOTES, text)
        text = WIDE_TABLE.sub(r'<table tabindex="0" \1', text)
        text = SPY.sub("", text)
        text = ON_PAPER.sub("", text)
        text = text.replace(UNNAMED_FOLD, NAMED_FOLD)
        # A role that has been withdrawn, and that no list may hold.
        text = text.replace('role="doc-biblioentry"', 'role="listitem"')
        page.write_text(text, encoding="utf-8")
    for name, changes in SCRIPTS.items():
        script = Path(app.outdir, "_static", name)
        text = script.read_text(encoding="utf-8")
        for old, new in changes.items():
            if old not in text:
                raise ExtensionError(f"{name} has no {old} any more")
            text = text.replace(old, new)
        script.write_text(text, encoding="utf-8")


def setup(app):
    """Connect the repairs; Sphinx calls this."""
    app.connect("autodoc-process-signature", show_made_defaults)
    # The theme writes the styles of code at the end too.
    app.connect("build-finished", repair_pages, priority=800)
    app.connect("html-page-context", order_scripts, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
