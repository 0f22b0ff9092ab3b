"""What the contract of weight tying finds, in words."""

from typing import Any

from torch import Tensor

from course_lib.contracts.engine.candidate import Breach
from course_lib.contracts.engine.subject import first_places
from course_lib.report import Mismatch
from course_lib.text import say

# fmt: off
FACTS = {
    "built": "as built | сразу после создания",
    "mode": "after train() or eval() | после train() или eval()",
    "step": "after an optimiser step | после шага оптимизатора",
    "conversion": "after .to(dtype) | после .to(dtype)",
    "copy": "after copy.deepcopy | после copy.deepcopy",
    "loading": "after load_state_dict | после load_state_dict",
    "not_module": "the result is a {came}, not a torch.nn.Module | "
    "результат имеет тип {came}, а нужен torch.nn.Module",
    "not_parameter": "{name}.weight is a {came}, not an nn.Parameter | "
    "{name}.weight имеет тип {came}, а нужен nn.Parameter",
    "not_float": "{name}.weight holds {came}, not floating-point numbers | "
    "{name}.weight имеет тип {came}, а нужны числа с плавающей точкой",
    "not_finite":
        "{name}.weight holds a NaN or an infinity | в {name}.weight есть NaN или бесконечность",
    "size": "{name}.weight has shape {came}, the call asks for {wanted} | "
    "{name}.weight имеет форму {came}, а вызов требует {wanted}",
    "two_unequal": "{when} there are two Parameters with different numbers | "
    "{when} параметров два, и числа в них разные",
    "two_equal": "{when} there are two Parameters: equal now, but in two places of memory | "
    "{when} параметров два: сейчас они равны, но лежат в памяти отдельно",
    "two_sharing": "{when} there are two Parameters over one memory, so one matrix is stepped "
    "twice | {when} параметров два, а память одна: одна матрица делает два шага",
    "two_frozen": "{when} there are two Parameters over one memory, and a frozen one never learns "
    "| {when} параметров два, а память одна; замороженный не обучается",
    "listed": "{when} parameters() lists the shared Parameter {came} times | "
    "{when} общий параметр встречается в parameters() столько раз: {came}",
    "replaced": "{when} another Parameter stands there than before | "
    "{when} на его месте стоит другой параметр",
    "frozen":
        "the shared Parameter does not require a gradient | общий параметр не требует градиента",
    "no_gradient":
        "no gradient reaches the shared Parameter | до общего параметра не доходит градиент",
    "gradient": "the gradient is not the sum of both uses; it is off by {came} | "
    "градиент не равен сумме градиентов двух применений; отличие {came}",
    "moved": "a step moves the shared Parameter otherwise than a lone one; it is off by {came} | "
    "шаг сдвигает общий параметр не так, как одиночный; отличие {came}",
    "not_converted":
        "after .to({wanted}) the weight is {came} | после .to({wanted}) вес имеет тип {came}",
    "copy_shared": "the deep copy holds the Parameter of the original | "
    "в глубокой копии стоит параметр оригинала",
    "copied": "the deep copy has other numbers; they are off by {came} | "
    "в глубокой копии другие числа; отличие {came}",
    "loaded": "the loaded numbers are not those that were saved; they are off by {came} | "
    "загружены не те числа, что были сохранены; отличие {came}",
    "builds_shared": "two builds return models that hold the same Parameter | "
    "два вызова build вернули модели с одним и тем же параметром",
    "builds_moved": "changing one model changes another of the same size; it is off by {came} | "
    "изменение одной модели меняет другую того же размера; отличие {came}",
}
# fmt: on


def breach(
    fact: str, came: Any, wanted: Any, clause: str = "", *shown: Mismatch, **values: Any
) -> Breach:
    """A demand not met: the fact in words, what came, what was wanted."""
    text = say(FACTS[fact], came=came, wanted=wanted, **values)
    return Breach(fact, str(came), str(wanted), mismatches=shown, facts=text, clause=clause)


def compare(name: str, got: Tensor | None, wanted: Tensor, fact: str) -> None:
    """Breach unless two weights, or two gradients, hold the same numbers up to rounding."""
    if got is None:
        raise breach("no_gradient", "None", "a gradient")
    apart = (got.double() - wanted.double()).abs()
    far = apart > 1e-5 * (1 + wanted.double().abs())
    if far.any():
        shown = first_places(name, far, got, wanted)
        raise breach(fact, f"{float(apart.max()):.2g}", "1e-05", "", *shown)
