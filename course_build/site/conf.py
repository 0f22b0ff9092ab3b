"""Sphinx's configuration of the pages: what is the same in every language (see sphinx_build.py)."""

from html import escape

from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput

from course_build.site.doctree import LongTitle, PlacesByKey, PlainLongCode
from course_build.site.html_pages import finish_page
from course_build.site.meta import tell_head

extensions = ["myst_nb", "sphinx.ext.mathjax", "sphinx_copybutton"]
root_doc = "index"
nb_execution_mode = "off"  # the notebooks come executed
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_url_schemes = {
    "http": None,
    "https": None,
    "page": "{{path}}",  # of this site, and a place in one: pages.py writes these links
    "place": "{{path}}#{{fragment}}",
}

html_theme = "furo"
html_theme_options = {"top_of_page_buttons": []}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
templates_path = ["templates"]
html_css_files = [("print.css", {"media": "print"}), "course.css", "views.css"]
html_js_files = ["course.js", "languages.js", "views.js"]
copybutton_selector = ".cell_input div.highlight pre"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_use_index = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/languages.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}

mathjax_path = "../../_mathjax/tex-chtml.js"  # one copy for all languages
mathjax3_config = {
    "options": {"enableMenu": False},  # its menu makes each formula a tab stop
    "loader": {"load": ["ui/safe"]},  # a formula may come from an output: no scripts in links
}


def visit_fold(self, node):
    """Write a fold whose name is what it says; myst-nb's is "Toggle hidden content" for all."""
    self.body.append(f'<details class="admonition hide {" ".join(node["classes"])}">\n')
    self.body.append(f'<summary class="admonition-title">{escape(node["prompt_show"])}</summary>\n')


def setup(app):
    app.add_config_value("course_code", "", "env", [str])
    app.add_config_value("course_titles", {}, "env", [dict])
    app.add_transform(LongTitle)
    app.add_transform(PlacesByKey)
    app.add_transform(PlainLongCode)
    app.connect("html-page-context", finish_page)
    app.connect("html-page-context", tell_head)
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_HideCellInput))
