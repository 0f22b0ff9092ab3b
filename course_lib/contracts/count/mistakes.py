"""Counts of parameters that are wrong in one way each, as people reported them."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.engine.mistake import Mistake


def mistaken_count(
    *,
    tensors: Callable[[nn.Module], Iterable[Tensor]] = nn.Module.parameters,
    size: Callable[[Tensor], Any] = Tensor.numel,
    kept: Callable[[list[Tensor]], Iterable[Tensor]] = list,
) -> Callable[[nn.Module], int]:
    """A count by another rule: which tensors, which of them are kept, what is added for each."""

    def count_parameters(module: nn.Module) -> int:
        return sum(int(size(tensor)) for tensor in kept(list(tensors(module))))

    return count_parameters


def _every_use(module: nn.Module) -> list[Tensor]:
    return [tensor for _, tensor in module.named_parameters(remove_duplicate=False)]


def _with_buffers(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(), *module.buffers()]


def _saved_tensors(module: nn.Module) -> list[Tensor]:
    return list(module.state_dict().values())


def _outside_embeddings(module: nn.Module) -> list[Tensor]:
    inside = [id(m.weight) for m in module.modules() if isinstance(m, nn.Embedding)]
    return [tensor for tensor in module.parameters() if id(tensor) not in inside]


def _used_once(module: nn.Module) -> list[Tensor]:
    uses = [id(tensor) for tensor in _every_use(module)]
    return [tensor for tensor in module.parameters() if uses.count(id(tensor)) == 1]


def _first_level(module: nn.Module) -> list[Tensor]:
    return [t for m in (module, *module.children()) for t in m.parameters(recurse=False)]


def _leaves_only(module: nn.Module) -> list[Tensor]:
    leaves = [found for found in module.modules() if not list(found.children())]
    return _distinct([tensor for leaf in leaves for tensor in leaf.parameters()], id)


def _no_biases(module: nn.Module) -> list[Tensor]:
    return [tensor for name, tensor in module.named_parameters() if "bias" not in name]


def _distinct(tensors: list[Tensor], key: Callable[[Tensor], Any]) -> list[Tensor]:
    return list({key(tensor): tensor for tensor in reversed(tensors)}.values())


def _shape_and_values(tensor: Tensor) -> tuple[tuple[int, ...], str]:
    return tuple(tensor.shape), str(tensor.tolist())


def _small_integers(tensor: Tensor) -> Tensor:
    return torch.tensor(tensor.shape, dtype=torch.int32).prod(dtype=torch.int32)


def _remembering_count() -> Callable[[nn.Module], int]:
    seen: dict[type, int] = {}

    def count_parameters(module: nn.Module) -> int:
        count = sum(parameter.numel() for parameter in module.parameters())
        return seen.setdefault(type(module), count)

    return count_parameters


def _freezing_count(module: nn.Module) -> int:
    return sum(parameter.requires_grad_(False).numel() for parameter in module.parameters())


_BY_IDENTITY = {"en": "compare identity: `is`, id()", "ru": "сравнивайте объекты: `is`, id()"}

PARAMETER_COUNT_MISTAKES = (
    Mistake(
        "shared_counted_twice",
        "bigscience-workshop/Megatron-DeepSpeed#99",
        partial(mistaken_count, tensors=_every_use),
        {
            "en": "a Parameter in two places counts twice: the tied matrix is one, not two",
            "ru": "параметр, стоящий в двух местах, сосчитан дважды, хотя связанная матрица одна",
        },
        {
            "en": "sum over module.parameters(), which drops repeats",
            "ru": "сумма по module.parameters(): повторов там нет",
        },
    ),
    Mistake(
        "state_dict_counted",
        "karpathy/llama2.c#378",
        partial(mistaken_count, tensors=_saved_tensors),
        {
            "en": "the tensors of the state_dict are counted: buffers too, and shared ones twice",
            "ru": "сосчитаны тензоры state_dict: вместе с буферами, а общие — дважды",
        },
        {"en": "module.parameters()", "ru": "module.parameters()"},
    ),
    Mistake(
        "buffers_counted",
        "deepmodeling/deepmd-kit#4783",
        partial(mistaken_count, tensors=_with_buffers),
        {
            "en": "buffers count too, though no training changes them",
            "ru": "сосчитаны и буферы, которые не обучаются",
        },
        {"en": "module.parameters() alone", "ru": "только module.parameters()"},
    ),
    Mistake(
        "tied_subtracted",
        "pytorch/torchtitan#3225",
        partial(mistaken_count, tensors=_used_once),
        {
            "en": "a shared Parameter is subtracted once more: parameters() has it only once",
            "ru": "общий параметр вычтен лишний раз: в parameters() он и так один",
        },
        {"en": "subtract nothing", "ru": "ничего не вычитайте"},
    ),
    Mistake(
        "embeddings_excluded",
        "karpathy/nanoGPT#209",
        partial(mistaken_count, tensors=_outside_embeddings),
        {
            "en": "embeddings are left out, and a tied output matrix with them",
            "ru": "эмбеддинги не сосчитаны, а с ними и связанная выходная матрица",
        },
        {"en": "every Parameter counts", "ru": "считается каждый параметр"},
    ),
    Mistake(
        "own_parameters_only",
        "a mutation of right code",
        partial(mistaken_count, tensors=partial(nn.Module.parameters, recurse=False)),
        {
            "en": "only the Parameters of the module itself count, not those of its children",
            "ru": "сосчитаны параметры самого модуля, но не вложенных в него",
        },
        {"en": "parameters() with recurse=True", "ru": "parameters() с recurse=True"},
    ),
    Mistake(
        "first_level_only",
        "a mutation of right code",
        partial(mistaken_count, tensors=_first_level),
        {"en": "modules inside the children are left out", "ru": "модули ещё глубже не сосчитаны"},
        {"en": "module.parameters()", "ru": "module.parameters()"},
    ),
    Mistake(
        "leaf_modules_only",
        "a mutation of right code",
        partial(mistaken_count, tensors=_leaves_only),
        {
            "en": "a module that has children loses its own Parameters",
            "ru": "у модуля с вложенными модулями потеряны его собственные параметры",
        },
        {"en": "module.parameters()", "ru": "module.parameters()"},
    ),
    Mistake(
        "biases_left_out",
        "a mutation of right code",
        partial(mistaken_count, tensors=_no_biases),
        {"en": "biases are left out", "ru": "смещения (bias) не сосчитаны"},
        {"en": "every Parameter counts", "ru": "считается каждый параметр"},
    ),
    Mistake(
        "matrices_only",
        "a mutation of right code",
        partial(mistaken_count, kept=lambda found: [t for t in found if t.dim() > 1]),
        {
            "en": "vectors and scalars are left out: biases and the gains of norms",
            "ru": "векторы и скаляры не сосчитаны: смещения (bias) и множители нормализаций",
        },
        {"en": "every Parameter counts, whatever its shape", "ru": "форма параметра не важна"},
    ),
    Mistake(
        "shape_summed",
        "a mutation of right code",
        partial(mistaken_count, size=lambda tensor: sum(tensor.shape)),
        {
            "en": "the sizes of a shape are added, not multiplied",
            "ru": "размеры осей сложены, а не перемножены",
        },
        {"en": "parameter.numel()", "ru": "parameter.numel()"},
    ),
    Mistake(
        "rows_counted",
        "a mutation of right code",
        partial(mistaken_count, size=lambda tensor: tensor.shape[0] if tensor.dim() else 1),
        {
            "en": "the rows of a matrix are counted, not its numbers",
            "ru": "сосчитаны строки матрицы, а не её числа",
        },
        {"en": "numel(), not len() or shape[0]", "ru": "numel(), а не len() или shape[0]"},
    ),
    Mistake(
        "tensors_counted",
        "a mutation of right code",
        partial(mistaken_count, size=lambda tensor: 1),
        {
            "en": "the Parameters are counted, not the numbers in them",
            "ru": "сосчитаны сами параметры, а не числа в них",
        },
        {"en": "sum of parameter.numel()", "ru": "сумма parameter.numel()"},
    ),
    Mistake(
        "bytes_counted",
        "a mutation of right code",
        partial(mistaken_count, size=lambda tensor: tensor.numel() * tensor.element_size()),
        {"en": "bytes are counted, not numbers", "ru": "сосчитаны байты, а не числа"},
        {"en": "numel(), without element_size()", "ru": "numel() без element_size()"},
    ),
    Mistake(
        "equal_shapes_merged",
        "a mutation of right code",
        partial(mistaken_count, kept=partial(_distinct, key=lambda tensor: tuple(tensor.shape))),
        {
            "en": "Parameters of one shape are taken for one Parameter",
            "ru": "параметры одной формы приняты за один параметр",
        },
        _BY_IDENTITY,
    ),
    Mistake(
        "equal_values_merged",
        "a mutation of right code",
        partial(mistaken_count, kept=partial(_distinct, key=_shape_and_values)),
        {
            "en": "Parameters with equal numbers are taken for one Parameter",
            "ru": "параметры с равными числами приняты за один параметр",
        },
        _BY_IDENTITY,
    ),
    Mistake(
        "addresses_merged",
        "a mutation of right code",
        partial(mistaken_count, kept=partial(_distinct, key=Tensor.data_ptr)),
        {
            "en": "repeats are told by memory address, and on the meta device all addresses are 0",
            "ru": "повторы ищутся по адресу в памяти, а на устройстве meta все адреса — 0",
        },
        _BY_IDENTITY,
    ),
    Mistake(
        "storages_merged",
        "a mutation of right code",
        partial(
            mistaken_count,
            kept=partial(_distinct, key=lambda tensor: tensor.untyped_storage().data_ptr()),
        ),
        {
            "en": "Parameters cut from one storage are taken for one Parameter",
            "ru": "параметры, вырезанные из одного хранилища, приняты за один",
        },
        _BY_IDENTITY,
    ),
    Mistake(
        "small_integers",
        "a mutation of right code",
        partial(mistaken_count, size=_small_integers),
        {
            "en": "the product overflows 32 bits on a large matrix",
            "ru": "на большой матрице произведение не помещается в 32 бита",
        },
        {"en": "Python integers or int64", "ru": "целые Python или int64"},
    ),
    Mistake(
        "first_count_kept",
        "a mutation of right code",
        _remembering_count,
        {
            "en": "the count of an earlier module of the same class comes back",
            "ru": "возвращается число, сосчитанное для прежнего модуля того же класса",
        },
        {"en": "count anew on every call", "ru": "считайте заново при каждом вызове"},
    ),
    Mistake(
        "parameters_frozen",
        "a mutation of right code",
        lambda: _freezing_count,
        {
            "en": "counting switches requires_grad off, and the module trains no more",
            "ru": "подсчёт выключает requires_grad, и модуль больше не обучается",
        },
        {"en": "only read the Parameters", "ru": "только читайте параметры"},
    ),
)
