"""Exercises: a stub, a check, hints and a solution, complete, in order, nothing given away."""

import pytest

from .conftest import FRAME_LINES, SOURCE, code, code_twins, prose, said

AFTER = FRAME_LINES + 1
E = ' exercise="root"'
STUB = (
    "def my_root(x):\n    # en: take the root\n    # ru: извлеките корень\n"
    "    raise NotImplementedError"
)
SOLUTION = "def my_root(x):\n    # en: a power\n    # ru: степень\n    return x ** 0.5 + 0.0 * x"


def stub(text=STUB, more=E):
    return code("root-stub", text, f' role="stub"{more}')


def check(text="my_root(4)", more=E):
    return code("root-check", text, f' role="check"{more}')


def hint(number, more=E, en="Think.", ru="Думайте."):
    return prose(f"root-hint-{number}", en, ru, f' role="hint"{more}')


def solution(text=SOLUTION, more=E):
    return code("root-solution", text, f' role="solution"{more}')


def exercise(**parts):
    made = {"stub": stub(), "check": check(), "hint": hint(1), "solution": solution(), **parts}
    return [made[role] for role in ("stub", "check", "hint", "solution")]


def test_the_learner_gets_the_stub_in_his_language(repo):
    repo.build(*exercise())
    stub_cell = repo.cell("root-stub", "ru")
    assert stub_cell["metadata"] == {"tags": ["exercise"]}
    assert repo.text("root-stub", "ru") == (
        "def my_root(x):\n    # извлеките корень\n    raise NotImplementedError"
    )
    assert repo.cell("root-check")["metadata"] == {"tags": ["exercise-check"]}


def test_hints_are_numbered_and_folded_away(repo):
    cells = exercise()
    repo.build(*cells[:2], hint(1), hint(2, en="More $x$.", ru="Ещё $x$."), cells[3])
    assert repo.cell("root-hint-2")["cell_type"] == "markdown"
    assert repo.text("root-hint-1", "ru") == (
        "<details><summary>Подсказка 1 из 2</summary>\n\nДумайте.\n\n</details>"
    )
    assert repo.text("root-hint-2") == (
        "<details><summary>Hint 2 of 2</summary>\n\nMore $x$.\n\n</details>"
    )


def test_the_hints_of_another_exercise_do_not_count(repo):
    other = [cell.replace("root", "cube") for cell in exercise()]
    other[3] = other[3].replace("0.5 + 0.0", "3.0 + 0.0")
    repo.build(*exercise(), prose("p"), *other)
    assert "Hint 1 of 1" in repo.text("root-hint-1")
    assert "Hint 1 of 1" in repo.text("cube-hint-1")


def test_the_solution_is_folded_away_as_code_in_prose(repo):
    repo.build(*exercise())
    assert repo.cell("root-solution")["cell_type"] == "markdown"
    assert repo.text("root-solution", "ru") == (
        "<details><summary>Решение</summary>\n\n```python\ndef my_root(x):\n    # степень\n"
        "    return x ** 0.5 + 0.0 * x\n```\n\n</details>"
    )
    assert "<summary>Solution</summary>" in repo.text("root-solution")


def test_a_fence_inside_a_solution_does_not_end_it(repo):
    repo.build(*exercise(solution=solution(SOLUTION + '  # "```"')))
    assert "\n````python\n" in repo.text("root-solution")
    assert "\n````\n" in repo.text("root-solution")


def test_the_solved_edition_runs_the_solution_in_the_stubs_place(repo):
    repo.build(*exercise())
    for language, word in (("en", "a power"), ("ru", "степень")):
        learner, solved = (
            repo.notebook(language, folder)["cells"] for folder in ("notebooks", "build/solved")
        )
        assert [c["id"] for c in learner] == [c["id"] for c in solved]
        different = [c["id"] for c, d in zip(learner, solved, strict=True) if c != d]
        assert different == ["root-stub"]
        assert repo.text("root-stub", language, "build/solved") == (
            f"def my_root(x):\n    # {word}\n    return x ** 0.5 + 0.0 * x"
        )
        assert repo.cell("root-stub", language, "build/solved")["metadata"]["tags"] == ["exercise"]


def test_a_name_that_only_the_solution_defines_is_undefined_for_the_learner(repo):
    solved = solution(SOLUTION + "\n\n\nextra = 1")
    use = code("use", "print(extra)")
    assert 'cell "use": [undefined-name]' in repo.refuse(*exercise(solution=solved), use)


def test_hints_and_solutions_may_be_long(repo):
    long_code = "\n".join(f"    # {'word ' * 10}" for _ in range(50))
    repo.build(
        *exercise(
            hint=hint(1, en="word " * 100 + "end.", ru="слово " * 100 + "конец."),
            solution=solution(f"def my_root(x):\n{long_code}\n    return x ** 0.5 + 0.0 * x"),
        )
    )


def test_an_undefined_name_in_a_solution_is_found(repo):
    err = repo.refuse(*exercise(solution=solution("def my_root(x):\n    return rooot(x, 0.5, 1)")))
    line = AFTER + sum(cell.count("\n") + 1 for cell in exercise()[:3]) + 2
    assert said(SOURCE, line, "root-solution", "undefined-name", "rooot").search(err)


@pytest.mark.parametrize("role", ["stub", "check", "hint", "solution"])
def test_no_part_may_be_missing(repo, role):
    err = repo.refuse(*exercise(**{role: prose("p")}))
    assert f"[exercise-parts]\n    the exercise 'root' has 0 cells of role='{role}'" in err
    assert f"-> give it {'at least one' if role == 'hint' else 'exactly one'}\n" in err
    assert f'{SOURCE}:{AFTER}: cell "root-' in err or role == "stub"


@pytest.mark.parametrize("role", ["stub", "check", "solution"])
def test_no_part_but_hints_may_come_twice(repo, role):
    one = exercise()[["stub", "check", "hint", "solution"].index(role)]
    twice = one + "\n" + one.replace(f"root-{role}", f"root-{role}-b")
    err = repo.refuse(*exercise(**{role: twice}))
    assert f"the exercise 'root' has 2 cells of role='{role}'" in err


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2), (3, 0, 1, 2)])
def test_the_parts_come_in_their_order(repo, order):
    cells = exercise()
    err = repo.refuse(*(cells[place] for place in order))
    first = ["root-stub", "root-check", "root-hint-1", "root-solution"][order[0]]
    assert said(SOURCE, AFTER, first, "exercise-order", "the parts of 'root' come as").search(err)
    assert "order them as stub, check, hint, solution" in err


UNLINKED = {
    "stub": stub(more=""),
    "check": check(more=""),
    "hint": hint(1, more=""),
    "solution": solution(more=""),
    "plain": code("plain", "x = 1", E),
    "folded": code("plain", "x = 1", f' role="folded"{E}'),
}


@pytest.mark.parametrize("cell", UNLINKED.values(), ids=UNLINKED.keys())
def test_exercise_roles_and_exercise_names_come_together(repo, cell):
    assert "[exercise-link]" in repo.refuse(cell)


@pytest.mark.parametrize("role", ["stub", "solution"])
def test_stubs_and_solutions_are_shared(repo, role):
    text = STUB if role == "stub" else SOLUTION
    twins = code_twins(f"root-{role}", text, text).replace(' key="', f' role="{role}"{E} key="')
    err = repo.refuse(*exercise(**{role: twins}))
    assert f"[exercise-language]\n    a {role} is shared by all languages" in err


def test_a_check_may_come_as_code_twins(repo):
    twins = code_twins("root-check", 'my_root("one")', 'my_root("один")')
    repo.build(*exercise(check=twins.replace(' key="', f' role="check"{E} key="')))
    assert repo.text("root-check", "ru") == 'my_root("один")'
    assert repo.cell("root-check", "ru")["metadata"] == {"tags": ["exercise-check"]}


def test_a_stub_leaves_something_to_do(repo):
    err = repo.refuse(*exercise(stub=stub("def my_root(x):\n    return 2")))
    assert said(SOURCE, AFTER, "root-stub", "exercise-stub", "left to the learner").search(err)


def test_a_stub_without_functions_leaves_none_to_fill_in(repo):
    solved = solution('my_root = {"A": "the scale is forgotten"}')
    check_cell = check("print(my_root)")
    repo.build(*exercise(stub=stub('my_root = {"A": None}'), check=check_cell, solution=solved))
    err = repo.refuse(*exercise(stub=stub('my_root = {"A": 1}'), check=check_cell, solution=solved))
    assert "[exercise-stub]" in err


def test_a_solution_solves(repo):
    text = "def my_root(x):\n    raise NotImplementedError('later, perhaps')"
    err = repo.refuse(*exercise(solution=solution(text)))
    assert "[exercise-solution]\n    the solution still raises NotImplementedError" in err


def test_a_solution_defines_what_the_stub_defines(repo):
    err = repo.refuse(*exercise(solution=solution("def root(x):\n    return x ** 0.5 + 0 * x")))
    assert "[exercise-names]\n    the solution does not define my_root" in err


def test_stub_and_solution_may_define_the_same_name_and_the_library_may_not(repo):
    repo.build(*exercise())
    repo.write("course_lib/a.py", "def my_root(x):\n    return x\n")
    err = repo.refuse(*exercise(), code("e", "from course_lib.a import my_root"))
    assert 'cell "root-stub": [two-definitions]' in err
    assert 'cell "root-solution": [two-definitions]' in err


# Nothing is given away


LEAKS = {
    "the whole solution": code("x", SOLUTION.replace("my_root(x)", "my_root(x)")),
    "its body under another name": code("x", "def other(x):\n    return x ** 0.5 + 0.0 * x"),
    "its body in prose": prose("x", *2 * ["```\n    return x ** 0.5 + 0.0 * x\n```"]),
    "its body with other remarks": code(
        "x", "def other(x):\n\n    # why\n    return x ** 0.5 + 0.0 * x"
    ),
}


@pytest.mark.parametrize("cell", LEAKS.values(), ids=LEAKS.keys())
@pytest.mark.parametrize("first", [True, False])
def test_a_solution_that_stands_elsewhere_is_refused(repo, cell, first):
    cells = [cell, *exercise()] if first else [*exercise(), cell]
    err = repo.refuse(*cells)
    assert 'cell "root-solution": [solution-leak]\n    the solution can be read in cell "x"' in err


VALUE = "x ** 0.5 + 0.0 * x + 0.0 * x"
VALUE_LEAKS = {
    "in the middle of a sentence": prose("x", *2 * ["Try `x**0.5 + 0.0*x + 0.0*x` once."]),
    "on two lines": code("x", "y = lambda x: (x ** 0.5\n     + 0.0 * x + 0.0 * x)"),
    "in a hint": hint(1, en=f"Is it `{VALUE}`?", ru=f"Может быть, `{VALUE}`?").replace(
        "root-hint-1", "x"
    ),
    "in a question": "\n".join(
        [
            code("m", "def ask(progress, name, question, choices):\n    pass\n\n\nprogress = 0"),
            *(
                f'# %% {stamp} role="quiz"\nask(progress, "q", "{word}?", '
                '{"a": (True, "It is x ** 0.5 + "\n"0.0 * x + 0.0 * x, of course."), '
                '"b": (False, "No."), "c": (False, "No.")})\n'
                for word, stamp in (
                    ("Why", 'lang="en" key="x"'),
                    ("Почему", 'lang="ru" key="x" en="00000000"'),
                )
            ),
        ]
    ),
}


@pytest.mark.parametrize("cell", VALUE_LEAKS.values(), ids=VALUE_LEAKS.keys())
def test_a_returned_value_that_stands_elsewhere_is_refused(repo, cell):
    solved = solution(f"def my_root(x):\n    return {VALUE}")
    err = repo.refuse(stub(), check(), hint(2), *([cell] if "hint" in cell else []), solved, (
        "" if "hint" in cell else cell))  # fmt: skip
    assert f"the solution can be read in cell \"x\": '{VALUE}'" in err
    assert err.count("[solution-leak]") > 0


def test_the_solution_stands_in_its_own_cell_only(repo):
    repo.build(*exercise())
    assert str(repo.notebook()).count("x ** 0.5 + 0.0 * x") == 1
    shown = repo.text("root-solution")
    assert (shown.startswith("<details>"), shown.endswith("</details>")) == (True, True)
    assert (shown.count("<details>"), shown.count("</details>")) == (1, 1)


def test_an_embedded_definition_with_the_solutions_body_is_refused(repo):
    repo.write("course_lib/a.py", "def root(x):\n    return x ** 0.5 + 0.0 * x\n")
    err = repo.refuse(*exercise(), code("e", "from course_lib.a import root"))
    assert 'the solution can be read in cell "e"' in err


def test_remarks_and_blank_lines_between_do_not_hide_a_leak(repo):
    body = "    half = 0.5\n{}    # and so\n    return x**half\n"
    other = code("x", "def other(x):\n" + body.format("\n    # aside\n\n"))
    solved = solution("def my_root(x):\n" + body.format(""))
    assert "[solution-leak]" in repo.refuse(*exercise(solution=solved), other)


def test_what_the_stub_gives_is_no_secret(repo):
    given = "def given(x):\n    return [x, x + 1, x + 2, x + 3]\n\n\n"
    repo.build(
        code("x", "def again(x):\n    return [x, x + 1, x + 2, x + 3]"), prose("p"),
        *exercise(stub=stub(given + STUB), solution=solution(given + SOLUTION)),
    )  # fmt: skip


def test_a_trivial_line_gives_nothing_away(repo):
    repo.build(code("x", "def same(x):\n    return x"), prose("p"), *exercise(
        solution=solution(SOLUTION + "\n\n\ndef same_again(x):\n    return x")))  # fmt: skip


@pytest.mark.parametrize("length", [23, 24])
def test_a_line_of_twenty_four_characters_tells_something(repo, length):
    line = "return x + " + "1" * (length - 11)
    other = code("x", f"def other(x):\n    {line}")
    cells = [*exercise(solution=solution(f"def my_root(x):\n    {line}")), other]
    if length == 23:
        repo.build(*cells)
    else:
        assert "[solution-leak]" in repo.refuse(*cells)


def test_a_docstring_does_not_hide_a_leak(repo):
    documented = 'def my_root(x):\n    """Say."""\n    return x ** 0.5 + 0.0 * x'
    err = repo.refuse(*exercise(solution=solution(documented)), prose("p"), LEAKS[
        "its body under another name"])  # fmt: skip
    assert "[solution-leak]" in err
