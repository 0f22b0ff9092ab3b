"""What holds for every contract and every variant, whichever contract it is."""

import contextlib
import dataclasses
import inspect
import random
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_lib import contracts, text
from course_lib.contracts import ContractViolation
from course_lib.contracts.engine.clause import Contract
from course_lib.mistakes import CATALOGUE

from .trial import candidate, clause_of, entries, failing, stub, trials, verdict, violation_of

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = list(parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8")).complete)
RIGHT, WRONG, MISTAKES = entries("right"), entries("wrong"), entries("mistake")


def label(value):
    return str(value)


def assert_fits_a_screen(message):
    lines = message.split("\n")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 84


@pytest.mark.parametrize(("contract", "name"), RIGHT, ids=label)
def test_right_ones_written_differently_are_accepted(contract, name):
    said = verdict(contract, "right", name)
    assert said.accepted, said.message
    unchecked = said.report.unchecked
    expected = [clause for clause in trials()[contract].CLAUSES if clause not in unchecked]
    assert [clause.name for clause in said.report.clauses if clause.name in expected] == [
        clause for clause in expected if clause in {row.name for row in said.report.clauses}
    ]


@pytest.mark.parametrize("contract", trials())
def test_some_right_one_meets_every_clause(contract):
    met = [
        [clause.name for clause in verdict(contract, "right", name).report.clauses]
        for name in trials()[contract].RIGHT
    ]
    assert trials()[contract].CLAUSES in met


@pytest.mark.parametrize(("contract", "name"), WRONG, ids=label)
def test_wrong_ones_are_refused_by_the_clause_that_names_the_fault(contract, name):
    said = verdict(contract, "wrong", name)
    assert not said.accepted
    assert said.violation.clause == clause_of(contract, "wrong", name)
    assert_fits_a_screen(said.message)


@pytest.mark.parametrize(("contract", "name"), MISTAKES, ids=label)
def test_each_catalogued_mistake_is_refused_and_named_as_itself(contract, name):
    """Named alone, or with those that no probe tells apart from it; and by all of them the same."""
    said = verdict(contract, "mistake", name)
    assert not said.accepted
    assert said.violation.clause == clause_of(contract, "mistake", name)
    assert said.violation.__cause__ is None  # wrong, not crashing
    assert name in said.violation.mistakes
    assert f"{name}: " in " ".join(said.message.split())
    assert len(said.violation.mistakes) <= 3
    for twin in said.violation.mistakes:
        assert set(verdict(contract, "mistake", twin).violation.mistakes) == set(
            said.violation.mistakes
        )
    assert_fits_a_screen(said.message)


@pytest.mark.parametrize(("contract", "name"), MISTAKES, ids=label)
def test_the_message_of_each_mistake_says_the_same_in_every_language(contract, name):
    english, *others = (verdict(contract, "mistake", name, language) for language in LANGUAGES)
    for other in others:
        assert other.violation.mistakes == english.violation.mistakes
        assert other.violation.clause == english.violation.clause
        assert other.message != english.message
        assert_fits_a_screen(other.message)


@pytest.mark.parametrize("contract", trials())
def test_the_catalogue_is_complete_in_every_language(contract):
    trial = trials()[contract]
    names = [mistake.name for mistake in trial.CATALOGUE]
    assert sorted(names) == sorted(trial.MISTAKES)
    assert len(set(names)) == len(names)
    for mistake in trial.CATALOGUE:
        for texts in (mistake.what, mistake.fix):
            assert list(texts)[: len(LANGUAGES)] == LANGUAGES
            assert all(isinstance(words, str) and words.strip() for words in texts.values())
            assert not re.search("[а-яё]", texts["en"])
            assert texts["ru"] == texts["en"] or re.search("[а-яё]", texts["ru"])
            identifiers = [
                set(re.findall(r"\b[a-z]+_[a-z_]+\b", words)) for words in texts.values()
            ]
            assert all(each == identifiers[0] for each in identifiers), mistake.name
        assert re.search("[а-яё]", mistake.what["ru"])
        assert mistake.name.replace("_", "").isalnum()
        assert mistake.source


@pytest.mark.parametrize("contract", trials())
def test_every_clause_is_the_one_that_refuses_something(contract):
    trial = trials()[contract]
    refusing = {clause for _, clause in trial.WRONG.values()} | set(trial.MISTAKES.values())
    assert refusing == set(trial.CLAUSES)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("contract", trials())
def test_the_report_fits_the_page_in_both_languages(contract, language):
    for name in list(trials()[contract].RIGHT)[:1]:
        said = verdict(contract, "right", name, language)
        assert max(map(len, said.message.split("\n"))) <= 88


def table(name):
    """What the variants of each contract say under this name: (contract, variant, what is said)."""
    return [
        (contract, variant, said)
        for contract, trial in trials().items()
        for variant, said in getattr(trial, name, {}).items()
    ]


@pytest.mark.parametrize(("contract", "name", "words"), table("SAYS"), ids=label)
def test_the_diagnosis_states_what_was_measured(contract, name, words):
    kind = "mistake" if name in trials()[contract].MISTAKES else "wrong"
    assert words in verdict(contract, kind, name).violation.diagnosis


@pytest.mark.parametrize("contract", trials())
def test_what_is_like_no_catalogued_mistake_gets_facts_and_no_name(contract):
    for name in trials()[contract].WRONG:
        caught = verdict(contract, "wrong", name).violation
        named = "behaves exactly like" in caught.diagnosis
        assert named == bool(caught.mistakes), name
    for name in getattr(trials()[contract], "UNNAMED", ()):
        caught = verdict(contract, "wrong", name).violation
        assert caught.mistakes == (), name
        assert caught.diagnosis or caught.mismatches, name


FUNCTIONS = [contract for contract, trial in trials().items() if not hasattr(trial, "STUB")]


@pytest.mark.parametrize("contract", FUNCTIONS)
def test_an_error_of_the_candidate_is_chained_and_its_line_is_shown(contract):
    right = candidate(next(iter(trials()[contract].RIGHT.values())))
    caught = violation_of(trials()[contract].CHECK, failing(right))
    assert isinstance(caught.__cause__, ZeroDivisionError)
    assert caught.measured == "ZeroDivisionError"
    assert "after three calls (at `raise ZeroDivisionError(" in caught.diagnosis


@pytest.mark.parametrize("contract", trials())
def test_a_stub_is_not_attempted(contract):
    report = trials()[contract].CHECK(getattr(trials()[contract], "STUB", stub))
    assert not report.attempted
    assert str(report).startswith("○ check_")


@pytest.mark.parametrize("contract", trials())
def test_the_report_carries_the_name_of_its_contract_and_exports_it(contract):
    name = next(iter(trials()[contract].RIGHT))
    assert verdict(contract, "right", name).report.contract == f"check_{contract}_contract"
    assert f"check_{contract}_contract" in contracts.__all__


@pytest.mark.parametrize("contract", trials())
def test_something_that_is_no_function_is_an_error_at_the_door(contract):
    check = getattr(contracts, f"check_{contract}_contract")
    parameters = inspect.signature(check).parameters.values()
    given = [5 for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    options = {each.name: 4 for each in parameters if each.kind is each.KEYWORD_ONLY}
    name = next(iter(parameters)).name
    with pytest.raises(TypeError, match=f"^{name} must be a function.*, got int$"):
        check(*given, **{name: 4 for name in options if name != "fields"})


def declared(contract):
    """The Contract that a check holds a candidate to; None where it is written out."""
    check = getattr(contracts, f"check_{contract}_contract")
    values = vars(sys.modules[check.__module__]).values()
    return next((value for value in values if isinstance(value, Contract)), None)


def a_little_off(right):
    def reference(call):
        found = right(call)
        return found if found is None else found + 1e-3

    return reference


def references_of(contract):
    found = declared(contract)
    return found.terms.references if found else ()


REFERENCES = [
    (contract, number)
    for contract in trials()
    if len(references_of(contract)) > 1
    for number in range(len(references_of(contract)))
]


@pytest.mark.parametrize(("contract", "number"), REFERENCES)
def test_references_that_disagree_stop_the_contract(contract, number):
    found, (right, *_) = declared(contract), trials()[contract].RIGHT.values()
    references = list(found.terms.references)
    references[number] = a_little_off(references[number])
    terms = dataclasses.replace(found.terms, references=tuple(references))
    with pytest.raises(RuntimeError, match=f"the references for {terms.asked} disagree on "):
        dataclasses.replace(found, terms=terms).check(candidate(right))


def state():
    return (
        torch.get_rng_state().tolist(),
        random.getstate(),
        np.random.get_state()[1].tolist(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch.get_num_threads(),
        np.geterr(),
        warnings.filters[:],
    )


def meddling(right):
    """A right function that turns every generator and flag."""

    def meddles(*args, **options):
        torch.manual_seed(1), random.seed(1), np.random.seed(1)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.use_deterministic_algorithms(True)
        np.seterr(all="ignore")
        warnings.simplefilter("ignore")
        return right(*args, **options)

    return meddles


@pytest.mark.parametrize("contract", trials())
def test_generators_and_flags_are_left_alone(contract):
    right = candidate(next(iter(trials()[contract].RIGHT.values())))
    torch.manual_seed(5)
    before = state()
    trials()[contract].CHECK(right)
    assert state() == before
    if contract in FUNCTIONS:
        with contextlib.suppress(ContractViolation):  # without gradients, say
            trials()[contract].CHECK(meddling(right))
        assert state() == before


def test_the_whole_catalogue_is_on_trial_and_large_enough():
    assert {contract: trial.CATALOGUE for contract, trial in trials().items()} == CATALOGUE
    assert {f"check_{contract}_contract" for contract in CATALOGUE} == {
        name for name in contracts.__all__ if name.startswith("check_")
    }
    attention = len(CATALOGUE["attention"]) + len(CATALOGUE["multi_head"])
    assert attention >= 60
    assert sum(map(len, CATALOGUE.values())) - attention >= 80
    assert len(RIGHT) >= 30


def test_the_language_is_put_back():
    assert text.LANGUAGE == "en"
