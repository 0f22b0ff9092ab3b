"""The pages of the site as its tests see them: which there are, and what is in a page's HTML."""

from html.parser import HTMLParser

from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.run.jobs import ROOT
from course_build.site.sources import WELCOME, cut

SETTINGS = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
ENTRANCE, LOST = "index.html", "404.html"  # above the languages; LOST is in each of them too
OF_ONE = {"href", "id", "src", "title"}  # attributes that make no other kind of element
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "wbr"}


def _pages_of(language):
    """The pages that one language's notebooks and texts become."""
    folder = ROOT / "notebooks" / language
    modules = cut({path.name: path.read_bytes() for path in folder.glob("module_*.ipynb")})
    texts = {path.stem for path in folder.glob("*.md")} - {WELCOME}
    return ["index", "search", *texts, *(page.name for each in modules.values() for page in each)]


NAMES = [f"{name}.html" for name in sorted(_pages_of(SETTINGS.languages[0]))]
PAGES = [
    ENTRANCE,
    LOST,
    *(f"{code}/{name}" for code in SETTINGS.languages for name in (LOST, *NAMES)),
]


class Markup(HTMLParser):
    """What is in a page: links with their attributes, ids, and every element in its parent."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids, self.kinds, self._open = [], [], set(), [None]
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.links += [(given[name], given) for name in ("href", "src") if given.get(name)]
        if "id" in given:
            self.ids.append(given["id"])
        told = frozenset(given) - OF_ONE
        look = (tag, given.get("class", ""), given.get("role", ""), told)
        self.kinds.add((self._open[-1], look))
        if tag not in VOID:
            self._open.append(look)

    def handle_endtag(self, tag):
        if tag in {look[0] for look in self._open if look}:
            while self._open.pop()[0] != tag:
                pass


def one_of_each(kinds):
    """As few pages, {name: kinds}, as it takes to see every element of any page in its parent."""
    chosen, left = [], set().union(*kinds.values())
    while left:
        chosen.append(max(sorted(kinds), key=lambda name: len(kinds[name] & left)))
        left -= kinds[chosen[-1]]
    return chosen
