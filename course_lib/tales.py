"""Tales: a small grammar of our own that tells stories and knows the probability of each word.

One tree serves both languages: a token has the same id in each, and only its word differs. So a
model trained on the tales is the same model, to the last bit, whatever language it speaks.
"""

import math
import random
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from course_lib.integers import check_int_at_least, check_positive_int, is_integer
from course_lib.text import localized

# Word n of one language is word n of the other. In every sentence names are the subject and things
# the object, and the present tense agrees with he, she and it alike: no word needs a second form.
_TALE_WORDS = {
    "en": """<end> . , and
        Sun Moon Eclipse Star Cloud Comet Wind Rain Frost he she it
        once today here soon suddenly overnight then finally but now
        finds makes bakes hides steals breaks loses eats returns mends sees hears
        silver amber pearls honey clocks lanterns sledges boots bread pies cookies
        searches asks cries sighs everywhere everyone aloud quietly sadly everything
        laughs smiles sings dances laugh sing dance together""",
    "ru": """<end> . , и
        Солнце Луна Затмение Звезда Облако Комета Ветер Дождь Мороз он она оно
        однажды сегодня вот вскоре вдруг ночью потом наконец но теперь
        находит мастерит печёт прячет крадёт ломает теряет ест возвращает чинит видит слышит
        серебро янтарь жемчуг мёд часы фонари сани сапоги хлеб пироги печенье
        ищет спрашивает плачет вздыхает повсюду всех навзрыд тихо печально всё
        смеётся улыбается поёт танцует смеются поют танцуют вместе""",
}
_TALE_NAMES = tuple(_TALE_WORDS["en"].split())  # the grammar's own names of the ids
_TALE_IDS = {name: token for token, name in enumerate(_TALE_NAMES)}

_HEROES = {
    "Sun": 5, "Moon": 5, "Star": 3, "Cloud": 3, "Comet": 2, "Rain": 2, "Wind": 1, "Frost": 1,
    "Eclipse": 1,
}  # fmt: skip
_RASCALS = {
    "Wind": 5, "Eclipse": 4, "Frost": 4, "Rain": 2, "Comet": 2, "Cloud": 2, "Sun": 1, "Moon": 1,
    "Star": 1,
}  # fmt: skip
_PRONOUNS = {
    "Sun": "it", "Cloud": "it", "Eclipse": "it", "Moon": "she", "Star": "she", "Comet": "she",
    "Wind": "he", "Rain": "he", "Frost": "he",
}  # fmt: skip
_THINGS = {
    "finds": {"silver": 3, "amber": 2, "pearls": 2, "honey": 1},
    "makes": {"clocks": 2, "lanterns": 2, "sledges": 1, "boots": 1},
    "bakes": {"bread": 2, "pies": 2, "cookies": 1},
}
_PRANKS = {
    "finds": {"hides": 2, "steals": 1},
    "makes": {"breaks": 2, "loses": 1},
    "bakes": {"eats": 2, "steals": 1},
}
_AMENDS = {
    "hides": "returns", "steals": "returns", "breaks": "mends", "loses": "finds", "eats": "bakes",
}  # fmt: skip
_AWAY = {"searches": 2, "asks": 1, "cries": 1}
_SPOILT = {"cries": 3, "sighs": 2}
_GRIEFS = {"hides": _AWAY, "steals": _AWAY, "loses": _AWAY, "breaks": _SPOILT, "eats": _SPOILT}
_MANNERS = {
    "searches": {"everywhere": 1},
    "asks": {"everyone": 1},
    "cries": {"aloud": 2, "quietly": 1},
    "sighs": {"sadly": 2, "quietly": 1},
}


def tale_words() -> list[str]:
    """Return the word of every token in the reader's language; token 0 is <end>."""
    return localized(_TALE_WORDS).split()


def tell_tale() -> Generator[Mapping[str, int], str, None]:
    """Tell one tale by offering, again and again, the words that may come next.

    Each offer maps a word to its weight: a word of weight 2 is twice as likely as one of 1. The
    word chosen is sent back in. What is settled early is remembered to the last line: who the
    hero is, what the thing was, and what was done to it.
    """
    yield {"once": 3, "today": 1, "here": 1}
    hero = yield _HEROES
    deed = yield {"finds": 2, "makes": 1, "bakes": 1}
    thing = yield _THINGS[deed]
    yield {".": 1}
    yield {"soon": 2, "suddenly": 1, "overnight": 1}
    rascal = yield _all_but(_RASCALS, hero)
    prank = yield _PRANKS[deed]
    yield {thing: 1}
    yield {".": 1}
    turns = {"then": 3, "finally": 2, "but": 3}
    turn = yield {_PRONOUNS[hero]: 8, **turns}
    if turn == _PRONOUNS[hero]:  # half of the tales stop here to grieve
        grief = yield _GRIEFS[prank]
        yield _MANNERS[grief]
        yield {".": 1}
        turn = yield turns
    if turn == "but":
        yield from _tell_rescue(hero, rascal, _AMENDS[prank], thing)
    else:
        yield from _tell_regret(hero, rascal, _AMENDS[prank], thing)
    yield {".": 1}
    yield {"<end>": 1}


def _tell_regret(
    hero: str, rascal: str, amends: str, thing: str
) -> Generator[dict[str, int], str, None]:
    for word in (rascal, amends, thing, ",", "and", hero):
        yield {word: 1}
    yield {"laughs": 3, "smiles": 2, "sings": 1, "dances": 1}


def _tell_rescue(
    hero: str, rascal: str, amends: str, thing: str
) -> Generator[dict[str, int], str, None]:
    friend = yield _all_but(_HEROES, hero, rascal)
    yield {"sees": 2, "hears": 1}
    for word in ("everything", "and", amends, thing, ".", "now", hero, "and", friend):
        yield {word: 1}
    yield {"laugh": 2, "sing": 2, "dance": 1}
    yield {"together": 1}


def tales(count: int, seed: int) -> list[list[int]]:
    """Tell so many tales, each a list of token ids that ends with <end>; one seed, one result."""
    check_positive_int("count", count)
    check_int_at_least("seed", seed, 0)
    rng = random.Random(seed)
    return [_told_tale(rng) for _ in range(count)]


def tale_windows(count: int, context: int, seed: int) -> list[list[int]]:
    """Return texts of context + 1 tokens for training: <end>, then tale after tale, cut off.

    Each begins where a tale begins, so that nothing in it refers to words before its front.
    """
    check_positive_int("count", count)
    check_positive_int("context", context)
    check_int_at_least("seed", seed, 0)
    rng = random.Random(seed)
    windows = [[0] for _ in range(count)]
    for window in windows:
        while len(window) <= context:
            window += _told_tale(rng)
        del window[context + 1 :]
    return windows


def grammar_next(token_ids: Sequence[int]) -> dict[int, float]:
    """Return the true probability of every token that may come next, by id.

    Args:    token_ids: a text from the beginning of a tale on; after <end> a new tale begins
    Raises:  ValueError where the grammar cannot have told this text
    """
    _check_tale_ids(token_ids)
    teller = _listened_tales()
    offer = next(teller)
    for position, token in enumerate(token_ids):
        if token not in offer:
            raise ValueError(_unheard(token_ids, position))
        offer = teller.send(token)
    return offer


def grammar_log_likelihood(token_ids: Sequence[int]) -> list[float]:
    """Return the exact log-probability of every token, given those before it, in nats.

        log p(x) = Σ_i log p(x_i | x_<i)

    Every choice of the grammar shows at once in the word that is chosen, so each term is the
    logarithm of one weight over its offer's total. A token that cannot come costs -inf, and so
    do all that follow it: of an impossible text the grammar knows nothing more.

    Args:    token_ids: a text from the beginning of a tale on, finished or not; after <end> a
             new tale begins
    """
    _check_tale_ids(token_ids)
    teller = _listened_tales()
    offer = next(teller)
    terms: list[float] = []
    for token in token_ids:
        if token not in offer:
            return terms + [-math.inf] * (len(token_ids) - len(terms))
        terms.append(math.log(offer[token]))
        offer = teller.send(token)
    return terms


def is_a_tale(token_ids: Sequence[int]) -> bool:
    """Tell whether the grammar can tell exactly this: one whole tale, <end> included."""
    _check_tale_ids(token_ids)
    whole = list(token_ids).count(0) == 1 and token_ids[-1] == 0
    return whole and -math.inf not in grammar_log_likelihood(token_ids)


def _all_but(weights: Mapping[str, int], *taken: str) -> dict[str, int]:
    return {name: weight for name, weight in weights.items() if name not in taken}


def _told_tale(rng: random.Random) -> list[int]:
    teller = tell_tale()
    word = _drawn_word(next(teller), rng)
    token_ids = [_TALE_IDS[word]]
    while word != "<end>":
        word = _drawn_word(teller.send(word), rng)
        token_ids.append(_TALE_IDS[word])
    return token_ids


def _drawn_word(offer: Mapping[str, int], rng: random.Random) -> str:
    point = rng.random() * sum(offer.values())  # below the sum: one word must cover it
    below = 0
    for word, weight in offer.items():
        below += weight
        if point < below:
            return word
    raise ArithmeticError(f"the point {point} lies beyond every weight of {dict(offer)}")


def _listened_tales() -> Generator[dict[int, float], int, None]:
    """Tell tale after tale, in ids: offer true probabilities, be sent the token that came."""
    while True:
        teller, name = tell_tale(), ""
        offer = next(teller)
        while name != "<end>":
            total = sum(offer.values())
            probs = {_TALE_IDS[word]: weight / total for word, weight in offer.items()}
            name = _TALE_NAMES[(yield probs)]
            offer = teller.send(name) if name != "<end>" else {}


def _unheard(token_ids: Sequence[int], position: int) -> str:
    words = tale_words()
    told = " ".join(words[token] for token in token_ids[:position])
    return (
        f"no tale goes on with {words[token_ids[position]]!r} (token {position}) after "
        f"{told!r}; pass a text that grammar_log_likelihood calls possible"
    )


def _check_tale_ids(token_ids: Any) -> None:
    if not isinstance(token_ids, Sequence) or isinstance(token_ids, str):
        raise TypeError(
            f"token_ids must be a list of token ids, got {type(token_ids).__name__}; "
            "a text becomes one by Vocabulary(tale_words()).encode(text)"
        )
    for position, token in enumerate(token_ids):
        if not is_integer(token) or not 0 <= token < len(_TALE_NAMES):
            raise ValueError(
                f"token_ids[{position}] must be an id from 0 to {len(_TALE_NAMES) - 1}, "
                f"got {token!r}"
            )
