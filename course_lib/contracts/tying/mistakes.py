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
        self.head = nn.Linear(d_model, vocab_size, bias=False)


def mistaken_tying(
    tie: Callable[[Any], None], pair: type[TyingPair] = TyingPair
) -> Callable[[int, int], nn.Module]:
    """Build a pair and tie it in another way."""

    def build(vocab_size: int, d_model: int) -> nn.Module:
        module = pair(vocab_size, d_model)
        tie(module)
        return module

    return build


def tie_rightly(module: Any) -> None:
    """One Parameter, two uses."""
    module.head.weight = module.embedding.weight


def _tie_by_copy(module: Any) -> None:
    module.head.weight = nn.Parameter(module.embedding.weight.detach().clone())


def _tie_data(module: Any) -> None:
    module.head.weight.data = module.embedding.weight.data


def _tie_transposed(module: Any) -> None:
    module.head.weight = nn.Parameter(module.embedding.weight.detach().T)


def _tie_then_initialise(module: Any) -> None:
    tie_rightly(module)
    module.embedding.weight = nn.Parameter(torch.randn_like(module.embedding.weight))


def _tie_swapped(module: Any) -> None:
    module.embedding.weight = nn.Parameter(module.embedding.weight.detach().T.contiguous())
    tie_rightly(module)


def _tie_frozen(module: Any) -> None:
    tie_rightly(module)
    module.head.weight.requires_grad_(False)


def _tie_unlisted(module: Any) -> None:
    weight = module.embedding.weight
    del module.embedding.weight, module.head.weight
    module.embedding.__dict__["weight"] = module.head.__dict__["weight"] = weight


class _TyingHead(nn.Module):
    """A head whose weight is made from the embedding's each time it is asked for."""

    def __init__(self, embedding: nn.Embedding, made: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.made = made
        self.__dict__["embedding"] = embedding  # not a child: it belongs to the model

    @property
    def weight(self) -> Tensor:
        """The weight, made now."""
        return self.made(self.embedding.weight)


def _tie_by_head(made: Callable[[Tensor], Tensor]) -> Callable[[Any], None]:
    def tie(module: Any) -> None:
        module.head = _TyingHead(module.embedding, made)

    return tie


class _TyingSyncedHead(nn.Linear):
    """A head with a Parameter of its own that is overwritten whenever somebody asks for it."""

    source: nn.Embedding | None = None

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        source = self.__dict__.get("source")
        if name == "weight" and source is not None:
            found.data.copy_(source.weight.data)
        return found


def _tie_synced(module: Any) -> None:
    rows, columns = module.head.weight.shape
    module.head = _TyingSyncedHead(columns, rows, bias=False)
    module.head.__dict__["source"] = module.embedding


class _TyingConvertedPair(TyingPair):
    """A pair whose Parameters are made anew by every conversion."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
        for part in (self.embedding, self.head):
            part.weight = nn.Parameter(fn(part.weight.detach().clone()))
        return self


class _TyingLoadedPair(TyingPair):
    """A pair whose Parameters are replaced by those of a checkpoint."""

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        copied = {name: value.clone() for name, value in state_dict.items()}
        return super().load_state_dict(copied, strict=strict, assign=True)


class _TyingCopiedPair(TyingPair):
    """A pair that copies its Parameters one by one."""

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Module:
        rows, columns = self.embedding.weight.shape
        twin = type(self)(rows, columns)
        for name in ("embedding", "head"):
            setattr(twin, name, copy.deepcopy(getattr(self, name)))
        return twin


def _tie_globally() -> Callable[[int, int], nn.Module]:
    shared: dict[tuple[int, int], nn.Parameter] = {}

    def build(vocab_size: int, d_model: int) -> nn.Module:
        module = TyingPair(vocab_size, d_model)
        weight = shared.setdefault((vocab_size, d_model), module.embedding.weight)
        module.embedding.weight = module.head.weight = weight
        return module

    return build


# fmt: off
TYING_MISTAKES = mistakes(
    None,
    tied_by_copy=("rasbt/LLMs-from-scratch#822",
        "the numbers are copied: two Parameters, equal until the first step | "
        "числа скопированы: два параметра, равные лишь до первого шага",
        "head.weight = embedding.weight", lambda: mistaken_tying(_tie_by_copy)),
    only_data_shared=("paiml/entrenar#314",
        "two Parameters over one memory: each has its gradient and its optimiser state, and one "
        "matrix takes two steps | два параметра в одной памяти: у каждого свой градиент и "
        "состояние оптимизатора, и матрица делает два шага",
        "head.weight = embedding.weight", lambda: mistaken_tying(_tie_data)),
    tie_replaced=("NVIDIA-NeMo/Automodel#2511",
        "never tied, or tied before an initialisation that puts in a new Parameter | "
        "связи нет, или её отменила инициализация, поставившая новый параметр",
        "initialise first, tie last | сначала инициализация, потом связь",
        lambda: mistaken_tying(_tie_then_initialise)),
    sizes_swapped=("",
        "both weights are [d_model, vocab_size] | оба веса — [d_model, vocab_size]",
        "nn.Embedding(vocab_size, d_model)", lambda: mistaken_tying(_tie_swapped)),
    head_transposed=("",
        "the head gets a transposed view; nn.Linear keeps [out, in] already | "
        "head получает транспонированный view, а nn.Linear и так хранит [out, in]",
        "head.weight = embedding.weight, no .T | head.weight = embedding.weight без .T",
        lambda: mistaken_tying(_tie_transposed)),
    head_detached=("",
        "the head reads a detached weight: what it learns is lost | "
        "head читает отсоединённый вес: то, чему она учится, теряется",
        "the Parameter itself, no detach() | сам параметр, без detach()",
        lambda: mistaken_tying(_tie_by_head(Tensor.detach))),
    head_cloned=("",
        "the head makes a copy each time it is used: it holds no Parameter | "
        "head при каждом обращении делает копию: параметра в ней нет",
        "the Parameter itself, no clone() | сам параметр, без clone()",
        lambda: mistaken_tying(_tie_by_head(Tensor.clone))),
    head_synced=("qlabs-eng/slowrun#25",
        "the head's own Parameter is overwritten by the embedding: its gradient is lost | "
        "собственный параметр head перезаписывается эмбеддингом: его градиент потерян",
        "head.weight = embedding.weight", lambda: mistaken_tying(_tie_synced)),
    tie_frozen=("",
        "the shared Parameter does not require a gradient and never learns | "
        "общий параметр не требует градиента и не обучается",
        "requires_grad=True", lambda: mistaken_tying(_tie_frozen)),
    tie_unlisted=("",
        "parameters() does not list the shared Parameter: no optimiser sees it | "
        "общего параметра нет в parameters(): оптимизатор его не видит",
        "assign it as an attribute of a module | сделайте его атрибутом модуля",
        lambda: mistaken_tying(_tie_unlisted)),
    untied_by_conversion=("Modalities/modalities#357",
        "a change of dtype or device makes two Parameters of one | "
        "смена типа или устройства делает из одного параметра два",
        "tie again after the conversion | после преобразования свяжите снова",
        lambda: mistaken_tying(tie_rightly, _TyingConvertedPair)),
    untied_by_loading=("huggingface/transformers#33913",
        "load_state_dict puts in two Parameters where one was | "
        "load_state_dict ставит два параметра вместо одного",
        "copy into the Parameter, or tie again | копируйте в параметр или свяжите снова",
        lambda: mistaken_tying(tie_rightly, _TyingLoadedPair)),
    untied_by_copying=("",
        "a deep copy of the module has two Parameters | у глубокой копии модуля два параметра",
        "one copy.deepcopy, with its memo | один copy.deepcopy с его memo",
        lambda: mistaken_tying(tie_rightly, _TyingCopiedPair)),
    one_for_all_builds=("",
        "all modules of a size share one Parameter | у всех модулей одного размера общий параметр",
        "make a new Parameter in every build | создавайте параметр в каждом вызове", _tie_globally),
)
# fmt: on
