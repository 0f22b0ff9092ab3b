"""Tied models, right and wrong, beyond the catalogue."""

import copy

import torch
from torch import nn

from course_lib.contracts import check_tying_contract
from course_lib.contracts.tying.mistakes import TYING_MISTAKES
from course_lib.tiny_lm import TinyLM

from .trial import Fresh, named_by

CHECK, CATALOGUE = check_tying_contract, TYING_MISTAKES
CLAUSES = [
    *("result_form", "sizes", "one_parameter", "gradient", "optimiser_step", "conversion"),
    *("deep_copy", "loading", "independent_builds"),
]


class Pair(nn.Module):
    def __init__(self, vocab_size, d_model, bias=False):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=bias)


class Holder(nn.Module):
    def __init__(self, weight=None):
        super().__init__()
        self.weight = weight


class Reading(nn.Module):
    """A head without a Parameter of its own: it returns the embedding's."""

    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding

    @property
    def weight(self):
        return self.embedding.weight

    def forward(self, x):
        return x @ self.weight.T


def build_from_embedding(vocab_size, d_model):
    model = Pair(vocab_size, d_model)
    model.head.weight = model.embedding.weight
    return model


def build_from_head(vocab_size, d_model):
    model = nn.Module()
    model.head = nn.Linear(d_model, vocab_size)
    model.embedding = nn.Embedding(vocab_size, d_model)
    model.embedding.weight = model.head.weight
    nn.init.normal_(model.head.weight, std=0.02)
    return model


def build_from_one_parameter(vocab_size, d_model):
    weight = nn.Parameter(torch.randn(vocab_size, d_model) * 0.1)
    model = nn.Module()
    model.embedding, model.head = Holder(weight), Holder(weight)
    return model


def build_by_reading(vocab_size, d_model):
    model = nn.Module()
    model.embedding = nn.Embedding(vocab_size, d_model, padding_idx=0)
    model.head = Reading(model.embedding)
    return model


def build_in_float64(vocab_size, d_model):
    return build_from_embedding(vocab_size, d_model).double()


def build_one_module(vocab_size, d_model):
    model = nn.Module()
    model.embedding = nn.Embedding(vocab_size, d_model)
    model.head = model.embedding
    return model


class Course(TinyLM):
    """The course's model under the contract's names."""

    @property
    def embedding(self):
        return self.token_embedding


def build_the_course_s(vocab_size, d_model):
    return Course(vocab_size=vocab_size, d_model=d_model, n_heads=1, d_ff=8)


def after(change):
    def build(vocab_size, d_model):
        model = build_from_embedding(vocab_size, d_model)
        return change(model) or model

    return build


def moved_to_float(model):
    model.head.weight = nn.Parameter(model.head.weight.detach().float())


def half_gradient(model):
    model.embedding.weight.register_hook(lambda grad: 0.5 * grad)


def whole_gradient_to_one(model):
    model.embedding.weight.register_hook(torch.zeros_like)


class Untying(Pair):
    """Tied until it is trained: eval() and train() make a copy."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.head.weight = self.embedding.weight

    def train(self, mode=True):
        if not mode:
            self.head.weight = nn.Parameter(self.embedding.weight.detach().clone())
        return super().train(mode)


class Stepping(Pair):
    """Unties itself as soon as a gradient comes."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.head.weight = self.embedding.weight

    def zero_grad(self, set_to_none=True):
        super().zero_grad(set_to_none)
        if getattr(self, "seen", False):
            self.head.weight = nn.Parameter(self.embedding.weight.detach().clone())
        self.seen = True


class Scaling(Pair):
    """Loads half of what was saved."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.head.weight = self.embedding.weight

    def load_state_dict(self, state_dict, *args, **kwargs):
        halved = {name: 0.5 * value for name, value in state_dict.items()}
        return super().load_state_dict(halved, *args, **kwargs)


class Forgetful(Pair):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.head.weight = self.embedding.weight

    def state_dict(self, *args, **kwargs):
        return {"embedding.weight": self.embedding.weight.detach()}


class Single(Pair):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.head.weight = self.embedding.weight

    def __deepcopy__(self, memo):
        return self


class Stubborn(Pair):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.head.weight = self.embedding.weight

    def to(self, *args, **kwargs):
        return self


def first_sizes_kept():
    kept = []

    def build(vocab_size, d_model):
        kept.append((vocab_size, d_model))
        return build_from_embedding(*kept[0])

    return build


def one_module():
    kept = {}
    return lambda *sizes: kept.setdefault(sizes, build_from_embedding(*sizes))


def one_storage():
    kept = {}

    def build(*sizes):
        model = build_from_embedding(*sizes)
        model.embedding.weight.data = kept.setdefault(sizes, model.embedding.weight.data)
        return model

    return build


def later_rebuilt(vocab_size, d_model):
    model = build_from_embedding(vocab_size, d_model)
    model.head = nn.Linear(d_model, vocab_size, bias=False)
    return model


def tied_by_slice(vocab_size, d_model):
    model = Pair(vocab_size, d_model)
    with torch.no_grad():
        model.head.weight[:] = model.embedding.weight
    return model


def tied_by_state(vocab_size, d_model):
    model = Pair(vocab_size, d_model)
    model.head.load_state_dict(model.embedding.state_dict())
    return model


def tied_by_deepcopy(vocab_size, d_model):
    model = Pair(vocab_size, d_model)
    model.head.weight = copy.deepcopy(model.embedding.weight)
    return model


def wrapped_again(vocab_size, d_model):
    model = Pair(vocab_size, d_model)
    model.head.weight = nn.Parameter(model.embedding.weight)
    return model


def empty_numbers(model):
    with torch.no_grad():
        model.embedding.weight[0, 0] = torch.nan


def whole_numbers(model):
    model.embedding.weight = nn.Parameter(
        torch.zeros(model.head.weight.shape, dtype=torch.long), requires_grad=False
    )
    model.head.weight = model.embedding.weight


RIGHT = {
    "from the embedding": build_from_embedding,
    "from the head": build_from_head,
    "from one Parameter": build_from_one_parameter,
    "by reading": build_by_reading,
    "in float64": build_in_float64,
    "one module for both": build_one_module,
    "the course's own": build_the_course_s,
    "a class": Fresh(lambda: lambda *sizes: after(lambda model: None)(*sizes)),
}
WRONG = {
    "a tuple": (lambda *sizes: (nn.Embedding(*sizes), None), "result_form"),
    "no head": (lambda *sizes: nn.ModuleDict({"embedding": nn.Embedding(*sizes)}), "result_form"),
    "no weight": (after(lambda model: setattr(model, "head", nn.Identity())), "result_form"),
    "not a number": (after(empty_numbers), "result_form"),
    "whole numbers": (after(whole_numbers), "result_form"),
    "raises": (lambda vocab_size, d_model: nn.Embedding(vocab_size, -d_model), "result_form"),
    "first sizes kept": (Fresh(first_sizes_kept), "sizes"),
    "one row more": (lambda vocab, d: build_from_embedding(vocab + 1, d), "sizes"),
    "copied by slice": (tied_by_slice, "one_parameter"),
    "copied by state": (tied_by_state, "one_parameter"),
    "copied deeply": (tied_by_deepcopy, "one_parameter"),
    "looked up from a frozen twin": (
        after(
            lambda model: setattr(
                model, "embedding", nn.Embedding.from_pretrained(model.head.weight.detach())
            )
        ),
        "one_parameter",
    ),
    "tied below 100 tokens": (
        lambda vocab_size, d_model: (build_from_embedding if vocab_size < 100 else tied_by_state)(
            vocab_size, d_model
        ),
        "one_parameter",
    ),
    "head made again": (later_rebuilt, "one_parameter"),
    "head made in float": (after(moved_to_float), "one_parameter"),
    "wrapped again": (wrapped_again, "one_parameter"),
    "untied": (Pair, "one_parameter"),
    "untied by eval": (Untying, "one_parameter"),
    "half the gradient": (after(half_gradient), "gradient"),
    "no gradient": (after(whole_gradient_to_one), "gradient"),
    "untied by a step": (Stepping, "optimiser_step"),
    "half is loaded": (Scaling, "loading"),
    "the head is not saved": (Forgetful, "loading"),
    "no copy": (Single, "deep_copy"),
    "never converted": (Stubborn, "conversion"),
    "one module": (Fresh(one_module), "independent_builds"),
    "one storage": (Fresh(one_storage), "independent_builds"),
}
MISTAKES = named_by(
    sizes="sizes_swapped head_transposed",
    one_parameter=(
        "tied_by_copy only_data_shared tie_replaced head_detached head_cloned head_synced "
        "tie_unlisted"
    ),
    gradient="tie_frozen",
    conversion="untied_by_conversion",
    deep_copy="untied_by_copying",
    loading="untied_by_loading",
    independent_builds="one_for_all_builds",
)
MUTATED = [build_from_head, build_from_one_parameter]
OTHER_NUMBERS = (
    "build_from_head:6 +1: 0.02",
    "build_from_head:6 call dropped: nn.init.normal_(model.head.weight, std=0.02)",
    "build_from_head:6 halved: 0.02",
    "build_from_head:6 method dropped: nn.init.normal_(model.head.weight, std=0.02)",
    "build_from_head:6 no std=: nn.init.normal_(model.head.weight, std=0.02)",
    "build_from_head:6 statement dropped: nn.init.normal_(model.head.weight, std=0.02)",
    "build_from_one_parameter:2 +1: 0.1",
    "build_from_one_parameter:2 -1: 0.1",
    "build_from_one_parameter:2 Div: torch.randn(vocab_size, d_model) * 0.1",
    "build_from_one_parameter:2 halved: 0.1",
    "build_from_one_parameter:2 left only: torch.randn(vocab_size, d_model) * 0.1",
)
EQUIVALENT = {
    **dict.fromkeys(OTHER_NUMBERS, "tied as well, only the first numbers are others"),
    "build_from_head:4 arguments swapped: nn.Embedding(vocab_size, d_model)": (
        "its weight is replaced by the head's in the next line"
    ),
}
SAYS = {
    "tied_by_copy": "equal now, but in two places of memory",
    "only_data_shared": "over one memory, so one matrix is stepped twice",
    "tie_replaced": "two Parameters with different numbers",
    "untied_by_loading": "after load_state_dict there are two Parameters",
    "untied by eval": "after train() or eval() there are two Parameters",
    "half the gradient": "not the sum of both uses",
    "no weight": "head.weight is a NoneType, not an nn.Parameter",
}
UNNAMED = ["half the gradient", "untied by a step", "half is loaded"]
