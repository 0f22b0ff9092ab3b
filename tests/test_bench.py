"""The speed comparison tells the truth about what it finds; no test asserts a speed."""

import json
import math
import re

import numpy as np
import pytest

from bench.__main__ import parse
from bench.crew import PeerFailed
from bench.install import PINS
from bench.measure import measure, prove, rounds_of
from bench.models import MODELS, QUICK
from bench.peer import Peer
from bench.profile import growth, profile
from bench.table import lay_out, model_text, rows
from bench.verdict import against, bounds, cut, judge, of_bound
from bench.worker import Worker
from course_lib.decoder_lm.shape import ModelShape, parameter_shapes

pytestmark = pytest.mark.delivery


@pytest.fixture(scope="module")
def measured():
    """The tiny model, three peers, one thread, one round."""
    model = QUICK[0]._replace(batches=(1, 3), steps=9, prefill=12)
    peers = ["ours", "torch-twin", "transformers"]
    return json.loads(json.dumps(measure(model, peers, 1, 1, lambda text: None)))


def test_peers_in_their_processes_give_the_same_logits_and_tokens(measured):
    assert measured["absent"] == {}
    assert set(measured["proofs"]) == {"ours", "torch-twin", "transformers"}
    for proofs in measured["proofs"].values():
        assert set(proofs) == {"1", "3"}
        for proof in proofs.values():
            assert proof["agrees"]
            assert proof["difference"] <= 1e-4
            assert proof["same_tokens"] == proof["tokens"] > 0


def test_everybody_decodes_and_prefills_the_reference_s_tokens(measured):
    for cell in [*measured["decode"].values(), measured["prefill"]]:
        assert list(cell["peers"]) == ["ours", "torch-twin", "transformers"]
        for results in cell["peers"].values():
            assert len(results) == 1
            assert results[0]["rate"] > 0
            assert results[0].get("same_tokens", 1.0) == 1.0


def test_the_table_has_a_row_for_everybody(measured):
    text = "\n".join(model_text(measured))
    assert [row[0] for row in rows(measured)][1:4] == ["ours", "torch-twin", "transformers"]
    assert "ABSENT" not in text
    assert "NOT TIMED" not in text


def test_a_measurement_of_the_tiny_model_is_judged(measured):
    decode = {int(batch): cell for batch, cell in measured["decode"].items()}
    verdicts = judge({"tiny": measured | {"decode": decode}})
    assert [verdict.target for verdict in verdicts] == [
        "tiny: at least 2.5x the torch twin",
        "no allocation growth per token in the hot loop",
    ]
    assert all(verdict.numbers for verdict in verdicts)


class Stranger:
    """A worker that answers from a script; an exception in it is raised."""

    largest_batch = 8

    def __init__(self, *replies):
        self.replies, self.dismissed = list(replies), False

    def ask(self, command, **details):
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def cpu_seconds(self):
        return 0.0

    def dismiss(self):
        self.dismissed = True


class Parrot(Peer):
    """A peer that returns given logits, step after step."""

    def __init__(self, logits):
        self.logits, self.place = logits, 0

    def begin(self, prompts, steps):
        self.place = 0
        return self.logits[:, 0]

    def step(self, tokens):
        self.place += 1
        return self.logits[:, self.place]


@pytest.mark.parametrize(
    ("change", "agrees", "same"),
    [
        ([0.0, 0.0], True, 6),
        ([9e-5, -9e-5], True, 6),
        ([0.0, 2e-4], False, 6),  # other logits, the same choice
        ([-1.5, 1.5], False, 0),
    ],
)
def test_a_proof_wants_the_reference_s_logits_and_choices(tmp_path, change, agrees, same):
    wanted = np.tile(np.array([2.0, 0.0], np.float32), (2, 3, 1))  # [B, steps + 1, V]
    np.savez(tmp_path / "reference-2.npz", tokens=np.zeros((2, 9), int), logits=wanted)
    worker = Worker.__new__(Worker)
    worker.model, worker.folder = QUICK[0], tmp_path
    worker.peer = Parrot(wanted + np.array(change, np.float32))
    proof = worker.prove(2)
    assert (proof["agrees"], proof["same_tokens"], proof["tokens"]) == (agrees, same, 6)
    assert proof["closest_choice"] == 2.0
    assert math.isclose(proof["difference"], max(map(abs, change)), rel_tol=1e-2)


def test_another_choice_is_allowed_only_where_two_are_as_good(tmp_path):
    wanted = np.array([[[1.0, 1.0 - 1e-4]]], np.float32)
    np.savez(tmp_path / "reference-1.npz", tokens=np.zeros((1, 2), int), logits=wanted)
    worker = Worker.__new__(Worker)
    worker.model, worker.folder = QUICK[0], tmp_path
    worker.peer = Parrot(wanted + np.array([-8e-5, 8e-5], np.float32))
    assert worker.prove(1)["agrees"] is True
    assert worker.prove(1)["same_tokens"] == 0


def test_who_disagrees_or_cannot_prove_it_is_not_timed():
    model = QUICK[0]._replace(batches=(1, 8))
    good, bad = {"agrees": True, "difference": 0.0}, {"agrees": False, "difference": 1.0}
    crew = {
        "right": Stranger(good, good),
        "wrong": Stranger(good, bad),
        "broken": Stranger(good, PeerFailed("no such batch")),
    }
    everybody, told = dict(crew), []
    proofs = prove(model, crew, told.append)
    assert list(crew) == ["right"]
    assert [worker.dismissed for worker in everybody.values()] == [False, True, True]
    assert proofs["broken"][8] == {"agrees": False, "error": "no such batch"}
    assert len(told) == 2


def test_who_fails_in_a_round_loses_all_of_its_results(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    fine = [{"rate": float(turn)} for turn in range(4)]
    crew = {"steady": Stranger(*fine), "frail": Stranger(fine[0], fine[1], PeerFailed("gone"))}
    told = []
    cell = rounds_of(QUICK[0], crew, "decode", 1, 3, told.append)
    assert cell["peers"] == {"steady": fine[1:]}  # the first round warms up
    assert any("gone" in line for line in told)


def cell(ours, other, bandwidth=(), step_bytes=1.0):
    peers = {"ours": ours, "onnxruntime": other}
    results = {name: [{"rate": rate} for rate in rates] for name, rates in peers.items()}
    return {"peers": results, "bandwidth": list(bandwidth), "step_bytes": step_bytes}


def test_a_ratio_is_the_median_of_rounds_and_never_rounded_up():
    close = cell([0.9999, 1.2, 0.5], [1.0, 1.0, 1.0])
    verdict = against("as fast", close, ["onnxruntime"], 1.0)
    assert verdict.reached is False
    assert verdict.numbers == "0.99x onnxruntime (0.50-1.20)"
    assert against("nearly", close, ["onnxruntime"], 0.99).reached is True


def test_we_are_held_to_the_fastest_of_several():
    both = cell([3.0], [1.0])
    both["peers"]["llama.cpp"] = [{"rate": 2.0}]
    assert against("best", both, ["onnxruntime", "llama.cpp"], 2.0).numbers.startswith(
        "1.50x llama"
    )
    assert against("best", both, ["llama.cpp", "onnxruntime"], 2.0).reached is False


def test_what_did_not_run_is_never_called_beaten():
    fast = cell([2.0], [1.0])
    verdict = against("best", fast, ["onnxruntime", "llama.cpp"], 1.0)
    assert verdict.reached is None
    assert "did not run: llama.cpp" in verdict.numbers
    assert against("best", fast, ["llama.cpp"], 1.0).reached is None
    slow = against("best", cell([1.0], [2.0]), ["onnxruntime", "llama.cpp"], 1.0)
    assert slow.reached is False  # slower than one is slower than the best


def test_the_share_of_the_bound_is_taken_round_by_round():
    measured = cell([80.0, 50.0, 99.0], [1.0] * 3, bandwidth=[1000.0, 500.0, 1100.0], step_bytes=10)
    assert bounds(measured, 1) == [100.0, 50.0, 110.0]
    assert of_bound(measured).reached is True  # 0.8, 1.0, 0.9
    assert of_bound(measured).numbers == "0.900 (0.800-1.000)"


def test_numbers_are_cut_off():
    assert [cut(0.8499, 2), cut(1.0, 2), cut(12.39, 1)] == ["0.84", "1.00", "12.3"]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_bytes_of_a_step_are_those_of_the_parameters_that_it_reads(model):
    sizes = model.n_layers, model.d_model, model.n_heads, model.context_length, model.vocab_size
    shapes = parameter_shapes(ModelShape(*sizes), 4 * model.d_model)
    read = [shapes[name] for name in ("final_gain", "final_bias", "unembedding")]
    read += [size for block in shapes["blocks"] for size in block.values()]
    assert model.weight_bytes == sum(4 * math.prod(size) for size in read)
    lengths = [model.prompt + step for step in range(1, model.steps + 1)]
    per_row = np.mean([2 * 4 * model.n_layers * model.d_model * length for length in lengths])
    assert math.isclose(model.step_bytes(3), model.weight_bytes + 3 * per_row)


class Hoarder(Peer):
    """A peer that keeps a kilobyte a step."""

    def __init__(self):
        self.kept = []

    def begin(self, prompts, steps):
        return np.zeros((len(prompts), 4), np.float32)

    def step(self, tokens):
        self.kept.append(bytearray(1000))
        return np.zeros((len(tokens), 4), np.float32) @ np.eye(4, dtype=np.float32)


def test_growth_is_seen():
    assert 1000 < growth(Hoarder(), QUICK[0], 1)["bytes_per_step"] < 1200


def test_the_shares_of_a_profile_make_a_whole():
    class Multiplier(Hoarder):
        def step(self, tokens):
            return np.matmul(np.ones((1, 300), np.float32), np.ones((300, 4), np.float32))

    before = np.matmul
    shares = profile(Multiplier(), QUICK[0], 1)["shares"]
    assert math.isclose(sum(shares.values()), 1.0)
    assert any("product with a matrix 300 x 4 in test_bench" in part for part in shares)
    assert np.matmul is before


def test_every_peer_s_library_is_pinned_exactly():
    lines = PINS.read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"#.*|[a-z0-9-]+==[0-9.]+", line) for line in lines)
    assert {"onnxruntime", "ctranslate2", "llama-cpp-python"} <= {x.split("=")[0] for x in lines}


def test_a_name_that_is_nobody_s_is_refused(capsys):
    with pytest.raises(SystemExit):
        parse(["--only", "tiny", "nobody"])
    assert "knows no ['nobody']" in capsys.readouterr().err
    chosen = parse(["--only", "tiny", "ours"])
    assert [model.name for model in chosen.models] == ["tiny"]
    assert chosen.peers == ["ours"]


def test_columns_of_a_table_are_aligned():
    assert lay_out([["name", "x"], ["a", "1.0"]]) == ["name    x", "---------", "a     1.0"]
