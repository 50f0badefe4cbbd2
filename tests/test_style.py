"""Rules of style that ruff does not check."""

import ast

import pytest
from support import PACKAGE, ROOT

MODULES = [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
TEST_FILES = [*(ROOT / "tests").rglob("conftest.py"), *(ROOT / "tests").rglob("test_*.py")]


@pytest.mark.parametrize("file", TEST_FILES, ids=lambda file: file.name)
def test_no_function_of_a_test_file_has_types(file):
    nodes = [*ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    returns = [each.name for each in nodes if isinstance(each, ast.FunctionDef) and each.returns]
    arguments = [each.arg for each in nodes if isinstance(each, ast.arg) and each.annotation]
    assert returns + arguments == []


@pytest.mark.parametrize("file", [*MODULES, *TEST_FILES], ids=lambda file: file.name)
def test_the_first_lines_of_a_file_say_what_belongs_in_it(file):
    assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
