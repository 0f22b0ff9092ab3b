"""Weight tying that does not tie, or not for long, as people reported it."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.engine.mistake import mistakes


class TyingPair(nn.Module):
    """An embedding and a head, not tied yet."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.head: Any = nn.Linear(d_model, vocab_size, bias=False)


class _ConvertedPair(TyingPair):
    """A pair whose Parameters are made anew by every conversion."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "_ConvertedPair":
        for part in (self.embedding, self.head):
            part.weight = nn.Parameter(fn(part.weight.detach().clone()))
        return self


class _LoadedPair(TyingPair):
    """A pair whose Parameters are replaced by those of a checkpoint."""

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        copied = {name: value.clone() for name, value in state_dict.items()}
        return super().load_state_dict(copied, strict=strict, assign=True)


class _CopiedPair(TyingPair):
    """A pair that copies its Parameters one by one."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "_CopiedPair":
        twin = type(self)(*self.embedding.weight.shape)
        twin.embedding, twin.head = copy.deepcopy(self.embedding), copy.deepcopy(self.head)
        return twin


def mistaken_tying(
    *,
    pair: type[TyingPair] = TyingPair,
    embedding: Callable[[Any], nn.Parameter] = lambda weight: weight,
    head: Callable[[nn.Parameter], nn.Parameter | nn.Module] = lambda weight: weight,
) -> Callable[[int, int], TyingPair]:
    """A tied pair, but for one step: the weight of the embedding, or what the head gets of it."""

    def build(vocab_size: int, d_model: int) -> TyingPair:
        module = pair(vocab_size, d_model)
        weight = module.embedding.weight = embedding(module.embedding.weight)
        given = head(weight)
        if isinstance(given, nn.Module):
            module.head = given
        else:
            module.head.weight = given
        return module

    return build


class _MadeHead(nn.Module):
    """A head whose weight is made from the embedding's each time it is asked for."""

    def __init__(self, weight: nn.Parameter, made: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.made = made
        self.__dict__["source"] = weight  # no Parameter of the head: it belongs to the embedding

    @property
    def weight(self) -> Tensor:
        """The weight, made now."""
        return self.made(self.__dict__["source"])


class _SyncedHead(nn.Module):
    """A head with a Parameter of its own that is overwritten whenever somebody asks for it."""

    def __init__(self, weight: nn.Parameter) -> None:
        super().__init__()
        self.own = nn.Parameter(torch.empty_like(weight))
        self.__dict__["source"] = weight

    @property
    def weight(self) -> nn.Parameter:
        """Its own weight, once it holds the numbers of the embedding."""
        self.own.data.copy_(self.__dict__["source"].data)
        return self.own


def _unlisted(vocab_size: int, d_model: int) -> TyingPair:
    module = TyingPair(vocab_size, d_model)
    weight = module.embedding.weight
    del module.embedding.weight, module.head.weight
    module.embedding.__dict__["weight"] = module.head.__dict__["weight"] = weight
    return module


def _global() -> Callable[[int, int], TyingPair]:
    shared: dict[torch.Size, nn.Parameter] = {}
    return mistaken_tying(embedding=lambda weight: shared.setdefault(weight.shape, weight))


# fmt: off
TYING_MISTAKES = mistakes(
    mistaken_tying,
    tied_by_copy=("rasbt/LLMs-from-scratch#822",
        "the numbers are copied: two Parameters, equal until the first step | "
        "числа скопированы: два параметра, равные лишь до первого шага",
        "head.weight = embedding.weight",
        {"head": lambda weight: nn.Parameter(weight.detach().clone())}),
    only_data_shared=("paiml/entrenar#314",
        "two Parameters over one memory: each has its gradient and its optimiser state, and one "
        "matrix takes two steps | два параметра в одной памяти: у каждого свой градиент и "
        "состояние оптимизатора, и матрица делает два шага",
        "head.weight = embedding.weight", {"head": lambda weight: nn.Parameter(weight.detach())}),
    tie_replaced=("NVIDIA-NeMo/Automodel#2511",
        "never tied, or tied before an initialisation that puts in a new Parameter | "
        "связи нет, или её отменила инициализация, поставившая новый параметр",
        "initialise first, tie last | сначала инициализация, потом связь",
        {"head": lambda weight: nn.Parameter(torch.randn_like(weight))}),
    sizes_swapped=("", "both weights are [d_model, vocab_size] | оба веса — [d_model, vocab_size]",
        "nn.Embedding(vocab_size, d_model)",
        {"embedding": lambda weight: nn.Parameter(weight.detach().T.contiguous())}),
    head_transposed=("", "the head gets a transposed view; nn.Linear keeps [out, in] already | "
        "head получает транспонированный view, а nn.Linear и так хранит [out, in]",
        "head.weight = embedding.weight, no .T | head.weight = embedding.weight без .T",
        {"head": lambda weight: nn.Parameter(weight.detach().T)}),
    head_detached=("", "the head reads a detached weight: what it learns is lost | "
        "head читает отсоединённый вес: то, чему она учится, теряется",
        "the Parameter itself, no detach() | сам параметр, без detach()",
        {"head": lambda weight: _MadeHead(weight, Tensor.detach)}),
    head_cloned=("", "the head makes a copy each time it is used: it holds no Parameter | "
        "head при каждом обращении делает копию: параметра в ней нет",
        "the Parameter itself, no clone() | сам параметр, без clone()",
        {"head": lambda weight: _MadeHead(weight, Tensor.clone)}),
    head_synced=("qlabs-eng/slowrun#25",
        "the head's own Parameter is overwritten by the embedding: its gradient is lost | "
        "собственный параметр head перезаписывается эмбеддингом: его градиент потерян",
        "head.weight = embedding.weight", {"head": _SyncedHead}),
    tie_frozen=("", "the shared Parameter does not require a gradient and never learns | "
        "общий параметр не требует градиента и не обучается", "requires_grad=True",
        {"head": lambda weight: weight.requires_grad_(False)}),
    tie_unlisted=("", "parameters() does not list the shared Parameter: no optimiser sees it | "
        "общего параметра нет в parameters(): оптимизатор его не видит",
        "assign it as an attribute of a module | сделайте его атрибутом модуля", lambda: _unlisted),
    untied_by_conversion=("Modalities/modalities#357",
        "a change of dtype or device makes two Parameters of one | "
        "смена типа или устройства делает из одного параметра два",
        "tie again after the conversion | после преобразования свяжите снова",
        {"pair": _ConvertedPair}),
    untied_by_loading=("huggingface/transformers#33913",
        "load_state_dict puts in two Parameters where one was | "
        "load_state_dict ставит два параметра вместо одного",
        "copy into the Parameter, or tie again | копируйте в параметр или свяжите снова",
        {"pair": _LoadedPair}),
    untied_by_copying=("",
        "a deep copy of the module has two Parameters | у глубокой копии модуля два параметра",
        "one copy.deepcopy, with its memo | один copy.deepcopy с его memo", {"pair": _CopiedPair}),
    one_for_all_builds=("",
        "all modules of a size share one Parameter | у всех модулей одного размера общий параметр",
        "make a new Parameter in every build | создавайте параметр в каждом вызове", _global),
)
# fmt: on
