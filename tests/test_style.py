"""Rules of style that ruff does not check. A failure names the files that break one."""

import ast
import re
from functools import cache

from support import PACKAGE, ROOT

MODULES = [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
TEST_FILES = [*(ROOT / "tests").rglob("conftest.py"), *(ROOT / "tests").rglob("test_*.py")]


def tree_of(file):
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def head_of(file):
    return ast.get_docstring(tree_of(file)) or ""


def test_no_function_of_a_test_file_has_types():
    typed = [
        (file.name, node.lineno)
        for file in TEST_FILES
        for node in ast.walk(tree_of(file))
        if (isinstance(node, ast.FunctionDef) and node.returns)
        or (isinstance(node, ast.arg) and node.annotation)
    ]
    assert typed == []


def test_the_first_lines_of_a_file_say_what_belongs_in_it():
    assert [file for file in [*MODULES, *TEST_FILES] if not head_of(file)] == []


def test_each_module_has_a_test_file_of_its_name_or_is_named_in_the_first_lines_of_one():
    # test files begin with their modules: `racedata.a.b, racedata.c: …`
    heads = [head_of(file).partition(": ")[0] for file in TEST_FILES]
    words = {word for head in heads if head.startswith("racedata.") for word in head.split()}
    named = {word.rstrip(",").rpartition(".")[2] for word in words}
    names = {path.stem.removeprefix("test_") for path in TEST_FILES}
    tested = names | named | {"__main__"}
    assert [file for file in MODULES if file.stem not in tested] == []


def test_the_test_files_that_a_text_mentions_exist():
    folders = [ROOT / "docs", PACKAGE, ROOT / "scripts", ROOT / "tests"]
    texts = [file for folder in folders for file in folder.rglob("*.[mp][dy]")]
    names = {path.name for path in TEST_FILES}
    unknown = [
        (file.name, name)
        for file in [*ROOT.glob("*.md"), *texts]
        for name in re.findall(r"\btest_\w+\.py\b", file.read_text(encoding="utf-8"))
        if name not in names
    ]
    assert unknown == []


MODULE = re.compile(r"racedata\.(?:service|loader)(?:\.[a-z_0-9]+)+")


def test_the_modules_that_a_test_file_names_exist():
    unknown = [
        (file.name, name)
        for file in TEST_FILES
        for name in MODULE.findall(head_of(file))
        if not exists(PACKAGE.parent.joinpath(*name.split(".")))
    ]
    assert unknown == []


def exists(module):
    return module.is_dir() or module.with_suffix(".py").exists()
