"""The wall between the halves of the package: what each module may import."""

import ast
import re
import sys
from functools import cache
from graphlib import TopologicalSorter

import pytest
from support import PACKAGE, ROOT

MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}
SHARED = {"racedata", "racedata.database", "racedata.kinds"}
COMMAND = {"racedata.cli", "racedata.__main__"}
OFFLINE = {name for name in MODULES if name.startswith("racedata.loader")}
ONLINE = {name for name in MODULES if name.startswith("racedata.service")}


@cache
def imports(module, inside_functions=True):
    """What a module imports: modules of this package by their full name, others by that of their
    package.
    """
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree) if inside_functions else tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{module}: a relative import"
            # `from package import module` imports the module, and `from module import name` the
            # module as well.
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in names}
    return frozenset(name if name in MODULES else name.partition(".")[0] for name in found)


def test_every_module_is_in_a_half_except_the_command_and_what_both_share():
    assert {*MODULES} - OFFLINE - ONLINE == SHARED | COMMAND


@pytest.mark.parametrize(
    ("half", "other"), [(OFFLINE, ONLINE), (ONLINE, OFFLINE), (SHARED, OFFLINE | ONLINE)]
)
def test_neither_half_imports_the_other(half, other):
    assert half and other
    assert {
        module: imports(module) & (other | COMMAND)
        for module in half
        if imports(module) & (other | COMMAND)
    } == {}


@pytest.mark.parametrize("module", sorted(OFFLINE | SHARED | COMMAND))
def test_the_loader_and_the_command_need_only_the_standard_library(module):
    # which is only for types
    assert imports(module) - {*MODULES} <= sys.stdlib_module_names | {"_typeshed"}


def test_the_command_imports_a_half_only_inside_a_function():
    assert imports("racedata.cli", inside_functions=False) <= sys.stdlib_module_names | SHARED


def test_modules_do_not_import_each_other_in_a_circle():
    TopologicalSorter({module: imports(module) & {*MODULES} for module in MODULES}).prepare()


LIST = "racedata.loader.sources"
SOURCES = {name for name in OFFLINE if name.startswith("racedata.loader.sources.")}


def test_the_loader_knows_the_list_of_sources_and_none_of_them():
    assert SOURCES
    assert {
        (module, name)
        for module in OFFLINE - SOURCES - {LIST}
        for name in imports(module) & SOURCES
    } == set()


@pytest.mark.parametrize("module", sorted(OFFLINE - SOURCES - {LIST}))
def test_no_module_of_the_loader_outside_sources_names_a_source(module):
    text = MODULES[module].read_text(encoding="utf-8")
    assert re.findall("f1db|jolpica|openf1|tracinginsights|ergast", text, re.IGNORECASE) == []


def test_only_the_server_and_its_worker_import_gunicorn():
    assert {module for module in MODULES if "gunicorn" in imports(module)} == {
        "racedata.service.server",
        "racedata.service.worker",
    }


TEST_FILES = [ROOT / "tests" / "conftest.py", *(ROOT / "tests").rglob("test_*.py")]


@pytest.mark.parametrize("file", TEST_FILES, ids=lambda file: file.name)
def test_no_function_of_a_test_file_has_types(file):
    nodes = [*ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    returns = [each.name for each in nodes if isinstance(each, ast.FunctionDef) and each.returns]
    assert (
        returns + [each.arg for each in nodes if isinstance(each, ast.arg) and each.annotation]
        == []
    )
