"""Links that need the repository's address: left out while there is none.

`make set-repository` sets it. A chapter then has Colab under its title as well.
"""

import html
import re

PLACEHOLDER = "/OWNER/"
COLAB = "https://colab.research.google.com/"
TITLE_END = re.compile(r"</h1>")
UNDER_TITLE = (
    '</h1>\n<p class="under-title"><a href="{}">Open in Colab</a>, '
    "to run and change it</p>"
)


def leave_out_or_show(app, pagename, templatename, context, doctree):
    """Take out buttons without an address; show Colab where there is one."""
    buttons = list(with_address(context.get("header_buttons", [])))
    context["header_buttons"] = buttons
    colab = [url for url in addresses(buttons) if url.startswith(COLAB)]
    if colab and "body" in context:
        line = UNDER_TITLE.format(html.escape(colab[0]))
        context["body"] = TITLE_END.sub(lambda _: line, context["body"], 1)


def with_address(buttons):
    """Buttons that lead somewhere, and groups that have some left."""
    for button in buttons:
        if "buttons" in button:
            kept = list(with_address(button["buttons"]))
            if kept:
                yield button | {"buttons": kept}
        elif PLACEHOLDER not in button.get("url", ""):
            yield button


def addresses(buttons):
    """Where buttons lead, those in groups too."""
    for button in buttons:
        yield from addresses(button.get("buttons", []))
        if "url" in button:
            yield button["url"]


def say_whether_published(app, config):
    """Let pages say one thing with an address and another without one."""
    if PLACEHOLDER in config.html_theme_options.get("repository_url", ""):
        config.html_baseurl, config.ogp_image = "", None
    else:
        app.tags.add("published")
    config.ogp_site_url = config.html_baseurl


def setup(app):
    """Run it after the theme has made its buttons; Sphinx calls this."""
    app.connect("config-inited", say_whether_published)
    app.connect("html-page-context", leave_out_or_show, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
