"""Rules of style that ruff does not check."""

import ast
import re
from functools import cache

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


@cache
def named_in_tests():
    """The modules with which test files begin, without their packages: `racedata.a.b, c: …`."""
    heads = [ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) for file in TEST_FILES]
    named = [head.partition(": ")[0] for head in heads if head.startswith("racedata.")]
    return {word.rpartition(".")[2] for head in named for word in re.findall(r"[\w.]+", head)}


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_each_module_has_a_test_file_of_its_name_or_is_named_in_the_first_lines_of_one(file):
    names = {path.stem.removeprefix("test_").removeprefix("ratelimit_") for path in TEST_FILES}
    assert file.stem in names | named_in_tests() | {"__main__"}


TEXTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").glob("*.md"),
    *PACKAGE.rglob("*.py"),
    *(ROOT / "scripts").glob("*.py"),
    *(ROOT / "tests").rglob("*.py"),
]


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_test_files_that_a_text_mentions_exist(file):
    mentioned = re.findall(r"\btest_\w+\.py\b", file.read_text(encoding="utf-8"))
    assert {*mentioned} <= {path.name for path in TEST_FILES}


@pytest.mark.parametrize("file", TEST_FILES, ids=lambda file: file.name)
def test_the_modules_that_a_test_file_names_exist(file):
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    named = re.findall(r"racedata\.(?:service|loader)(?:\.[a-z_0-9]+)+", said)
    paths = [PACKAGE.parent.joinpath(*name.split(".")) for name in named]
    assert [path for path in paths if not (path.with_suffix(".py").exists() or path.exists())] == []
