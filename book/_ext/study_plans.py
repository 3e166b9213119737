"""The directive `study-plan`: what a study compares, in words."""

from sphinx.util.docutils import SphinxDirective

from posembed import load_study


class StudyPlan(SphinxDirective):
    """`.. study-plan:: NAME`"""

    required_arguments = 1

    def run(self):
        """Put what the study says of itself into the page."""
        return self.parse_text_to_nodes(load_study(self.arguments[0]).about)


def setup(app):
    """Say the directive's name to Sphinx."""
    app.add_directive("study-plan", StudyPlan)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
