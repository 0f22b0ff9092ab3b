"""The torch twin: the formula, the cache through every chunking, training, and the way there and
back between its parameters and the dict that all stages read."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.decoder_lm.errors import ContextOverflow, ShapeMismatch
from course_lib.decoder_lm.shape import ModelShape, random_parameters
from course_lib.decoder_lm.twin import TorchTwin, TwinCache
from course_lib.training import fit, mean_nll, next_token_loss

SHAPE = ModelShape(n_layers=2, d_model=12, n_heads=3, context_length=9, vocab_size=11)
PARAMS = random_parameters(SHAPE, d_ff=20, seed=4)
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5], [2, 7, 1, 8, 2, 8, 1, 8, 10]])


def by_hand(params, token_ids):
    """The definition in NumPy, one text, one head and one position at a time."""

    def norm(x, gain, bias):
        centred = x - x.mean(-1, keepdims=True)
        return gain * centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) + bias

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    x = params["token_embedding"][token_ids] + params["position_embedding"][: len(token_ids)]
    width = SHAPE.d_head
    for block in params["blocks"]:
        normed = norm(x, block["ln1_gain"], block["ln1_bias"])
        q, k, v = (normed @ block[f"w{name}"] + block[f"b{name}"] for name in "qkv")
        mixed = np.zeros_like(x)
        for head in range(SHAPE.n_heads):
            part = slice(head * width, (head + 1) * width)
            for t in range(len(token_ids)):
                scores = k[: t + 1, part] @ q[t, part] / math.sqrt(width)
                weights = np.exp(scores - scores.max())
                mixed[t, part] = weights @ v[: t + 1, part] / weights.sum()
        x = x + mixed @ block["wo"] + block["bo"]
        normed = norm(x, block["ln2_gain"], block["ln2_bias"])
        x = x + gelu(normed @ block["w1"] + block["b1"]) @ block["w2"] + block["b2"]
    final = norm(x, params["final_gain"], params["final_bias"])
    return final @ params["unembedding"] + params["unembedding_bias"]


@pytest.fixture
def twin():
    return TorchTwin.from_parameters(PARAMS, SHAPE)


def small(seed=0, **options):
    torch.manual_seed(seed)
    return TorchTwin(SHAPE, 20, **options)


def read_in_chunks(twin, token_ids, widths, cache=None):
    cache = cache or twin.start()
    chunks = token_ids.split(widths, dim=1)
    return torch.cat([twin.extend(chunk, cache) for chunk in chunks], dim=1)


def test_the_logits_are_the_definition(twin):
    logits = twin(IDS)
    assert logits.dtype == torch.float64
    assert logits.shape == (2, 9, 11)
    for row in range(2):
        expected = by_hand(PARAMS, IDS[row].numpy())
        assert np.abs(logits[row].detach().numpy() - expected).max() <= 1e-12


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_any_chunking_gives_the_logits_of_one_pass(data):
    twin = TorchTwin.from_parameters(PARAMS, SHAPE)
    length = data.draw(st.integers(1, 9))
    rest, widths = length, []
    while rest:
        widths.append(data.draw(st.integers(1, rest)))
        rest -= widths[-1]
    rows = data.draw(st.integers(1, 2))
    ids = IDS[:rows, :length]
    assert (read_in_chunks(twin, ids, widths) - twin(ids)).abs().max() <= 1e-12


@pytest.mark.parametrize("widths", [[1] * 9, [9], [4, 2, 1, 2], [3, 2, 4], [8, 1]])
def test_the_whole_context_in_chunks_is_the_whole_context(twin, widths):
    assert (read_in_chunks(twin, IDS, widths) - twin(IDS)).abs().max() <= 1e-12


def test_two_texts_in_two_caches_do_not_meet(twin):
    one, other = IDS[:1], IDS[1:]
    first, second = twin.start(), twin.start()
    a = [twin.extend(one[:, :4], first)]
    b = [twin.extend(other[:, :6], second)]
    a.append(twin.extend(one[:, 4:], first))
    b.append(twin.extend(other[:, 6:], second))
    assert (torch.cat(a, 1) - twin(one)).abs().max() <= 1e-12
    assert (torch.cat(b, 1) - twin(other)).abs().max() <= 1e-12


def test_a_later_token_leaves_earlier_logits_alone(twin):
    changed = IDS.clone()
    changed[:, 5] = 0
    assert torch.equal(twin(changed)[:, :5], twin(IDS)[:, :5])
    assert not torch.allclose(twin(changed)[:, 5:], twin(IDS)[:, 5:])


def test_the_rows_of_a_batch_do_not_meet(twin):
    assert (twin(IDS)[1:] - twin(IDS[1:])).abs().max() <= 1e-12


@pytest.mark.parametrize(("held", "width"), [(0, 10), (9, 1), (8, 2), (5, 5)])
def test_past_the_context_is_refused_before_anything_changes(twin, held, width):
    cache = twin.start()
    if held:
        twin.extend(IDS[:, :held], cache)
        before = cache.keys.clone(), cache.values.clone()
    more = torch.zeros(2, width, dtype=torch.long)
    with pytest.raises(
        ContextOverflow, match=f"{held} positions held and {width} new .* context of 9; give fewer"
    ):
        twin.extend(more, cache)
    assert cache.length == held
    if held:
        filled = slice(0, held)
        for kept, now in zip(before, (cache.keys, cache.values), strict=True):
            assert torch.equal(kept[..., filled, :], now[..., filled, :])
    if held < 9:
        rest = twin.extend(IDS[:, held:], cache)
        assert (rest - twin(IDS)[:, held:]).abs().max() <= 1e-12


def test_a_text_longer_than_the_context_is_refused(twin):
    with pytest.raises(ContextOverflow, match="10 new ones make 10, past the context of 9"):
        twin(torch.zeros(1, 10, dtype=torch.long))


def test_a_step_that_fails_inside_leaves_the_cache_where_it_was(twin):
    cache = twin.start()
    twin.extend(IDS[:, :4], cache)
    last = twin.blocks[1].forward
    twin.blocks[1].forward = partial(broken, last)
    with pytest.raises(KeyboardInterrupt):
        twin.extend(IDS[:, 4:6], cache)
    twin.blocks[1].forward = last
    assert cache.length == 4
    assert (twin.extend(IDS[:, 4:], cache) - twin(IDS)[:, 4:]).abs().max() <= 1e-12


def broken(forward, *inputs):
    forward(*inputs)
    raise KeyboardInterrupt


def test_the_cache_keeps_no_gradients(twin):
    cache = twin.start()
    assert not twin.extend(IDS, cache).requires_grad
    assert not cache.keys.requires_grad
    assert twin(IDS).requires_grad


def test_the_cache_is_taken_once_and_lasts_to_the_context(twin):
    cache = twin.start()
    twin.extend(IDS[:, :1], cache)
    assert cache.keys.shape == cache.values.shape == (2, 2, 3, 9, 4)
    place = cache.keys.data_ptr()
    twin.extend(IDS[:, 1:], cache)
    assert cache.keys.data_ptr() == place


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([[1, 2]], TypeError, "token_ids must be a torch.Tensor, got list"),
        (torch.tensor([[1.0]]), TypeError, "token_ids must hold torch.long ids"),
        (torch.tensor([1, 2]), ValueError, r"token_ids must have shape \[B, T\], got \[2\]"),
        (torch.tensor([[11]]), ValueError, "holds id 11, outside the vocabulary of 11 ids"),
        (torch.tensor([[-1]]), ValueError, "holds id -1, outside the vocabulary"),
        (torch.zeros(1, 0, dtype=torch.long), ValueError, "token_ids has an empty axis"),
    ],
)
def test_bad_tokens_are_refused(twin, ids, error, message):
    with pytest.raises(error, match=message):
        twin(ids)
    with pytest.raises(error, match=message):
        twin.extend(ids, twin.start())


def test_a_cache_of_another_model_or_batch_is_refused(twin):
    with pytest.raises(TypeError, match=r"cache must come from start\(\), got dict"):
        twin.extend(IDS, {})
    other = TwinCache(ModelShape(1, 12, 3, 9, 11))
    with pytest.raises(ShapeMismatch, match="the cache is of ModelShape.n_layers=1.* but the twin"):
        twin.extend(IDS, other)
    cache = twin.start()
    twin.extend(IDS[:, :3], cache)
    with pytest.raises(ShapeMismatch, match="has 1 rows but the cache holds 2; every chunk"):
        twin.extend(IDS[:1, 3:], cache)
    assert cache.length == 3


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((5, 20), {}, TypeError, "shape must be a ModelShape, got int"),
        ((SHAPE, 0), {}, ValueError, "d_ff must be at least 1"),
        ((SHAPE, 2.0), {}, TypeError, "d_ff must be an integer"),
        ((SHAPE, 20), {"tie": 1}, TypeError, "tie must be True or False"),
    ],
)
def test_bad_sizes_are_refused(arguments, options, error, message):
    with pytest.raises(error, match=message):
        TorchTwin(*arguments, **options)


def test_the_start_is_small_as_gpt2_has_it():
    shape = ModelShape(n_layers=8, d_model=64, n_heads=2, context_length=32, vocab_size=300)
    torch.manual_seed(1)
    twin = TorchTwin(shape, 256)
    for name, parameter in twin.named_parameters():
        if ".ln" in f".{name}":
            assert torch.equal(parameter, torch.full_like(parameter, float("weight" in name)))
        elif name.endswith("bias"):
            assert not parameter.any()
        else:
            last = ".out." in name or ".down." in name
            assert parameter.std().item() == pytest.approx(0.005 if last else 0.02, rel=0.05), name
            assert abs(parameter.mean().item()) < 0.001


@pytest.mark.parametrize("tie", [False, True])
def test_an_untrained_twin_knows_nothing(tie):
    twin = small(tie=tie)
    windows = torch.randint(0, 11, (64, 10))
    assert next_token_loss(twin, windows).item() == pytest.approx(math.log(11), abs=0.02)


def test_the_seed_decides_the_twin():
    one, same, other = (small(seed)(IDS) for seed in (5, 5, 6))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("tie", [False, True])
def test_it_learns_a_text_by_heart_and_the_same_way_twice(tie):
    windows = torch.cat((IDS, IDS[:, :1]), dim=1)
    twins = [small(tie=tie) for _ in range(2)]
    losses = [fit(t, lambda step: windows, steps=150, learning_rate=1e-2) for t in twins]
    assert losses[0] == losses[1]
    assert losses[0][0] == pytest.approx(math.log(11), abs=0.1)
    assert mean_nll(twins[0], windows) < 0.05
    again = TorchTwin.from_parameters(twins[0].to_parameters(), SHAPE)
    assert (again(IDS) - twins[0](IDS)).abs().max() <= 1e-5


def test_a_tied_twin_has_one_embedding_also_after_a_step_and_no_output_bias():
    twin = small(tie=True)
    assert twin.head.weight is twin.token_embedding.weight
    fit(twin, lambda step: IDS, steps=3, learning_rate=1e-2)
    params = twin.to_parameters()
    assert np.array_equal(params["unembedding"], params["token_embedding"].T)
    assert np.array_equal(params["unembedding_bias"], np.zeros(11, dtype=np.float32))
    untied = small()
    assert not np.array_equal(
        untied.to_parameters()["unembedding"], untied.to_parameters()["token_embedding"].T
    )


def flat(params):
    blocks = {f"{i}.{k}": v for i, block in enumerate(params["blocks"]) for k, v in block.items()}
    return {**{name: value for name, value in params.items() if name != "blocks"}, **blocks}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_parameters_come_back_as_they_went_in(dtype):
    wanted = {name: value.astype(dtype) for name, value in flat(PARAMS).items()}
    params = {name: wanted[name] for name in PARAMS if name != "blocks"}
    params["blocks"] = [
        {name: wanted[f"{layer}.{name}"] for name in block}
        for layer, block in enumerate(PARAMS["blocks"])
    ]
    twin = TorchTwin.from_parameters(params, SHAPE)
    back = flat(twin.to_parameters())
    assert back.keys() == wanted.keys()
    for name, value in wanted.items():
        assert back[name].dtype == dtype, name
        assert back[name].flags.c_contiguous, name
        assert np.array_equal(back[name], value), name


def test_neither_side_shares_memory_with_the_other():
    params = random_parameters(SHAPE, d_ff=20, seed=5)
    twin = TorchTwin.from_parameters(params, SHAPE)
    before = twin(IDS)
    for value in flat(params).values():
        value[...] = 0
    assert torch.equal(twin(IDS), before)
    handed = twin.to_parameters()
    kept = {name: value.copy() for name, value in flat(handed).items()}
    fit(twin, lambda step: IDS, steps=1, learning_rate=1e-2)
    for name, value in flat(handed).items():
        assert np.array_equal(value, kept[name]), name


def test_read_only_arrays_and_lists_are_copied_without_a_word():
    params = random_parameters(SHAPE, d_ff=20, seed=4)
    for value in flat(params).values():
        value.flags.writeable = False
    lists = {name: value.tolist() for name, value in params.items() if name != "blocks"}
    lists["blocks"] = [
        {name: value.tolist() for name, value in block.items()} for block in params["blocks"]
    ]
    expected = TorchTwin.from_parameters(PARAMS, SHAPE)(IDS)
    for given_params in (params, lists):
        assert torch.equal(TorchTwin.from_parameters(given_params, SHAPE)(IDS), expected)


def test_taking_parameters_over_draws_no_random_number():
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    TorchTwin.from_parameters(PARAMS, SHAPE)
    assert torch.equal(torch.rand(3), expected)


def test_a_twin_of_given_parameters_trains(twin):
    losses = fit(twin, lambda step: IDS, steps=60, learning_rate=1e-2)
    assert losses[-1] < 0.5 * losses[0]


def test_parameters_that_do_not_fit_are_refused():
    wrong = {**PARAMS, "unembedding": PARAMS["unembedding"].T}
    with pytest.raises(ShapeMismatch, match=r"\['unembedding'\] must have shape \[12, 11\].* got"):
        TorchTwin.from_parameters(wrong, SHAPE)
    half = {**PARAMS, "token_embedding": PARAMS["token_embedding"].astype(np.float16)}
    with pytest.raises(TypeError, match="must be float32 or float64, got float16; call .astype"):
        TorchTwin.from_parameters(half, SHAPE)
