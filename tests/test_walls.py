"""The walls of the package: what each module may import, between the halves and inside them."""

import ast
import re
import sys
from fnmatch import filter as matching
from functools import cache
from graphlib import TopologicalSorter

import pytest
from support import PACKAGE

from racedata.cli import COMMANDS

# By their names in the package; `racedata` is the package itself.
MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}
MODULES["racedata"] = MODULES.pop("__init__")

GROUPS = {
    "SHARED": "colours database formats hints licences locks model settings values",
    "COMMAND": "cli follower __main__",
    # the data without HTTP: in Python, and for assistants
    "DIRECT": "assistants direct mcp_server statements",
    "OFFLINE": "loader loader.*",
    "ONLINE": "service service.*",
    "REGISTRY": "loader.sources",
    "SOURCES": "loader.sources.*",
    "COMPARING": "loader.compare loader.compare.*",
    "READING": "loader.files.*",
    "PAGES": "service.pages.*",
    # what decides what counts, and what changes a store or a database
    "DECIDING": "loader.choose loader.fill loader.lists",
    "CHANGING": "loader.build loader.follow loader.load loader.provide "
    "loader.rebuild loader.refresh loader.update",
    "WEB": "http socket urllib",  # IMPORTERS has the packages
    "FILES": "io os pathlib shutil tempfile database",
    "SQL": "sqlite3",
    "CLOCK": "time datetime loader.same_bytes",
}

# What modules may not import, because their job needs none of it. A minus takes out a name.
REFUSED = """
# the halves
OFFLINE: ONLINE DIRECT COMMAND
ONLINE: OFFLINE DIRECT COMMAND
SHARED: OFFLINE ONLINE DIRECT COMMAND
DIRECT: OFFLINE COMMAND
# texts and values
formats values: WEB FILES SQL
model: WEB FILES -database
# they get texts, rows or objects
service.addresses service.serializers service.content service.endpoints: WEB FILES SQL
# they get a Snapshot, or what was made from one
service.queries service.catalogue service.selection: WEB FILES
PAGES -service.pages.resources: WEB FILES
service.pages.rendering: SQL
service.pages.resources: FILES SQL
# it gets bytes
service.caching: ONLINE -service.environment -service.snapshot
service.snapshot: WEB
service.reload: WEB SQL
service.site: SQL FILES -os -database
service.site_folder: WEB SQL database
# it gets the application
service.worker: ONLINE -service.environment
service.ratelimit.bucket: WEB FILES SQL time
# the rest of the loader requests by exchange.py
OFFLINE -loader.exchange -loader.http: WEB
loader.http: WEB -urllib
# no other module of the loader knows a source
OFFLINE -SOURCES -REGISTRY: SOURCES
SOURCES: DECIDING CHANGING
COMPARING: FILES CHANGING
READING: SOURCES REGISTRY loader.store
loader.store: SOURCES REGISTRY DECIDING CHANGING
loader.update: FILES SQL SOURCES REGISTRY loader.build
loader.lists loader.choose loader.matching loader.schedule: FILES SQL time
loader.fill: FILES SQL CLOCK SOURCES REGISTRY COMPARING
loader.follow: SQL
"""

# All that imports a package, or a module.
IMPORTERS = """
gunicorn: service.server service.worker
falcon: service.answers service.app service.caching service.download service.health
falcon: service.middleware service.pages.resources service.ratelimit.middleware
orjson: assistants direct loader.sources.api_client loader.store
orjson: service.app service.health service.openapi service.serializers
jinja2: service.pages.rendering
redis: service.ratelimit.redis_store
icalendar: service.calendars
urllib3: loader.exchange
pandas: direct
anyio mcp pydantic uvicorn: mcp_server
loader.build: loader.rebuild loader.provide loader.check
"""


def lines_of(table):
    """Each line of a table, as two texts."""
    return [line.split(": ") for line in table.strip().splitlines() if line[0] != "#"]


def named(words):
    """The modules and packages that words name, in their order."""
    found = set()
    for word in words.split():
        name = word.removeprefix("-")
        names = named(GROUPS[name]) if name in GROUPS else {*matching(MODULES, name)} or {name}
        found = found - names if word[0] == "-" else found | names
    return found


def text_of(module):
    return MODULES[module].read_text(encoding="utf-8")


def short(name):
    """A module of this package by its name in it; of others, the package."""
    own = name.removeprefix("racedata.")
    return own if own in MODULES else name.partition(".")[0]


@cache
def imports(module, inside_functions=True):
    """What a module imports."""
    tree = ast.parse(text_of(module))
    found = set()
    for node in ast.walk(tree) if inside_functions else tree.body:
        if isinstance(node, ast.Import):
            found |= {short(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{module}: a relative import"
            # `from package import module` imports the module
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {
                short(name if name.removeprefix("racedata.") in MODULES else node.module)
                for name in names
            }
    return frozenset(found)


def test_every_module_is_in_a_half_except_the_command_and_what_both_share():
    groups = [named(name) for name in ("OFFLINE", "ONLINE", "DIRECT", "SHARED", "COMMAND")]
    assert sorted(name for group in groups for name in group) == sorted({*MODULES} - {"racedata"})


@pytest.mark.parametrize(("modules", "refused"), lines_of(REFUSED))
def test_a_module_imports_only_what_its_job_needs(modules, refused):
    assert named(modules) <= {*MODULES}
    found = {module: imports(module) & named(refused) for module in named(modules)}
    assert {module: names for module, names in found.items() if names} == {}


def test_a_package_is_imported_only_where_it_belongs():
    usual = {*MODULES, *sys.stdlib_module_names, "_typeshed"}  # the last is only for types
    expected = {}
    for packages, modules in lines_of(IMPORTERS):
        for package in packages.split():
            expected.setdefault(package, set()).update(named(modules))
    found = {package for module in MODULES for package in imports(module)} - usual
    assert {
        package: {module for module in MODULES if package in imports(module)}
        for package in found | expected.keys()
    } == expected


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("racedata", {"typing"}),  # it imports open_database only when it is used
        *((name, named("SHARED COMMAND racedata")) for name in sorted(named("COMMAND"))),
        ("mcp_server", {*MODULES}),  # the packages of assistants, when their server starts
    ],
)
def test_a_module_imports_more_only_inside_a_function(module, allowed):
    assert imports(module, inside_functions=False) <= allowed | sys.stdlib_module_names


def test_open_database_imports_nothing_of_http_not_even_through_other_modules():
    found, new = set(), {"direct"}
    while new:
        found |= new
        new = {name for module in new & {*MODULES} for name in imports(module)} - found
    assert imports("racedata") == {"typing", "direct"}
    assert "service.endpoints" in found
    assert found - {*MODULES} - sys.stdlib_module_names == {"orjson", "pandas"}


def test_only_the_command_imports_a_module_with_which_it_begins():
    begun = {short(place.partition(":")[0]) for place, _ in COMMANDS.values()} | imports("cli")
    begun &= named("OFFLINE ONLINE DIRECT")
    assert {"loader.load_command", "loader.refresh_command"} < begun
    found = {module: imports(module) & begun for module in {*MODULES} - named("COMMAND")}
    assert {module: names for module, names in found.items() if names} == {}


def test_modules_do_not_import_each_other_in_a_circle():
    graph = {module: imports(module) & {*MODULES} for module in MODULES}
    graph["racedata"] = set()  # it imports a module only when that is used
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize(
    ("text", "modules", "having"),
    [
        # all ids of an address, once; the facts about the file; where records are from, for
        # assistants; the views for users' statements
        (
            r"(?s)\bSELECT\s.+?\sFROM\s",
            "ONLINE DIRECT",
            "service.queries service.catalogue service.snapshot assistants statements",
        ),
        # what counts is chosen without SQL
        ("SELECT|INSERT|UPDATE|DELETE", "loader.choose", ""),
        # in templates; and no named group of a regular expression
        ("(?<!P)</?[a-z]+[ >]", "ONLINE", ""),
        ("(?i)f1db|jolpica|openf1|tracinginsights|ergast", "OFFLINE -SOURCES -REGISTRY", ""),
    ],
    ids=["SQL", "SQL that chooses", "HTML", "names of sources"],
)
def test_what_a_module_may_not_know_is_not_in_its_text(text, modules, having):
    assert {name for name in named(modules) if re.search(text, text_of(name))} == named(having)
