"""Blocks that go wrong at one of their two sums."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake


def mistaken_block(
    *,
    first: Callable[..., Tensor] = lambda x, n1, a, n2, f: x + a(n1(x)),
    second: Callable[..., Tensor] = lambda h, x, n1, a, n2, f: h + f(n2(h)),
    last: Callable[..., Tensor] = lambda y, n1, n2: y,
) -> Callable[..., Tensor]:
    """A block with one of its steps replaced: the first sum h, the second, what comes after."""

    def block(x: Tensor, norm1: Any, attend: Any, norm2: Any, feed: Any) -> Tensor:
        middle = first(x, norm1, attend, norm2, feed)
        return last(second(middle, x, norm1, attend, norm2, feed), norm1, norm2)

    return block


def block_added_to(v: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """A token and what a sublayer makes of it: v + sublayer(v)."""
    return v + sublayer(v)


BLOCK_FIRST_MISTAKES = (
    Mistake(
        "first_residual_missing",
        "patverga/bran#5",
        partial(mistaken_block, first=lambda x, n1, a, n2, f: a(n1(x))),
        {
            "en": "x is not added to what attend gives: the stream is cut there",
            "ru": "x не прибавлен к выходу attend: поток там обрывается",
        },
        {"en": "x = x + attend(norm1(x))", "ru": "x = x + attend(norm1(x))"},
    ),
    Mistake(
        "first_residual_carries_norm",
        "lbcb-sci/RiNALMo#9",
        partial(mistaken_block, first=lambda x, n1, a, n2, f: block_added_to(n1(x), a)),
        {
            "en": "the first sum adds norm1(x) and not x: the stream is normalised away",
            "ru": "в первой сумме norm1(x) вместо x: нормализуется сам поток",
        },
        {"en": "x + attend(norm1(x))", "ru": "x + attend(norm1(x))"},
    ),
    Mistake(
        "norm1_forgotten",
        "a mutation of right code",
        partial(mistaken_block, first=lambda x, n1, a, n2, f: x + a(x)),
        {"en": "attend reads x without norm1", "ru": "attend читает x без norm1"},
        {"en": "attend(norm1(x))", "ru": "attend(norm1(x))"},
    ),
    Mistake(
        "norm1_after_attend",
        "keras-team/keras-io#2144",
        partial(mistaken_block, first=lambda x, n1, a, n2, f: x + n1(a(x))),
        {
            "en": "norm1 works on what attend gives, not on what it reads",
            "ru": "norm1 нормализует выход attend, а не его вход",
        },
        {"en": "attend(norm1(x))", "ru": "attend(norm1(x))"},
    ),
    Mistake(
        "first_sum_normed",
        "a mutation of right code",
        partial(mistaken_block, first=lambda x, n1, a, n2, f: n1(x + a(x))),
        {
            "en": "the first half is post-norm: norm1(x + attend(x))",
            "ru": "первая половина — post-norm: norm1(x + attend(x))",
        },
        {"en": "x + attend(norm1(x))", "ru": "x + attend(norm1(x))"},
    ),
    Mistake(
        "attend_added_to_itself",
        "kyegomez/BitNet#32",
        partial(mistaken_block, first=lambda x, n1, a, n2, f: 2 * a(n1(x))),
        {
            "en": "attend's output is added to itself: x was overwritten before the sum",
            "ru": "выход attend прибавлен к самому себе: x затёрт ещё до сложения",
        },
        {
            "en": "keep x: x = x + attend(norm1(x)) in one line",
            "ru": "сохраните x: x = x + attend(norm1(x)) одной строкой",
        },
    ),
    Mistake(
        "first_residual_doubled",
        "yunzeliu/MAP#3",
        partial(mistaken_block, first=lambda x, n1, a, n2, f: x + x + a(n1(x))),
        {
            "en": "x is added twice at the first sum, inside the sublayer and again outside",
            "ru": "в первой сумме x прибавлен дважды: внутри подслоя и ещё раз снаружи",
        },
        {"en": "x + attend(norm1(x)), once", "ru": "x + attend(norm1(x)), один раз"},
    ),
    Mistake(
        "attend_subtracted",
        "a mutation of right code",
        partial(mistaken_block, first=lambda x, n1, a, n2, f: x - a(n1(x))),
        {"en": "attend's output is subtracted", "ru": "выход attend вычитается"},
        {"en": "x + attend(norm1(x))", "ru": "x + attend(norm1(x))"},
    ),
    Mistake(
        "attend_dropped",
        "a mutation of right code",
        partial(mistaken_block, first=lambda x, n1, a, n2, f: x),
        {"en": "attend's output reaches nobody", "ru": "выход attend никуда не попадает"},
        {"en": "x = x + attend(norm1(x))", "ru": "x = x + attend(norm1(x))"},
    ),
    Mistake(
        "norm1_on_both_sides",
        "a mutation of right code",
        partial(mistaken_block, first=lambda x, n1, a, n2, f: x + n1(a(n1(x)))),
        {
            "en": "attend stands between two norms, norm1(attend(norm1(x)))",
            "ru": "attend зажат между двумя нормализациями: norm1(attend(norm1(x)))",
        },
        {"en": "attend(norm1(x))", "ru": "attend(norm1(x))"},
    ),
)

BLOCK_SECOND_MISTAKES = (
    Mistake(
        "second_residual_missing",
        "a mutation of right code",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: f(n2(h))),
        {
            "en": "the stream is not added to what feed gives",
            "ru": "поток не прибавлен к выходу feed",
        },
        {"en": "x = x + feed(norm2(x))", "ru": "x = x + feed(norm2(x))"},
    ),
    Mistake(
        "second_residual_carries_norm",
        "SHI-Labs/Compact-Transformers#25",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: block_added_to(n2(h), f)),
        {
            "en": "the second sum adds norm2(x) and not x: the stream is normalised away",
            "ru": "во второй сумме norm2(x) вместо x: нормализуется сам поток",
        },
        {"en": "x + feed(norm2(x))", "ru": "x + feed(norm2(x))"},
    ),
    Mistake(
        "second_residual_from_input",
        "strutive07/transformer-tensorflow2.0#14",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: x + f(n2(h))),
        {
            "en": "the second sum adds the block's input: attend's output is lost from the stream",
            "ru": "во второй сумме вход блока: выход attend из потока пропадает",
        },
        {"en": "x = x + ...: assign the first sum to x", "ru": "x = x + ...: присвойте сумму x"},
    ),
    Mistake(
        "norm2_forgotten",
        "a mutation of right code",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: h + f(h)),
        {"en": "feed reads the stream without norm2", "ru": "feed читает поток без norm2"},
        {"en": "feed(norm2(x))", "ru": "feed(norm2(x))"},
    ),
    Mistake(
        "norm1_used_twice",
        "allenai/OLMo#222",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: h + f(n1(h))),
        {
            "en": "norm1 stands before feed too, and norm2 is never used",
            "ru": "norm1 стоит и перед feed, а norm2 не используется",
        },
        {"en": "feed(norm2(x))", "ru": "feed(norm2(x))"},
    ),
    Mistake(
        "norm2_after_feed",
        "keras-team/keras-io#2144",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: h + n2(f(h))),
        {
            "en": "norm2 works on what feed gives, not on what it reads",
            "ru": "norm2 нормализует выход feed, а не его вход",
        },
        {"en": "feed(norm2(x))", "ru": "feed(norm2(x))"},
    ),
    Mistake(
        "second_sum_normed",
        "a mutation of right code",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: n2(h + f(h))),
        {
            "en": "the second half is post-norm: norm2(x + feed(x))",
            "ru": "вторая половина — post-norm: norm2(x + feed(x))",
        },
        {"en": "x + feed(norm2(x))", "ru": "x + feed(norm2(x))"},
    ),
    Mistake(
        "feed_added_to_itself",
        "LeeSureman/Flat-Lattice-Transformer#111",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: 2 * f(n2(h))),
        {
            "en": "feed's output is added to itself: the stream was overwritten before the sum",
            "ru": "выход feed прибавлен к самому себе: поток затёрт ещё до сложения",
        },
        {"en": "x = x + feed(norm2(x)) in one line", "ru": "x = x + feed(norm2(x)) одной строкой"},
    ),
    Mistake(
        "second_residual_doubled",
        "yunzeliu/MAP#3",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: h + h + f(n2(h))),
        {
            "en": "the stream is added twice at the second sum",
            "ru": "во второй сумме поток прибавлен дважды",
        },
        {"en": "x + feed(norm2(x)), once", "ru": "x + feed(norm2(x)), один раз"},
    ),
    Mistake(
        "input_added_again",
        "a mutation of right code",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: h + x + f(n2(h))),
        {
            "en": "the block's input is added once more at the second sum",
            "ru": "во второй сумме ещё раз прибавлен вход блока",
        },
        {"en": "x + feed(norm2(x))", "ru": "x + feed(norm2(x))"},
    ),
    Mistake(
        "parallel",
        "huggingface/transformers#18695",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: h + f(n2(x))),
        {
            "en": "attend and feed read the same x side by side, as in GPT-NeoX",
            "ru": "attend и feed читают один и тот же x параллельно, как в GPT-NeoX",
        },
        {
            "en": "feed reads x after attend was added",
            "ru": "feed читает x после сложения с attend",
        },
    ),
    Mistake(
        "parallel_with_one_norm",
        "EleutherAI/gpt-neox#481",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: h + f(n1(x))),
        {
            "en": "attend and feed read the same norm1(x) side by side, as in GPT-J",
            "ru": "attend и feed читают один и тот же norm1(x) параллельно, как в GPT-J",
        },
        {"en": "feed(norm2(x)) after the first sum", "ru": "feed(norm2(x)) после первой суммы"},
    ),
    Mistake(
        "feed_reads_attend_only",
        "a mutation of right code",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: h + f(n2(a(n1(x))))),
        {
            "en": "feed reads attend's output alone, without the stream",
            "ru": "feed читает один выход attend, без потока",
        },
        {"en": "feed(norm2(x + attend(norm1(x))))", "ru": "feed(norm2(x + attend(norm1(x))))"},
    ),
    Mistake(
        "feed_subtracted",
        "a mutation of right code",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: h - f(n2(h))),
        {"en": "feed's output is subtracted", "ru": "выход feed вычитается"},
        {"en": "x + feed(norm2(x))", "ru": "x + feed(norm2(x))"},
    ),
    Mistake(
        "feed_dropped",
        "a mutation of right code",
        partial(mistaken_block, second=lambda h, x, n1, a, n2, f: h),
        {"en": "feed's output reaches nobody", "ru": "выход feed никуда не попадает"},
        {"en": "x = x + feed(norm2(x))", "ru": "x = x + feed(norm2(x))"},
    ),
)
