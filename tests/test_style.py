"""Rules of style that ruff does not check."""

import ast
import re

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


@pytest.mark.parametrize("file", TEST_FILES, ids=lambda file: file.name)
def test_the_modules_that_a_test_file_names_exist(file):
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    named = re.findall(r"racedata\.(?:service|loader)(?:\.[a-z_0-9]+)+", said)
    paths = [PACKAGE.parent.joinpath(*name.split(".")) for name in named]
    assert [path for path in paths if not (path.with_suffix(".py").exists() or path.exists())] == []
