"""Rules of style that ruff does not check. A failure names the files that break one."""

import ast
import re
from functools import cache

from support import PACKAGE, ROOT

MODULES = [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
TEST_FILES = [*(ROOT / "tests").rglob("conftest.py"), *(ROOT / "tests").rglob("test_*.py")]


@cache
def tree_of(file):
    return ast.parse(file.read_text(encoding="utf-8"))


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


def named_in(file):
    """The modules that the first line of a test file names: `racedata.a.b, c: …`. The others are in
    a package of the first.
    """
    first, *others = re.findall(r"[\w.]*\w", head_of(file).partition(": ")[0])
    packages = [first.rsplit(".", count)[0] for count in range(1, first.count(".") + 1)]
    relative = {f"{package}.{other}" for other in others for package in packages}
    return {first, *others, *relative}


def test_each_module_has_a_test_file_at_its_place_or_is_named_in_the_first_line_of_one():
    tested = {
        ".".join(["racedata", *path.relative_to(ROOT / "tests").parent.parts, name])
        for path in TEST_FILES
        for name in [path.stem.removeprefix("test_")]
    }
    tested |= {name for file in TEST_FILES for name in named_in(file)}
    names = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in MODULES}
    assert names - tested == {"racedata.__main__"}  # two lines, which every test of a command runs


def test_the_test_files_that_a_text_mentions_and_the_modules_that_a_test_file_names_exist():
    folders = [ROOT / "docs", PACKAGE, ROOT / "scripts", ROOT / "tests"]
    texts = [file for folder in folders for file in folder.rglob("*.[mp][dy]")]
    mentioned = [
        name
        for file in [*ROOT.glob("*.md"), *texts]
        for name in re.findall(r"\btest_\w+\.py\b", file.read_text(encoding="utf-8"))
    ]
    assert {*mentioned} <= {path.name for path in TEST_FILES}
    module = re.compile(r"racedata\.(?:service|loader)(?:\.[a-z_0-9]+)+")
    for name in (name for file in TEST_FILES for name in module.findall(head_of(file))):
        path = PACKAGE.parent.joinpath(*name.split("."))
        assert path.is_dir() or path.with_suffix(".py").exists(), name
