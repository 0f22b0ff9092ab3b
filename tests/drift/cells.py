"""Small executed notebooks to compare."""

import json


def cell(key, *outputs, tags=()):
    return {
        "cell_type": "code",
        "id": key,
        "source": f"show_{key}()",
        "execution_count": 1,
        "metadata": {"tags": list(tags)} if tags else {},
        "outputs": list(outputs),
    }


def printed(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


def figure(name):
    return {
        "output_type": "display_data",
        "data": {"image/svg+xml": "<svg/>", "text/plain": "words"},
        "metadata": {"image/svg+xml": {"name": name, "alt": "words"}},
    }


def result(data):
    return {"output_type": "execute_result", "execution_count": 1, "data": data, "metadata": {}}


def notebook(*cells):
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


PLAIN = [
    cell("loss", printed("loss 1.7918 after 300 steps\ngap=3e-07 (≤ 2e-05)\n")),
    cell("table", printed("clause   8.3e-16   ≤ 1e-09  same\n")),
    cell("see", figure("loss"), printed("seen")),
    cell("time", printed("12.5 ms"), tags=["measured"]),
]


def changed(old, new):
    """The notebook's cells with one piece of printed text replaced."""
    return json.loads(json.dumps(PLAIN, ensure_ascii=False).replace(old, new))
