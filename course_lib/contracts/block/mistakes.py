"""Transformer blocks that are wrong in one way each, as people reported them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.block._block_sums import (
    BLOCK_FIRST_MISTAKES,
    BLOCK_SECOND_MISTAKES,
    block_added_to,
    mistaken_block,
)
from course_lib.contracts.engine.mistake import Mistake


def _block_in_place(x: Tensor, norm1: Any, attend: Any, norm2: Any, feed: Any) -> Tensor:
    x += attend(norm1(x))
    x += feed(norm2(x))
    return x


def _block_stream_detached(x: Tensor, norm1: Any, attend: Any, norm2: Any, feed: Any) -> Tensor:
    middle = x.detach() + attend(norm1(x))
    return middle.detach() + feed(norm2(middle))


def _block_reads_detached(x: Tensor, norm1: Any, attend: Any, norm2: Any, feed: Any) -> Tensor:
    middle = x + attend(norm1(x.detach()))
    return middle + feed(norm2(middle.detach()))


def _block_attending_twice(x: Tensor, norm1: Any, attend: Any, norm2: Any, feed: Any) -> Tensor:
    attend(norm1(x))
    middle = x + attend(norm1(x))
    return middle + feed(norm2(middle))


def _block_feeding_twice(x: Tensor, norm1: Any, attend: Any, norm2: Any, feed: Any) -> Tensor:
    middle = x + attend(norm1(x))
    feed(norm2(middle))
    return middle + feed(norm2(middle))


def _block_dropping(x: Tensor, norm1: Any, attend: Any, norm2: Any, feed: Any) -> Tensor:
    middle = x + F.dropout(attend(norm1(x)), 0.1)
    return middle + F.dropout(feed(norm2(middle)), 0.1)


def _block_remembering() -> Callable[..., Tensor]:
    seen: list[float] = []

    def block(x: Tensor, norm1: Any, attend: Any, norm2: Any, feed: Any) -> Tensor:
        middle = x + attend(norm1(x))
        seen.append(middle.detach().double().mean().item())
        return middle + feed(norm2(middle)) + (sum(seen) - seen[0]) / len(seen)

    return block


BLOCK_MISTAKES = (
    *BLOCK_FIRST_MISTAKES,
    *BLOCK_SECOND_MISTAKES,
    Mistake(
        "post_norm",
        "karpathy/nanoGPT#278",
        partial(
            mistaken_block,
            first=lambda x, n1, a, n2, f: n1(x + a(x)),
            second=lambda h, x, n1, a, n2, f: n2(h + f(h)),
        ),
        {
            "en": "the block is post-norm, norm(x + sublayer(x)): norms stand on the stream",
            "ru": "блок post-norm, norm(x + sublayer(x)): нормализации стоят на самом потоке",
        },
        {"en": "x + sublayer(norm(x))", "ru": "x + sublayer(norm(x))"},
    ),
    Mistake(
        "residuals_carry_norms",
        "Howuhh/faster-trajectory-transformer#3",
        partial(
            mistaken_block,
            first=lambda x, n1, a, n2, f: block_added_to(n1(x), a),
            second=lambda h, x, n1, a, n2, f: block_added_to(n2(h), f),
        ),
        {
            "en": "both sums add the normed tokens: x = norm(x) overwrote the stream",
            "ru": "в обеих суммах нормализованное вместо потока: x = norm(x) его затёрло",
        },
        {"en": "x + sublayer(norm(x))", "ru": "x + sublayer(norm(x))"},
    ),
    Mistake(
        "residuals_missing",
        "a mutation of right code",
        partial(
            mistaken_block,
            first=lambda x, n1, a, n2, f: a(n1(x)),
            second=lambda h, x, n1, a, n2, f: f(n2(h)),
        ),
        {"en": "neither sum is there: a plain chain", "ru": "нет ни одной суммы: простая цепочка"},
        {"en": "x = x + sublayer(norm(x))", "ru": "x = x + sublayer(norm(x))"},
    ),
    Mistake(
        "norms_forgotten",
        "agentdr1/LA_MIL#3",
        partial(
            mistaken_block,
            first=lambda x, n1, a, n2, f: x + a(x),
            second=lambda h, x, n1, a, n2, f: h + f(h),
        ),
        {"en": "neither norm is ever used", "ru": "ни одна нормализация не используется"},
        {"en": "x + sublayer(norm(x))", "ru": "x + sublayer(norm(x))"},
    ),
    Mistake(
        "norms_after_sublayers",
        "keras-team/keras-io#2144",
        partial(
            mistaken_block,
            first=lambda x, n1, a, n2, f: x + n1(a(x)),
            second=lambda h, x, n1, a, n2, f: h + n2(f(h)),
        ),
        {
            "en": "both norms work on what the sublayers give: x + norm(sublayer(x))",
            "ru": "обе нормализации стоят на выходах подслоёв: x + norm(sublayer(x))",
        },
        {"en": "x + sublayer(norm(x))", "ru": "x + sublayer(norm(x))"},
    ),
    Mistake(
        "norms_swapped",
        "a mutation of right code",
        partial(
            mistaken_block,
            first=lambda x, n1, a, n2, f: x + a(n2(x)),
            second=lambda h, x, n1, a, n2, f: h + f(n1(h)),
        ),
        {"en": "norm1 and norm2 are swapped", "ru": "norm1 и norm2 переставлены"},
        {
            "en": "norm1 before attend, norm2 before feed",
            "ru": ("norm1 перед attend, norm2 перед feed"),
        },
    ),
    Mistake(
        "norm2_used_twice",
        "ml-explore/mlx#1636",
        partial(mistaken_block, first=lambda x, n1, a, n2, f: x + a(n2(x))),
        {
            "en": "norm2 stands before attend too, and norm1 is never used",
            "ru": "norm2 стоит и перед attend, а norm1 не используется",
        },
        {"en": "attend(norm1(x))", "ru": "attend(norm1(x))"},
    ),
    Mistake(
        "feed_first",
        "a mutation of right code",
        partial(
            mistaken_block,
            first=lambda x, n1, a, n2, f: x + f(n2(x)),
            second=lambda h, x, n1, a, n2, f: h + a(n1(h)),
        ),
        {
            "en": "feed comes first and attend second, each with its own norm",
            "ru": "сначала feed, потом attend, каждый со своей нормализацией",
        },
        {"en": "attend first, then feed", "ru": "сначала attend, потом feed"},
    ),
    Mistake(
        "sublayers_swapped",
        "a mutation of right code",
        partial(
            mistaken_block,
            first=lambda x, n1, a, n2, f: x + f(n1(x)),
            second=lambda h, x, n1, a, n2, f: h + a(n2(h)),
        ),
        {
            "en": "attend and feed are swapped, the norms stay",
            "ru": "attend и feed переставлены, нормализации на месте",
        },
        {"en": "attend(norm1(x)), feed(norm2(x))", "ru": "attend(norm1(x)), feed(norm2(x))"},
    ),
    Mistake(
        "last_norm_added",
        "pytorch/pytorch#50086",
        partial(mistaken_block, last=lambda y, n1, n2: n2(y)),
        {
            "en": "the result is normed once more: the stream leaves the block normalised",
            "ru": "результат нормализован ещё раз: поток выходит из блока нормализованным",
        },
        {"en": "return x + feed(norm2(x))", "ru": "return x + feed(norm2(x))"},
    ),
    Mistake(
        "sums_scaled",
        "tobyyouup/conv_seq2seq#17",
        partial(
            mistaken_block,
            first=lambda x, n1, a, n2, f: (x + a(n1(x))) * 0.5**0.5,
            second=lambda h, x, n1, a, n2, f: (h + f(n2(h))) * 0.5**0.5,
        ),
        {
            "en": "each sum is multiplied by √0.5, as in convolutional models",
            "ru": "каждая сумма умножена на √0,5, как в свёрточных моделях",
        },
        {"en": "x + sublayer(norm(x))", "ru": "x + sublayer(norm(x))"},
    ),
    Mistake(
        "stream_changed_in_place",
        "NVIDIA-NeMo/Speech#7440",
        lambda: _block_in_place,
        {
            "en": "x += ... writes into the caller's tensor",
            "ru": "x += ... пишет в переданный тензор",
        },
        {"en": "x = x + ...", "ru": "x = x + ..."},
    ),
    Mistake(
        "stream_detached",
        "a mutation of right code",
        lambda: _block_stream_detached,
        {
            "en": "the stream is detached: no gradient passes by the sublayers",
            "ru": "поток отсоединён: градиент не проходит мимо подслоёв",
        },
        {"en": "x + ..., not x.detach() + ...", "ru": "x + ..., а не x.detach() + ..."},
    ),
    Mistake(
        "reads_detached",
        "a mutation of right code",
        lambda: _block_reads_detached,
        {
            "en": "the sublayers read a detached stream: no gradient comes back through them",
            "ru": "подслои читают отсоединённый поток: сквозь них градиент не возвращается",
        },
        {"en": "norm1(x), not norm1(x.detach())", "ru": "norm1(x), а не norm1(x.detach())"},
    ),
    Mistake(
        "attend_called_twice",
        "a mutation of right code",
        lambda: _block_attending_twice,
        {
            "en": "attend works twice a call: its cache grows twice, dropout is drawn twice",
            "ru": "attend работает дважды: кэш растёт вдвое, dropout выпадает дважды",
        },
        {"en": "call it once, keep the result", "ru": "вызовите один раз и храните результат"},
    ),
    Mistake(
        "feed_called_twice",
        "a mutation of right code",
        lambda: _block_feeding_twice,
        {"en": "feed works twice a call", "ru": "feed работает дважды за вызов"},
        {"en": "call it once, keep the result", "ru": "вызовите один раз и храните результат"},
    ),
    Mistake(
        "block_by_chance",
        "karpathy/nanoGPT#240",
        lambda: _block_dropping,
        {
            "en": "the result depends on chance, as with a dropout that is always on",
            "ru": "результат зависит от случая, как при вечно включённом dropout",
        },
        {
            "en": "leave dropout to the sublayers and their eval()",
            "ru": "оставьте dropout подслоям и их eval()",
        },
    ),
    Mistake(
        "block_remembers",
        "a mutation of right code",
        _block_remembering,
        {
            "en": "the result depends on earlier calls",
            "ru": "результат зависит от прежних вызовов",
        },
        {"en": "use only the arguments of this call", "ru": "берите только аргументы этого вызова"},
    ),
)
