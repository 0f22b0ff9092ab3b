"""Whatever a translation says: when it is faithful nothing is found, when it is not it is."""

from hypothesis import assume, given
from hypothesis import strategies as st

from .test_parity import compare, rules

WORDS = st.text(st.sampled_from("abcdefg "), min_size=1, max_size=12).map(
    lambda text: f"w{text.strip() or 'w'}"
)
NUMBER = st.integers(1, 10**7)
PARTS = st.one_of(
    st.tuples(st.just("words"), WORDS),
    st.tuples(st.just("number"), NUMBER),
    st.tuples(st.just("tenths"), NUMBER),
    st.tuples(st.just("formula"), st.sampled_from(["x", "y_i", "\\frac{a}{b}", "0.5 + z"])),
    st.tuples(st.just("code"), st.sampled_from(["x", "dim=0", "torch.nan"])),
    st.tuples(st.just("link"), st.sampled_from(["a.md", "../{}/b.ipynb", "https://a.b/c"])),
    st.tuples(st.just("bold"), WORDS),
)
BLOCK = st.tuples(st.sampled_from(["", "# ", "### ", "- ", "> "]), st.lists(PARTS, max_size=5))
TEXTS = st.lists(BLOCK, min_size=1, max_size=5)


def write(part, language):
    """One part of a text in one of the two languages."""
    kind, value = part
    if kind in ("number", "tenths"):
        written = f"{value:,}" if kind == "number" else f"{value:,}.5"
        russian = {",": "\u202f", ".": ","}
        return written if language == "en" else written.translate(str.maketrans(russian))
    if kind == "formula":
        latex = value if language == "en" else value.replace(".", "{,}").replace("x", " x ")
        return f"${latex.strip()}$"
    if kind == "link":
        return f"[l]({value.format(language)})"
    words = value.replace("w", "я") if language == "ru" else value
    return {"words": words, "bold": f"**{words}**", "code": f"`{value}`"}[kind]


def document(blocks, language):
    return "\n\n".join(
        mark + " ".join(["w", *(write(part, language) for part in parts), "w"])
        for mark, parts in blocks
    )


@given(TEXTS)
def test_a_faithful_translation_is_quiet(blocks):
    assert compare(document(blocks, "en"), document(blocks, "ru")) == []


CAUGHT_AS = {
    "number": "numbers",
    "tenths": "numbers",
    "formula": "formulas",
    "code": "code",
    "link": "links",
    "bold": "emphasis",
}


@given(TEXTS, st.data())
def test_whatever_one_side_drops_is_found(blocks, data):
    places = [
        (b, p) for b, (_, parts) in enumerate(blocks) for p, part in enumerate(parts)
        if part[0] in CAUGHT_AS
    ]  # fmt: skip
    assume(places)
    b, p = data.draw(st.sampled_from(places))
    mark, parts = blocks[b]
    fewer = [*blocks[:b], (mark, parts[:p] + parts[p + 1 :]), *blocks[b + 1 :]]
    rule = f"parity-{CAUGHT_AS[parts[p][0]]}"
    assert rules(document(blocks, "en"), document(fewer, "ru")) == [rule]
    assert rules(document(fewer, "en"), document(blocks, "ru")) == [rule]


@given(TEXTS, st.data())
def test_a_changed_digit_is_found(blocks, data):
    ru = document(blocks, "ru")
    digits = [place for place, sign in enumerate(ru) if sign.isdigit()]
    assume(digits)
    place = data.draw(st.sampled_from(digits))
    other = data.draw(st.sampled_from([d for d in "123456789" if d != ru[place]]))
    found = rules(document(blocks, "en"), ru[:place] + other + ru[place + 1 :])
    assert len(found) == 1
    assert found[0] in ("parity-numbers", "parity-formulas", "parity-code")


@given(TEXTS, st.data())
def test_a_changed_block_is_found(blocks, data):
    place = data.draw(st.integers(0, len(blocks) - 1))
    mark, parts = blocks[place]
    other = data.draw(st.sampled_from([m for m in ("", "# ", "### ", "- ", "> ") if m != mark]))
    changed = [*blocks[:place], (other, parts), *blocks[place + 1 :]]
    assert rules(document(blocks, "en"), document(changed, "ru")) == ["parity-structure"]
