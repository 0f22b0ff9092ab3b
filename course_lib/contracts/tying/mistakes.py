"""Weight tying that does not tie, or not for long, as people reported it."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.engine.mistake import Mistake


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


TYING_MISTAKES = (
    Mistake(
        "tied_by_copy",
        "rasbt/LLMs-from-scratch#822",
        lambda: mistaken_tying(_tie_by_copy),
        {
            "en": "the numbers are copied: two Parameters, equal until the first step",
            "ru": "числа скопированы: два параметра, равные лишь до первого шага",
        },
        {"en": "head.weight = embedding.weight", "ru": "head.weight = embedding.weight"},
    ),
    Mistake(
        "only_data_shared",
        "paiml/entrenar#314",
        lambda: mistaken_tying(_tie_data),
        {
            "en": "two Parameters over one memory: each has its gradient and its optimiser state, "
            "and one matrix takes two steps",
            "ru": "два параметра в одной памяти: у каждого свой градиент и состояние "
            "оптимизатора, и матрица делает два шага",
        },
        {"en": "head.weight = embedding.weight", "ru": "head.weight = embedding.weight"},
    ),
    Mistake(
        "tie_replaced",
        "NVIDIA-NeMo/Automodel#2511",
        lambda: mistaken_tying(_tie_then_initialise),
        {
            "en": "never tied, or tied before an initialisation that puts in a new Parameter",
            "ru": "связи нет, или её отменила инициализация, поставившая новый параметр",
        },
        {"en": "initialise first, tie last", "ru": "сначала инициализация, потом связь"},
    ),
    Mistake(
        "sizes_swapped",
        "a mutation of right code",
        lambda: mistaken_tying(_tie_swapped),
        {"en": "both weights are [d_model, vocab_size]", "ru": "оба веса — [d_model, vocab_size]"},
        {"en": "nn.Embedding(vocab_size, d_model)", "ru": "nn.Embedding(vocab_size, d_model)"},
    ),
    Mistake(
        "head_transposed",
        "a mutation of right code",
        lambda: mistaken_tying(_tie_transposed),
        {
            "en": "the head gets a transposed view; nn.Linear keeps [out, in] already",
            "ru": "head получает транспонированный view, а nn.Linear и так хранит [out, in]",
        },
        {
            "en": "head.weight = embedding.weight, no .T",
            "ru": "head.weight = embedding.weight без .T",
        },
    ),
    Mistake(
        "head_detached",
        "a mutation of right code",
        lambda: mistaken_tying(_tie_by_head(Tensor.detach)),
        {
            "en": "the head reads a detached weight: what it learns is lost",
            "ru": "head читает отсоединённый вес: то, чему она учится, теряется",
        },
        {"en": "the Parameter itself, no detach()", "ru": "сам параметр, без detach()"},
    ),
    Mistake(
        "head_cloned",
        "a mutation of right code",
        lambda: mistaken_tying(_tie_by_head(Tensor.clone)),
        {
            "en": "the head makes a copy each time it is used: it holds no Parameter",
            "ru": "head при каждом обращении делает копию: параметра в ней нет",
        },
        {"en": "the Parameter itself, no clone()", "ru": "сам параметр, без clone()"},
    ),
    Mistake(
        "head_synced",
        "qlabs-eng/slowrun#25",
        lambda: mistaken_tying(_tie_synced),
        {
            "en": "the head's own Parameter is overwritten by the embedding: its gradient is lost",
            "ru": "собственный параметр head перезаписывается эмбеддингом: его градиент потерян",
        },
        {"en": "head.weight = embedding.weight", "ru": "head.weight = embedding.weight"},
    ),
    Mistake(
        "tie_frozen",
        "a mutation of right code",
        lambda: mistaken_tying(_tie_frozen),
        {
            "en": "the shared Parameter does not require a gradient and never learns",
            "ru": "общий параметр не требует градиента и не обучается",
        },
        {"en": "requires_grad=True", "ru": "requires_grad=True"},
    ),
    Mistake(
        "tie_unlisted",
        "a mutation of right code",
        lambda: mistaken_tying(_tie_unlisted),
        {
            "en": "parameters() does not list the shared Parameter: no optimiser sees it",
            "ru": "общего параметра нет в parameters(): оптимизатор его не видит",
        },
        {"en": "assign it as an attribute of a module", "ru": "сделайте его атрибутом модуля"},
    ),
    Mistake(
        "untied_by_conversion",
        "Modalities/modalities#357",
        lambda: mistaken_tying(tie_rightly, _TyingConvertedPair),
        {
            "en": "a change of dtype or device makes two Parameters of one",
            "ru": "смена типа или устройства делает из одного параметра два",
        },
        {"en": "tie again after the conversion", "ru": "после преобразования свяжите снова"},
    ),
    Mistake(
        "untied_by_loading",
        "huggingface/transformers#33913",
        lambda: mistaken_tying(tie_rightly, _TyingLoadedPair),
        {
            "en": "load_state_dict puts in two Parameters where one was",
            "ru": "load_state_dict ставит два параметра вместо одного",
        },
        {
            "en": "copy into the Parameter, or tie again",
            "ru": "копируйте в параметр или свяжите снова",
        },
    ),
    Mistake(
        "untied_by_copying",
        "a mutation of right code",
        lambda: mistaken_tying(tie_rightly, _TyingCopiedPair),
        {
            "en": "a deep copy of the module has two Parameters",
            "ru": "у глубокой копии модуля два параметра",
        },
        {"en": "one copy.deepcopy, with its memo", "ru": "один copy.deepcopy с его memo"},
    ),
    Mistake(
        "one_for_all_builds",
        "a mutation of right code",
        _tie_globally,
        {
            "en": "all modules of a size share one Parameter",
            "ru": "у всех модулей одного размера общий параметр",
        },
        {"en": "make a new Parameter in every build", "ru": "создавайте параметр в каждом вызове"},
    ),
)
