"""A cache that was damaged: what does not hold runs again, and only what holds is taken."""

import json
import shutil

import pytest

from .notebooks import make_checkout, run_checkout

pytestmark = pytest.mark.delivery


def flip_a_bit(copy, note):
    content = bytearray(copy.read_bytes())
    content[len(content) // 2] ^= 1
    copy.write_bytes(content)


def edit(note, **changes):
    note.write_text(json.dumps(json.loads(note.read_text("utf-8")) | changes), encoding="utf-8")


DAMAGES = {
    "bit_flip": flip_a_bit,
    "cut_off": lambda copy, note: copy.write_bytes(copy.read_bytes()[:-100]),
    "empty": lambda copy, note: copy.write_bytes(b""),
    "gone": lambda copy, note: copy.unlink(),
    "folder": lambda copy, note: (copy.unlink(), copy.mkdir()),
    "note_cut_off": lambda copy, note: note.write_bytes(note.read_bytes()[:-9]),
    "note_gone": lambda copy, note: note.unlink(),
    "note_no_object": lambda copy, note: note.write_text("[]"),
    "note_deep": lambda copy, note: note.write_text("[" * 100_000),
    "note_not_utf8": lambda copy, note: note.write_bytes(b"\xff\xfe"),
    "wrong_types": lambda copy, note: edit(note, seconds={}, cells=7),
    "no_sum": lambda copy, note: edit(note, sha256=None),
}
FOREIGN = {"foreign_digest": lambda copy, note: edit(note, digest="0" * 64)}
WHOLE = ("whole_1", "whole_2")


def test_a_damaged_entry_runs_again_and_a_whole_one_gives_the_same_bytes(tmp_path, clean_room):
    names = [*DAMAGES, *FOREIGN, *WHOLE, "swapped_1", "swapped_2"]
    course = make_checkout(tmp_path / "course", {name: [f"print({name!r})"] for name in names})
    executed = course / "build" / "executed" / "learner" / "en"
    kept = course / "build" / "cache" / "learner" / "en"
    first = run_checkout(course, "--cache")
    assert first.returncode == 0, first.stderr
    before = {name: (executed / f"{name}.ipynb").read_bytes() for name in names}
    for name, damage in (DAMAGES | FOREIGN).items():
        damage(kept / f"{name}.ipynb", kept / f"{name}.json")
    for ending in ("ipynb", "json"):
        paths = [kept / f"swapped_{number}.{ending}" for number in (1, 2)]
        aside = paths[0].replace(tmp_path / "aside")
        paths[1].replace(paths[0])
        aside.replace(paths[1])
    shutil.rmtree(executed)
    second = run_checkout(course, "--cache")
    assert second.returncode == 0, second.stderr
    assert "Traceback" not in second.stdout + second.stderr
    report = json.loads((course / "build" / "executed" / "report.json").read_text("utf-8"))
    told = {one["notebook"]: one["status"] for one in report["notebooks"]}
    assert told == dict.fromkeys(names, "passed") | dict.fromkeys(WHOLE, "cached")
    for name in DAMAGES:
        assert f"the entry of learner/en/{name} is damaged" in second.stderr
    assert {name: (executed / f"{name}.ipynb").read_bytes() for name in names} == before
