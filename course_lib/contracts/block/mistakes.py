"""Transformer blocks that are wrong in one way each, as people reported them."""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes


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


def _added_to(v: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """A token and what a sublayer makes of it: v + sublayer(v)."""
    return v + sublayer(v)


def _remembering() -> Callable[..., Tensor]:
    seen: list[float] = []

    def block(x: Tensor, norm1: Any, attend: Any, norm2: Any, feed: Any) -> Tensor:
        middle = x + attend(norm1(x))
        seen.append(middle.detach().double().mean().item())
        return middle + feed(norm2(middle)) + (sum(seen) - seen[0]) / len(seen)

    return block


# fmt: off
BLOCK_MISTAKES = mistakes(
    mistaken_block,
    first_residual_missing=("patverga/bran#5",
        "x is not added to what attend gives: the stream is cut there | "
        "x не прибавлен к выходу attend: поток там обрывается",
        "x = x + attend(norm1(x))", {"first": lambda x, n1, a, n2, f: a(n1(x))}),
    first_residual_carries_norm=("lbcb-sci/RiNALMo#9",
        "the first sum adds norm1(x) and not x: the stream is normalised away | "
        "в первой сумме norm1(x) вместо x: нормализуется сам поток",
        "x + attend(norm1(x))", {"first": lambda x, n1, a, n2, f: _added_to(n1(x), a)}),
    norm1_forgotten=("",
        "attend reads x without norm1 | attend читает x без norm1",
        "attend(norm1(x))", {"first": lambda x, n1, a, n2, f: x + a(x)}),
    norm1_after_attend=("keras-team/keras-io#2144",
        "norm1 works on what attend gives, not on what it reads | "
        "norm1 нормализует выход attend, а не его вход",
        "attend(norm1(x))", {"first": lambda x, n1, a, n2, f: x + n1(a(x))}),
    first_sum_normed=("",
        "the first half is post-norm: norm1(x + attend(x)) | "
        "первая половина — post-norm: norm1(x + attend(x))",
        "x + attend(norm1(x))", {"first": lambda x, n1, a, n2, f: n1(x + a(x))}),
    attend_added_to_itself=("kyegomez/BitNet#32",
        "attend's output is added to itself: x was overwritten before the sum | "
        "выход attend прибавлен к самому себе: x затёрт ещё до сложения",
        "keep x: x = x + attend(norm1(x)) in one line | "
        "сохраните x: x = x + attend(norm1(x)) одной строкой",
        {"first": lambda x, n1, a, n2, f: 2 * a(n1(x))}),
    first_residual_doubled=("yunzeliu/MAP#3",
        "x is added twice at the first sum, inside the sublayer and again outside | "
        "в первой сумме x прибавлен дважды: внутри подслоя и ещё раз снаружи",
        "x + attend(norm1(x)), once | x + attend(norm1(x)), один раз",
        {"first": lambda x, n1, a, n2, f: x + x + a(n1(x))}),
    attend_subtracted=("",
        "attend's output is subtracted | выход attend вычитается",
        "x + attend(norm1(x))", {"first": lambda x, n1, a, n2, f: x - a(n1(x))}),
    attend_dropped=("",
        "attend's output reaches nobody | выход attend никуда не попадает",
        "x = x + attend(norm1(x))", {"first": lambda x, n1, a, n2, f: x}),
    norm1_on_both_sides=("",
        "attend stands between two norms, norm1(attend(norm1(x))) | "
        "attend зажат между двумя нормализациями: norm1(attend(norm1(x)))",
        "attend(norm1(x))", {"first": lambda x, n1, a, n2, f: x + n1(a(n1(x)))}),
    second_residual_missing=("",
        "the stream is not added to what feed gives | поток не прибавлен к выходу feed",
        "x = x + feed(norm2(x))", {"second": lambda h, x, n1, a, n2, f: f(n2(h))}),
    second_residual_carries_norm=("SHI-Labs/Compact-Transformers#25",
        "the second sum adds norm2(x) and not x: the stream is normalised away | "
        "во второй сумме norm2(x) вместо x: нормализуется сам поток",
        "x + feed(norm2(x))", {"second": lambda h, x, n1, a, n2, f: _added_to(n2(h), f)}),
    second_residual_from_input=("strutive07/transformer-tensorflow2.0#14",
        "the second sum adds the block's input: attend's output is lost from the stream | "
        "во второй сумме вход блока: выход attend из потока пропадает",
        "x = x + ...: assign the first sum to x | x = x + ...: присвойте сумму x",
        {"second": lambda h, x, n1, a, n2, f: x + f(n2(h))}),
    norm2_forgotten=("",
        "feed reads the stream without norm2 | feed читает поток без norm2",
        "feed(norm2(x))", {"second": lambda h, x, n1, a, n2, f: h + f(h)}),
    norm1_used_twice=("allenai/OLMo#222",
        "norm1 stands before feed too, and norm2 is never used | "
        "norm1 стоит и перед feed, а norm2 не используется",
        "feed(norm2(x))", {"second": lambda h, x, n1, a, n2, f: h + f(n1(h))}),
    norm2_after_feed=("keras-team/keras-io#2144",
        "norm2 works on what feed gives, not on what it reads | "
        "norm2 нормализует выход feed, а не его вход",
        "feed(norm2(x))", {"second": lambda h, x, n1, a, n2, f: h + n2(f(h))}),
    second_sum_normed=("",
        "the second half is post-norm: norm2(x + feed(x)) | "
        "вторая половина — post-norm: norm2(x + feed(x))",
        "x + feed(norm2(x))", {"second": lambda h, x, n1, a, n2, f: n2(h + f(h))}),
    feed_added_to_itself=("LeeSureman/Flat-Lattice-Transformer#111",
        "feed's output is added to itself: the stream was overwritten before the sum | "
        "выход feed прибавлен к самому себе: поток затёрт ещё до сложения",
        "x = x + feed(norm2(x)) in one line | x = x + feed(norm2(x)) одной строкой",
        {"second": lambda h, x, n1, a, n2, f: 2 * f(n2(h))}),
    second_residual_doubled=("yunzeliu/MAP#3",
        "the stream is added twice at the second sum | во второй сумме поток прибавлен дважды",
        "x + feed(norm2(x)), once | x + feed(norm2(x)), один раз",
        {"second": lambda h, x, n1, a, n2, f: h + h + f(n2(h))}),
    input_added_again=("",
        "the block's input is added once more at the second sum | "
        "во второй сумме ещё раз прибавлен вход блока",
        "x + feed(norm2(x))", {"second": lambda h, x, n1, a, n2, f: h + x + f(n2(h))}),
    parallel=("huggingface/transformers#18695",
        "attend and feed read the same x side by side, as in GPT-NeoX | "
        "attend и feed читают один и тот же x параллельно, как в GPT-NeoX",
        "feed reads x after attend was added | feed читает x после сложения с attend",
        {"second": lambda h, x, n1, a, n2, f: h + f(n2(x))}),
    parallel_with_one_norm=("EleutherAI/gpt-neox#481",
        "attend and feed read the same norm1(x) side by side, as in GPT-J | "
        "attend и feed читают один и тот же norm1(x) параллельно, как в GPT-J",
        "feed(norm2(x)) after the first sum | feed(norm2(x)) после первой суммы",
        {"second": lambda h, x, n1, a, n2, f: h + f(n1(x))}),
    feed_reads_attend_only=("",
        "feed reads attend's output alone, without the stream | "
        "feed читает один выход attend, без потока",
        "feed(norm2(x + attend(norm1(x))))",
        {"second": lambda h, x, n1, a, n2, f: h + f(n2(a(n1(x))))}),
    feed_subtracted=("",
        "feed's output is subtracted | выход feed вычитается",
        "x + feed(norm2(x))", {"second": lambda h, x, n1, a, n2, f: h - f(n2(h))}),
    feed_dropped=("",
        "feed's output reaches nobody | выход feed никуда не попадает",
        "x = x + feed(norm2(x))", {"second": lambda h, x, n1, a, n2, f: h}),
    post_norm=("karpathy/nanoGPT#278",
        "the block is post-norm, norm(x + sublayer(x)): norms stand on the stream | "
        "блок post-norm, norm(x + sublayer(x)): нормализации стоят на самом потоке",
        "x + sublayer(norm(x))",
        {"first": lambda x, n1, a, n2, f: n1(x + a(x)),
         "second": lambda h, x, n1, a, n2, f: n2(h + f(h))}),
    residuals_carry_norms=("Howuhh/faster-trajectory-transformer#3",
        "both sums add the normed tokens: x = norm(x) overwrote the stream | "
        "в обеих суммах нормализованное вместо потока: x = norm(x) его затёрло",
        "x + sublayer(norm(x))",
        {"first": lambda x, n1, a, n2, f: _added_to(n1(x), a),
         "second": lambda h, x, n1, a, n2, f: _added_to(n2(h), f)}),
    residuals_missing=("",
        "neither sum is there: a plain chain | нет ни одной суммы: простая цепочка",
        "x = x + sublayer(norm(x))",
        {"first": lambda x, n1, a, n2, f: a(n1(x)),
         "second": lambda h, x, n1, a, n2, f: f(n2(h))}),
    norms_forgotten=("agentdr1/LA_MIL#3",
        "neither norm is ever used | ни одна нормализация не используется",
        "x + sublayer(norm(x))",
        {"first": lambda x, n1, a, n2, f: x + a(x),
         "second": lambda h, x, n1, a, n2, f: h + f(h)}),
    norms_after_sublayers=("keras-team/keras-io#2144",
        "both norms work on what the sublayers give: x + norm(sublayer(x)) | "
        "обе нормализации стоят на выходах подслоёв: x + norm(sublayer(x))",
        "x + sublayer(norm(x))",
        {"first": lambda x, n1, a, n2, f: x + n1(a(x)),
         "second": lambda h, x, n1, a, n2, f: h + n2(f(h))}),
    norms_swapped=("",
        "norm1 and norm2 are swapped | norm1 и norm2 переставлены",
        "norm1 before attend, norm2 before feed | norm1 перед attend, norm2 перед feed",
        {"first": lambda x, n1, a, n2, f: x + a(n2(x)),
         "second": lambda h, x, n1, a, n2, f: h + f(n1(h))}),
    norm2_used_twice=("ml-explore/mlx#1636",
        "norm2 stands before attend too, and norm1 is never used | "
        "norm2 стоит и перед attend, а norm1 не используется",
        "attend(norm1(x))", {"first": lambda x, n1, a, n2, f: x + a(n2(x))}),
    feed_first=("",
        "feed comes first and attend second, each with its own norm | "
        "сначала feed, потом attend, каждый со своей нормализацией",
        "attend first, then feed | сначала attend, потом feed",
        {"first": lambda x, n1, a, n2, f: x + f(n2(x)),
         "second": lambda h, x, n1, a, n2, f: h + a(n1(h))}),
    sublayers_swapped=("",
        "attend and feed are swapped, the norms stay | "
        "attend и feed переставлены, нормализации на месте",
        "attend(norm1(x)), feed(norm2(x))",
        {"first": lambda x, n1, a, n2, f: x + f(n1(x)),
         "second": lambda h, x, n1, a, n2, f: h + a(n2(h))}),
    last_norm_added=("pytorch/pytorch#50086",
        "the result is normed once more: the stream leaves the block normalised | "
        "результат нормализован ещё раз: поток выходит из блока нормализованным",
        "return x + feed(norm2(x))", {"last": lambda y, n1, n2: n2(y)}),
    sums_scaled=("tobyyouup/conv_seq2seq#17",
        "each sum is multiplied by √0.5, as in convolutional models | "
        "каждая сумма умножена на √0,5, как в свёрточных моделях",
        "x + sublayer(norm(x))",
        {"first": lambda x, n1, a, n2, f: (x + a(n1(x))) * 0.5 ** 0.5,
         "second": lambda h, x, n1, a, n2, f: (h + f(n2(h))) * 0.5 ** 0.5}),
    stream_changed_in_place=("NVIDIA-NeMo/Speech#7440",
        "x += ... writes into the caller's tensor | x += ... пишет в переданный тензор",
        "x = x + ...",
        {"first": lambda x, n1, a, n2, f: x.add_(a(n1(x))),
         "second": lambda h, x, n1, a, n2, f: h.add_(f(n2(h)))}),
    stream_detached=("",
        "the stream is detached: no gradient passes by the sublayers | "
        "поток отсоединён: градиент не проходит мимо подслоёв",
        "x + ..., not x.detach() + ... | x + ..., а не x.detach() + ...",
        {"first": lambda x, n1, a, n2, f: x.detach() + a(n1(x)),
         "second": lambda h, x, n1, a, n2, f: h.detach() + f(n2(h))}),
    reads_detached=("",
        "the sublayers read a detached stream: no gradient comes back through them | "
        "подслои читают отсоединённый поток: сквозь них градиент не возвращается",
        "norm1(x), not norm1(x.detach()) | norm1(x), а не norm1(x.detach())",
        {"first": lambda x, n1, a, n2, f: x + a(n1(x.detach())),
         "second": lambda h, x, n1, a, n2, f: h + f(n2(h.detach()))}),
    attend_called_twice=("",
        "attend works twice a call: its cache grows twice, dropout is drawn twice | "
        "attend работает дважды: кэш растёт вдвое, dropout выпадает дважды",
        "call it once, keep the result | вызовите один раз и храните результат",
        {"first": lambda x, n1, a, n2, f: x + [a(n1(x)) for _ in range(2)][1]}),
    feed_called_twice=("",
        "feed works twice a call | feed работает дважды за вызов",
        "call it once, keep the result | вызовите один раз и храните результат",
        {"second": lambda h, x, n1, a, n2, f: h + [f(n2(h)) for _ in range(2)][1]}),
    block_by_chance=("karpathy/nanoGPT#240",
        "the result depends on chance, as with a dropout that is always on | "
        "результат зависит от случая, как при вечно включённом dropout",
        "leave dropout to the sublayers and their eval() | оставьте dropout подслоям и их eval()",
        {"first": lambda x, n1, a, n2, f: x + F.dropout(a(n1(x)), 0.1),
         "second": lambda h, x, n1, a, n2, f: h + F.dropout(f(n2(h)), 0.1)}),
    block_remembers=("",
        "the result depends on earlier calls | результат зависит от прежних вызовов",
        "use only the arguments of this call | берите только аргументы этого вызова",
        _remembering),
)
# fmt: on
