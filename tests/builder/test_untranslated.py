"""A word left in the source's script is found in whatever a notebook shows; names are not."""

import pytest

from course_build.translation.untranslated import (
    NAMES,
    foreign_script,
    foreign_words,
    listed_names,
    shown_texts,
    untranslated,
)

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><title>A title</title>{}</svg>'


def notebook(source, *outputs):
    return {"cells": [
        {"cell_type": "markdown", "id": "m", "source": "English prose is not looked at."},
        {"cell_type": "code", "id": "c", "source": source, "outputs": list(outputs)},
    ]}  # fmt: skip


def stream(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


def shown(data, metadata=None):
    return {"output_type": "display_data", "data": data, "metadata": metadata or {}}


def found(*outputs, source="x = 1", also=()):
    texts = untranslated(notebook(source, *outputs), "LATIN", also)
    return [(text.where, words) for text, words in texts]


LEFT = {
    "printed": (stream("готово: kernel"), "stdout", ["kernel"]),
    "printed in pieces": (stream(["готово\n", "loss rises"]), "stdout", ["loss", "rises"]),
    "a value": (shown({"text/plain": "'unknown'"}), "text/plain", ["unknown"]),
    "HTML": (shown({"text/html": ["<b class='x'>allowed</b>", " да"]}), "text/html", ["allowed"]),
    "a label": (
        shown({"image/svg+xml": SVG.format("<g><text>ключ: <tspan>key</tspan></text></g>")}),
        "image/svg+xml", ["key"],
    ),
    "alt text": (
        shown({"image/svg+xml": SVG.format("")}, {"image/svg+xml": {"alt": "График of loss"}}),
        "alt text", ["of", "loss"],
    ),
    "an accent": (stream("naïve"), "stdout", ["naïve"]),
    "a compound": (stream("soft-max и x-axis"), "stdout", ["soft", "max", "axis"]),
}  # fmt: skip


@pytest.mark.parametrize(("output", "where", "words"), LEFT.values(), ids=LEFT.keys())
def test_a_word_that_nobody_translated_is_found(output, where, words):
    assert found(output) == [(where, words)]


SILENT = {
    "translated": stream("готово: 5 из 7"),
    "one letter": stream("x = 5, T_q, [B, T]"),
    "an underscore": stream("mask_missing"),
    "a digest": stream("e608c5bb68921c5a68e040a1"),
    "a path": stream("/home/someone/model.safetensors"),
    "listed": stream("GPT-2 small: 5 GFLOP, True"),
    "a picture": shown({"image/png": "abcd"}),
    "what is no text": shown({"image/svg+xml": SVG.format("<style>text {fill: red}</style>")}),
}


@pytest.mark.parametrize("output", SILENT.values(), ids=SILENT.keys())
def test_names_and_numbers_are_left_alone(output):
    assert found(output) == []


def test_what_the_code_calls_something_is_a_name_when_printed():
    source = "from torch import nn\ndef fit(steps):\n    return nn.Linear(steps, bias=loss)"
    printed = stream("fit, steps, nn.Linear, bias, loss, torch")
    assert found(printed, source=source) == []
    label = shown({"image/svg+xml": SVG.format("<text>loss</text>")})
    assert found(label, source=source) == [("image/svg+xml", ["loss"])]
    assert found(printed, source='x = "fit steps"') != []


def test_this_machine_may_have_names_of_its_own():
    assert found(stream("EPYC"), also=["EPYC"]) == []


RAISES = """
def check(n):
    if n:
        raise ValueError(
            f"{n=} is not a width; give "
            f"at least {n + 1} of   them"
        )
    raise TypeError("never so")
"""


@pytest.mark.parametrize(
    ("printed", "left"),
    [
        ("n=5 is not a width; give at least 6 of them", []),
        ("n=5 is not a width;\ngive at least 6\nof them", []),
        ("да: never so", []),
        ("n=5 is not a width", ["width"]),
        ("whenever so", ["whenever", "so"]),
        ("never so-so", ["so"]),
    ],
)
def test_messages_of_exceptions_speak_the_language_of_the_code(printed, left):
    assert [w for _, words in found(stream(printed), source=RAISES) for w in words] == left


def test_a_message_that_is_all_field_excuses_nothing():
    assert found(stream("any words"), source='raise ValueError(f"{x} {y}")') != []
    assert found(stream("any words"), source="raise ValueError(f'{x} any')") != []


def test_every_text_is_seen_with_its_cell():
    texts = list(shown_texts(notebook("x", stream("а"), shown({"text/plain": "б"}))))
    assert [(text.key, text.where, text.text) for text in texts] == [
        ("c", "stdout", "а"), ("c", "text/plain", "б"),
    ]  # fmt: skip


def test_only_a_translation_in_another_script_can_be_looked_through():
    assert foreign_script("ru", "en") == "LATIN"
    assert foreign_script("en", "ru") == "CYRILLIC"
    assert foreign_script("en", "en") is None
    assert foreign_script("qtz", "en") is None


def test_the_list_of_names_has_reasons_and_no_name_twice():
    assert all(len(reason) > 4 for reason in NAMES.values())
    assert sum(len(group.split()) for group in NAMES) == len(listed_names())


def test_words_of_the_other_script_are_named_once():
    assert foreign_words("слово word слово word", "LATIN", []) == ["word"]
    assert foreign_words("слово word", "CYRILLIC", []) == ["слово"]


CODE = "kernel = threads = one = product = join = history = naive = 1"
SENTENCES = {
    "side by side": ("one product   1.5", ["one", "product"]),
    "after a number": ("потоков: 1 threads, 2", ["threads"]),
    "beside a listed name": ("ядро kernel SkylakeX", ["kernel"]),
    "a name and a value": ("kernel True, threads: 5", []),
    "in columns": ("kernel  threads   one", []),
    "in a list": ("kernel, threads; one", []),
    "with their values": ("kernel=1 threads = 2 one[3] product() 1 kernel.threads", []),
    "a keyword between": ("join if history", ["join", "history"]),
}


@pytest.mark.parametrize(("text", "words"), SENTENCES.values(), ids=SENTENCES.keys())
def test_names_side_by_side_are_a_sentence_that_nobody_translated(text, words):
    left = found(stream(text), source=CODE)
    assert [word for _, each in left for word in each] == words


def test_cells_of_a_table_do_not_stand_side_by_side():
    table = shown({"text/html": "<td>kernel</td><td>threads</td>"})
    assert found(table, source=CODE) == []
