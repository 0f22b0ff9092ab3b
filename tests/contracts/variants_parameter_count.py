"""Counts of parameters, right and wrong, beyond the catalogue."""

import functools
import math
import random

import numpy as np
import torch
from torch import nn

from course_lib.contracts import check_parameter_count_contract
from course_lib.contracts.count.mistakes import PARAMETER_COUNT_MISTAKES
from course_lib.cost import count_matrix_weights, count_parameters

from .trial import Fresh, named_by

CHECK, CATALOGUE = check_parameter_count_contract, PARAMETER_COUNT_MISTAKES
CLAUSES = [
    *("result_form", "every_parameter", "shared_once", "equal_apart", "no_buffers"),
    *("large_modules", "independent_results"),
]


def count_by_loop(module):
    total = 0
    for parameter in module.parameters():
        size = 1
        for length in parameter.shape:
            size *= length
        total += size
    return total


def count_by_identity(module):
    seen = {}
    for _, parameter in module.named_parameters(remove_duplicate=False):
        seen[id(parameter)] = parameter.numel()
    return sum(seen.values())


def count_by_modules(module):
    seen, total = set(), 0
    for part in module.modules():
        for parameter in part.parameters(recurse=False):
            if parameter not in seen:
                seen.add(parameter)
                total += math.prod(parameter.shape)
    return total


def count_by_recursion(module, seen=None):
    seen = set() if seen is None else seen
    total = 0
    for parameter in module._parameters.values():
        if parameter is not None and id(parameter) not in seen:
            seen.add(id(parameter))
            total += parameter.nelement()
    for child in module.children():
        total += count_by_recursion(child, seen)
    return total


def count_by_optimizer(module):
    parameters = list(module.parameters())
    if not parameters:
        return 0
    groups = torch.optim.SGD(parameters, lr=0.1).param_groups
    return sum(parameter.numel() for group in groups for parameter in group["params"])


def count_trainable(module):
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def count_with_numpy(module):
    sizes = [np.prod(p.shape, dtype=np.int64) for p in module.parameters()]
    return np.sum(sizes, dtype=np.int64)


def count_as_tensor(module):
    return sum((torch.tensor(p.numel()) for p in module.parameters()), torch.tensor(0))


def count_with_validation(module):
    if not isinstance(module, nn.Module):
        raise TypeError("count_with_validation wants a module")
    return functools.reduce(lambda total, p: total + p.numel(), module.parameters(), 0)


def recursion_without_memory(module):
    own = sum(p.numel() for p in module.parameters(recurse=False))
    return own + sum(recursion_without_memory(child) for child in module.children())


def tied_by_name(module):
    total = sum(p.numel() for _, p in module.named_parameters(remove_duplicate=False))
    head, embedding = getattr(module, "head", None), getattr(module, "embedding", None)
    if head is not None and embedding is not None and head.weight is embedding.weight:
        total -= head.weight.numel()
    return total


def one_shared_at_most():
    def count(module):
        every = [p for _, p in module.named_parameters(remove_duplicate=False)]
        first = next((p for p in every if sum(p is q for q in every) > 1), None)
        kept = [p for p in every if p is not first] + ([] if first is None else [first])
        return sum(p.numel() for p in kept)

    return count


def counted_by_identity_of_old_modules():
    seen = {}

    def count(module):
        return seen.setdefault(len(list(module.modules())), count_by_loop(module))

    return count


def zeroing_gradients(module):
    module.zero_grad()
    return count_by_loop(module)


def switching_to_train(module):
    return sum(p.numel() for p in module.train().parameters())


def adding_up(counts=None):
    counts = []

    def count(module):
        counts.append(count_by_loop(module))
        return sum(counts)

    return count


def of_layers(*kinds):
    def count(module):
        found = [m for m in module.modules() if isinstance(m, kinds)]
        seen = {id(p): p.numel() for m in found for p in m.parameters(recurse=False)}
        return sum(seen.values())

    return count


def all_but(left_out):
    return lambda module: sum(p.numel() for p in module.parameters() if not left_out(p))


def all_so_far():
    total = [0]

    def count(module):
        total[0] += count_by_loop(module)
        return total[0]

    return count


def kept_by_text():
    known = {}
    return lambda module: known.setdefault(repr(module), count_by_loop(module))


RIGHT = {
    "the course's own": count_parameters,
    "by a loop": count_by_loop,
    "by identity": count_by_identity,
    "module by module": count_by_modules,
    "by recursion": count_by_recursion,
    "by an optimizer": count_by_optimizer,
    "trainable ones": count_trainable,
    "with numpy": count_with_numpy,
    "a tensor of one integer": count_as_tensor,
    "with validation": count_with_validation,
}
WRONG = {
    "a float": (lambda module: float(count_by_loop(module)), "result_form"),
    "a bool": (lambda module: bool(count_by_loop(module)), "result_form"),
    "text": (lambda module: f"{count_by_loop(module):,}", "result_form"),
    "a list": (lambda module: [p.numel() for p in module.parameters()], "result_form"),
    "nothing": (lambda module: print(end=""), "result_form"),
    "millions": (lambda module: count_by_loop(module) / 1e6, "result_form"),
    "matrices only": (count_matrix_weights, "every_parameter"),
    "linear layers only": (of_layers(nn.Linear), "every_parameter"),
    "known layers only": (
        of_layers(nn.Linear, nn.Embedding, nn.LayerNorm, nn.Conv1d, nn.MultiheadAttention),
        "every_parameter",
    ),
    "no scalars": (all_but(lambda p: p.dim() == 0), "every_parameter"),
    "no complex numbers": (all_but(torch.is_complex), "every_parameter"),
    "no half precision": (all_but(lambda p: p.dtype == torch.float16), "every_parameter"),
    "real numbers in complex": (
        lambda module: sum(p.numel() * (1 + p.is_complex()) for p in module.parameters()),
        "every_parameter",
    ),
    "gradients counted": (
        lambda module: sum(p.numel() * (1 + (p.grad is not None)) for p in module.parameters()),
        "every_parameter",
    ),
    "no norms, by name": (
        lambda module: sum(
            p.numel() for n, p in module.named_parameters() if not n.startswith(("norm", "ln"))
        ),
        "every_parameter",
    ),
    "no embeddings, by name": (
        lambda module: sum(p.numel() for n, p in module.named_parameters() if "emb" not in n),
        "every_parameter",
    ),
    "children only": (
        lambda module: sum(p.numel() for c in module.children() for p in c.parameters()),
        "every_parameter",
    ),
    "all so far": (Fresh(all_so_far), "every_parameter"),
    "kept for each module": (functools.cache(count_by_loop), "independent_results"),
    "kept by the module's text": (Fresh(kept_by_text), "independent_results"),
    "switches to eval": (lambda module: count_by_loop(module.eval()), "independent_results"),
    "unfreezes": (
        lambda module: count_by_loop(module.requires_grad_(True)),
        "independent_results",
    ),
    "in double precision": (
        lambda module: count_by_loop(module.double()),
        "independent_results",
    ),
    "one too many": (lambda module: count_by_loop(module) + 1, "every_parameter"),
    "in thousands": (lambda module: count_by_loop(module) // 1000, "every_parameter"),
    "at random": (lambda module: random.randrange(100), "every_parameter"),
    "adding up": (Fresh(adding_up), "every_parameter"),
    "by the number of modules": (Fresh(counted_by_identity_of_old_modules), "every_parameter"),
    "recursion without memory": (recursion_without_memory, "shared_once"),
    "tied by name": (tied_by_name, "shared_once"),
    "one shared at most": (Fresh(one_shared_at_most), "shared_once"),
    "buffers of norms": (
        lambda module: count_by_loop(module) + sum(b.numel() for b in module.buffers() if b.dim()),
        "no_buffers",
    ),
    "state dict without repeats": (
        lambda module: sum(
            {t.data_ptr(): t.numel() for t in module.state_dict().values()}.values()
        ),
        "no_buffers",
    ),
    "floats of a large count": (
        lambda module: int(np.sum([p.numel() for p in module.parameters()], dtype=np.float32)),
        "large_modules",
    ),
    "meta left out": (all_but(lambda p: p.is_meta), "large_modules"),
    "gradients zeroed": (zeroing_gradients, "independent_results"),
    "switched to train": (switching_to_train, "independent_results"),
    "raises": (lambda module: module.no_such_thing, "result_form"),
}
MISTAKES = named_by(
    every_parameter=(
        "embeddings_excluded own_parameters_only first_level_only leaf_modules_only "
        "biases_left_out matrices_only shape_summed rows_counted tensors_counted bytes_counted "
        "equal_shapes_merged equal_values_merged first_count_kept"
    ),
    shared_once="shared_counted_twice state_dict_counted tied_subtracted",
    equal_apart="storages_merged",
    no_buffers="buffers_counted",
    large_modules="addresses_merged small_integers",
    independent_results="parameters_frozen",
)
MUTATED = [count_by_loop, count_by_identity, count_by_modules, count_by_recursion]
EQUIVALENT = {
    "count_by_identity:3 flipped: False": "repeats are dropped by the dictionary too",
    "count_by_identity:3 no remove_duplicate=: module.named_parameters(remove_duplicate=False)": (
        "repeats are dropped by the dictionary too"
    ),
    "count_by_identity:4 call dropped: id(parameter)": "a Parameter's hash is its identity",
    "count_by_modules:4 flipped: False": "what was seen is not counted again",
    "count_by_modules:4 no recurse=: part.parameters(recurse=False)": (
        "what was seen is not counted again"
    ),
}
UNNAMED = [
    *("linear layers only", "known layers only", "children only", "no embeddings, by name"),
    "all so far",
]
