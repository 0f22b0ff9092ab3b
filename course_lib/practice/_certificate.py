"""A summary to show: what passed, a digest that anybody can recompute, and what it cannot prove."""

import hashlib
import html
import json
import unicodedata
from collections.abc import Mapping
from typing import Any

from course_lib.practice._practice_output import (
    practice_page,
    practice_paragraph,
    practice_table,
)
from course_lib.practice._practice_texts import practice_level
from course_lib.text import say

_CERTIFICATE_TEXTS = {
    "title": "{name}: contracts passed in {module}, {done} of {count} | {name}: выполнено "
    "контрактов в {module} — {done} из {count}",
    "passed": "Passed | Выполнено",
    "exercise": "exercise | упражнение",
    "level": "level | уровень",
    "contract": "contract | контракт",
    "clauses": "clauses | пунктов",
    "digest": "Digest (SHA-256): {digest} | Отпечаток (SHA-256): {digest}",
    "how": "It is the digest of the text in the variable line, in UTF-8. To recompute it, run: | "
    "Это отпечаток строки line в кодировке UTF-8. Чтобы вычислить его заново, выполните:",
    "proves": "What it shows: list and digest belong together; neither was altered alone. | Что "
    "это показывает: список и отпечаток составлены вместе, по отдельности их не меняли.",
    "not": "What it does not prove: who wrote the code, or that the contracts ran at all. The "
    "progress file is the learner's to edit, and so are this notebook and this list; anybody can "
    "make another list with its own digest. To convince somebody, show your code and let them "
    "run the contracts. | Чего это не доказывает: кто написал код и запускались ли контракты "
    "вообще. Файл с успехами, блокнот и сам этот список можно править как угодно, а к другому "
    "списку — вычислить другой отпечаток. Чтобы убедить кого-нибудь, покажите свой код: пусть "
    "запустит контракты сам.",
}


def certificate_facts(
    name: str, module: str, exercises: Mapping[str, tuple[str, str]], entries: Mapping[str, Any]
) -> dict[str, Any]:
    """All that a certificate lists, the same in every language.

    Args:    entries: what the progress file holds of each exercise
    """
    passed = [
        {
            "clauses": entries[exercise]["clauses"],
            "contract": entries[exercise]["contract"],
            "exercise": exercise,
            "level": level,
        }
        for exercise, (level, _) in exercises.items()
        if entries.get(exercise, {}).get("state") == "passed"
    ]
    count = len(exercises)
    return {"exercises": count, "module": module, "name": name, "passed": passed, "version": 1}


def certificate_line(facts: Mapping[str, Any]) -> str:
    """The facts as one line of canonical JSON: keys sorted, no spaces."""
    return json.dumps(facts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def certificate_digest(facts: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical line, as 64 hexadecimal digits."""
    return hashlib.sha256(certificate_line(facts).encode("utf-8")).hexdigest()


def certificate_pages(
    facts: Mapping[str, Any], exercises: Mapping[str, tuple[str, str]]
) -> tuple[str, str]:
    """The certificate as a page and as text."""
    told = {"name": facts["name"], "module": facts["module"]}
    told |= {"done": len(facts["passed"]), "count": facts["exercises"]}
    title = say(_CERTIFICATE_TEXTS["title"], **told)
    rows = [
        (
            exercises[passed["exercise"]][1],
            practice_level(passed["level"]),
            passed["contract"],
            str(len(passed["clauses"])),
        )
        for passed in facts["passed"]
    ]
    names = ("exercise", "level", "contract", "clauses")
    head = [say(_CERTIFICATE_TEXTS[entry]) for entry in names]
    said = [say(_CERTIFICATE_TEXTS[entry]) for entry in ("how", "proves", "not")]
    digest = say(_CERTIFICATE_TEXTS["digest"], digest=certificate_digest(facts))
    recipe = (
        "import hashlib",
        f"line = {certificate_line(facts)!r}",
        "print(hashlib.sha256(line.encode()).hexdigest())",
    )
    page = practice_page(
        practice_paragraph(title, strong=True),
        practice_table(say(_CERTIFICATE_TEXTS["passed"]), head, rows),
        practice_paragraph(digest),
        practice_paragraph(said[0]),
        f'<pre style="white-space:pre-wrap">{html.escape(chr(10).join(recipe))}</pre>',
        *map(practice_paragraph, said[1:]),
    )
    shown = ["  ✓ " + " · ".join(row) for row in rows]
    text = "\n".join([title, *shown, digest, said[0], *recipe, *said[1:]])
    return page, text


def checked_certificate_name(name: str) -> str:
    """A name on one line, in one spelling of its letters.

    Raises:  ValueError for no name, or one with characters that cannot be seen
    """
    line = unicodedata.normalize("NFC", " ".join(name.split())) if isinstance(name, str) else ""
    if not line or not line.isprintable():
        raise ValueError(f"the certificate needs a name that can be printed; got {name!r}")
    return line
