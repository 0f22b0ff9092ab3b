"""What lies above and beside the pages of the languages: entrance, mark, cards, map."""

from collections.abc import Iterable, Mapping, Sequence

from course_build.base.chrome import say
from course_build.base.settings import Settings
from course_build.site.cards import draw_card, draw_mark
from course_build.site.entrance import entrance, lost_pages
from course_build.site.meta import COURSE_CARD, ENTRANCE, MARK, card_path
from course_build.site.sitemap import map_site


def root_files(
    settings: Settings,
    languages: Sequence[Mapping[str, str]],
    names: Iterable[str],
    titles: Mapping[str, Mapping[str, str]],
) -> dict[str, bytes]:
    """The files below the folder of the languages, {path: content}, that Sphinx does not write.

    Args:
        languages: code and name of each
        names: the pages of a language without their ending
        titles: of each module, {language: {its folder: title}}
    """
    return {
        ENTRANCE: entrance(languages, settings),
        **lost_pages(settings),
        MARK: draw_mark(),
        **map_site(names, settings.languages, settings.site),
        **_cards(settings, titles),
    }


def _cards(settings: Settings, titles: Mapping[str, Mapping[str, str]]) -> dict[str, bytes]:
    """A card of the course and of each module."""
    cards = {}
    for language, modules in titles.items():
        course, motto = settings.title(language), say(language, "motto")
        cards[card_path(language, COURSE_CARD)] = draw_card("", course, motto)
        for folder, title in modules.items():
            number, _, idea = title.partition(". ")
            card = draw_card(f"{course} · {number}", idea or number, motto)
            cards[card_path(language, f"{folder}/")] = card
    return cards
