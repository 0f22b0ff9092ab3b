"""Counts of parameters that are wrong in one way each, as people reported them."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.engine.mistake import mistakes


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


def _used_once(module: nn.Module) -> list[Tensor]:
    uses = [id(tensor) for tensor in _every_use(module)]
    return [tensor for tensor in module.parameters() if uses.count(id(tensor)) == 1]


def _outside_embeddings(module: nn.Module) -> list[Tensor]:
    inside = [id(m.weight) for m in module.modules() if isinstance(m, nn.Embedding)]
    return [tensor for tensor in module.parameters() if id(tensor) not in inside]


def _leaves_only(module: nn.Module) -> list[Tensor]:
    leaves = [found for found in module.modules() if not list(found.children())]
    return _distinct([tensor for leaf in leaves for tensor in leaf.parameters()], id)


def _distinct(tensors: list[Tensor], key: Callable[[Tensor], Any]) -> list[Tensor]:
    return list({key(tensor): tensor for tensor in reversed(tensors)}.values())


def _remembering_count() -> Callable[[nn.Module], int]:
    seen: dict[type, int] = {}

    def count_parameters(module: nn.Module) -> int:
        return seen.setdefault(type(module), mistaken_count()(module))

    return count_parameters


def _freezing_count(module: nn.Module) -> int:
    return sum(parameter.requires_grad_(False).numel() for parameter in module.parameters())


_BY_IDENTITY = "compare identity: `is`, id() | сравнивайте объекты: `is`, id()"

# fmt: off
PARAMETER_COUNT_MISTAKES = mistakes(
    mistaken_count,
    shared_counted_twice=("bigscience-workshop/Megatron-DeepSpeed#99",
        "a Parameter in two places counts twice: the tied matrix is one, not two | "
        "параметр, стоящий в двух местах, сосчитан дважды, хотя связанная матрица одна",
        "sum over module.parameters(), which drops repeats | "
        "сумма по module.parameters(): повторов там нет", {"tensors": _every_use}),
    state_dict_counted=("karpathy/llama2.c#378",
        "the tensors of the state_dict are counted: buffers too, and shared ones twice | "
        "сосчитаны тензоры state_dict: вместе с буферами, а общие — дважды",
        "module.parameters()", {"tensors": lambda module: module.state_dict().values()}),
    buffers_counted=("deepmodeling/deepmd-kit#4783",
        "buffers count too, though no training changes them | "
        "сосчитаны и буферы, которые не обучаются",
        "module.parameters() alone | только module.parameters()",
        {"tensors": lambda module: [*module.parameters(), *module.buffers()]}),
    tied_subtracted=("pytorch/torchtitan#3225",
        "a shared Parameter is subtracted once more: parameters() has it only once | "
        "общий параметр вычтен лишний раз: в parameters() он и так один",
        "subtract nothing | ничего не вычитайте", {"tensors": _used_once}),
    embeddings_excluded=("karpathy/nanoGPT#209",
        "embeddings are left out, and a tied output matrix with them | "
        "эмбеддинги не сосчитаны, а с ними и связанная выходная матрица",
        "every Parameter counts | считается каждый параметр", {"tensors": _outside_embeddings}),
    own_parameters_only=("",
        "only the Parameters of the module itself count, not those of its children | "
        "сосчитаны параметры самого модуля, но не вложенных в него",
        "parameters() with recurse=True | parameters() с recurse=True",
        {"tensors": partial(nn.Module.parameters, recurse=False)}),
    first_level_only=("",
        "modules inside the children are left out | модули ещё глубже не сосчитаны",
        "module.parameters()", {"tensors": lambda module:
            [t for m in (module, *module.children()) for t in m.parameters(recurse=False)]}),
    leaf_modules_only=("", "a module that has children loses its own Parameters | "
        "у модуля с вложенными модулями потеряны его собственные параметры", "module.parameters()",
        {"tensors": _leaves_only}),
    biases_left_out=("", "biases are left out | смещения (bias) не сосчитаны",
        "every Parameter counts | считается каждый параметр",
        {"tensors": lambda module: [t for n, t in module.named_parameters() if "bias" not in n]}),
    matrices_only=("", "vectors and scalars are left out: biases and the gains of norms | "
        "векторы и скаляры не сосчитаны: смещения (bias) и множители нормализаций",
        "every Parameter counts, whatever its shape | форма параметра не важна",
        {"kept": lambda found: [t for t in found if t.dim() > 1]}),
    shape_summed=("",
        "the sizes of a shape are added, not multiplied | размеры осей сложены, а не перемножены",
        "parameter.numel()", {"size": lambda tensor: sum(tensor.shape)}),
    rows_counted=("", "the rows of a matrix are counted, not its numbers | "
        "сосчитаны строки матрицы, а не её числа",
        "numel(), not len() or shape[0] | numel(), а не len() или shape[0]",
        {"size": lambda tensor: tensor.shape[0] if tensor.dim() else 1}),
    tensors_counted=("", "the Parameters are counted, not the numbers in them | "
        "сосчитаны сами параметры, а не числа в них",
        "sum of parameter.numel() | сумма parameter.numel()", {"size": lambda tensor: 1}),
    bytes_counted=("", "bytes are counted, not numbers | сосчитаны байты, а не числа",
        "numel(), without element_size() | numel() без element_size()",
        {"size": lambda tensor: tensor.numel() * tensor.element_size()}),
    equal_shapes_merged=("", "Parameters of one shape are taken for one Parameter | "
        "параметры одной формы приняты за один параметр", _BY_IDENTITY,
        {"kept": partial(_distinct, key=lambda tensor: tuple(tensor.shape))}),
    equal_values_merged=("", "Parameters with equal numbers are taken for one Parameter | "
        "параметры с равными числами приняты за один параметр", _BY_IDENTITY,
        {"kept": partial(_distinct, key=lambda tensor: (tensor.shape, str(tensor.tolist())))}),
    addresses_merged=("",
        "repeats are told by memory address, and on the meta device all addresses are 0 | "
        "повторы ищутся по адресу в памяти, а на устройстве meta все адреса — 0",
        _BY_IDENTITY, {"kept": partial(_distinct, key=Tensor.data_ptr)}),
    storages_merged=("", "Parameters cut from one storage are taken for one Parameter | "
        "параметры, вырезанные из одного хранилища, приняты за один", _BY_IDENTITY,
        {"kept": partial(_distinct, key=lambda tensor: tensor.untyped_storage().data_ptr())}),
    small_integers=("",
        "the product overflows 32 bits on a large matrix | "
        "на большой матрице произведение не помещается в 32 бита",
        "Python integers or int64 | целые Python или int64", {"size": lambda tensor:
            torch.tensor(tensor.shape, dtype=torch.int32).prod(dtype=torch.int32)}),
    first_count_kept=("", "the count of an earlier module of the same class comes back | "
        "возвращается число, сосчитанное для прежнего модуля того же класса",
        "count anew on every call | считайте заново при каждом вызове", _remembering_count),
    parameters_frozen=("", "counting switches requires_grad off, and the module trains no more | "
        "подсчёт выключает requires_grad, и модуль больше не обучается",
        "only read the Parameters | только читайте параметры", lambda: _freezing_count),
)
# fmt: on
