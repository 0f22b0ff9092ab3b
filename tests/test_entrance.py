"""The pages above the languages: the entrance, and the one that is shown where there is none."""

import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from course_build.base.settings import Settings
from course_build.site.entrance import entrance, lost_pages
from course_build.site.switch import named_languages
from tests.browser import opened_browser, opened_page

pytestmark = pytest.mark.delivery

TITLES = {"en": "A <course>", "ru": "Курс"}
SETTINGS = Settings(("en", "ru"), "", "main", titles=TITLES)
PLACED = replace(SETTINGS, site="https://example.org/course/")
SCHEMES = ("light", "dark")


@pytest.fixture(scope="module")
def browser():
    with opened_browser() as browser:
        yield browser


def entrance_of(settings):
    return entrance(named_languages(settings.languages), settings).decode()


def test_the_entrance_leads_to_every_language_without_a_script():
    html = entrance_of(SETTINGS)
    assert '<html lang="en">' in html
    assert '<h1><span lang="en">A &lt;course&gt;</span><span lang="ru">Курс</span></h1>' in html
    assert '<a href="en/index.html" lang="en" hreflang="en"><h2>English →</h2>' in html
    assert '<a href="ru/index.html" lang="ru" hreflang="ru"><h2>Русский →</h2>' in html
    assert "<script" not in html


def test_the_entrance_asks_for_nothing_and_is_small():
    for settings in (SETTINGS, PLACED):
        html = entrance_of(settings)
        assert "stylesheet" not in html
        assert "src=" not in html
        assert len(html.encode()) < 10_000


def test_the_entrance_tells_whole_addresses_where_the_site_has_one():
    assert "https://" not in entrance_of(SETTINGS)
    html = entrance_of(PLACED)
    assert '<link rel="canonical" href="https://example.org/course/index.html">' in html
    assert 'hreflang="ru" href="https://example.org/course/ru/index.html">' in html
    assert '<meta property="og:url" content="https://example.org/course/index.html">' in html


def test_there_is_a_page_for_no_page_in_every_language_and_above():
    pages = lost_pages(SETTINGS)
    assert pages.keys() == {"404.html", "en/404.html", "ru/404.html"}
    text = pages["ru/404.html"].decode()
    assert '<html lang="ru">' in text
    assert text.index("<h1>Такой страницы нет</h1>") < text.index("<h2>There is no such page</h2>")
    assert all(b'content="noindex"' in page for page in pages.values())


def test_with_an_address_the_way_back_needs_no_script():
    for page in lost_pages(PLACED).values():
        assert b"<script" not in page
        assert b'href="https://example.org/course/ru/index.html"' in page


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server that has the site in the folder /course/, and its page for no page for the rest."""
    root = tmp_path_factory.mktemp("served")
    site = root / "course"
    files = {**lost_pages(SETTINGS), "index.html": entrance_of(SETTINGS).encode()}
    for code in SETTINGS.languages:
        files[f"{code}/index.html"] = files[f"{code}/search.html"] = f"<h1>{code}</h1>".encode()
    for path, content in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(content)

    class Handler(SimpleHTTPRequestHandler):
        def send_error(self, code, message=None, explain=None):
            parts = self.path.split("/")
            page = next((f"{p}/404.html" for p in parts if p in SETTINGS.languages), "404.html")
            self.send_response(code)
            self.end_headers()
            self.wfile.write((site / page).read_bytes())

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=root))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "path", ["course/404.html", "course/en/gone.html", "course/ru/module_09/deep/gone.html?x#y"]
)
def test_from_any_depth_every_way_leads_back(browser, served, path):
    page = browser.new_page()
    page.goto(f"{served}/{path}")
    hrefs = page.eval_on_selector_all("a", "ways => ways.map(way => way.href)")
    assert len(hrefs) == 4
    for href in hrefs:
        page.goto(href)
        assert page.text_content("h1") in SETTINGS.languages, href
    page.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["entrance", "lost"])
def test_axe_finds_nothing_on_the_pages_above_the_languages(browser, tmp_path, name, scheme):
    from axe_playwright_python.sync_playwright import Axe

    path = tmp_path / "page.html"
    made = {"entrance": entrance_of(SETTINGS).encode(), "lost": lost_pages(SETTINGS)["404.html"]}
    path.write_bytes(made[name])
    with opened_page(browser, path, color_scheme=scheme) as page:
        found = Axe().run(page).response["violations"]
    assert [rule["id"] for rule in found] == []
