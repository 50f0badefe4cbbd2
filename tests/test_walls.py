"""The walls of the package: what each module may import, between the halves and inside them."""

import ast
import re
import sys
from functools import cache
from graphlib import TopologicalSorter

import pytest
from support import PACKAGE

from racedata.cli import COMMANDS

MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}
SHARED = {"racedata"} | {
    f"racedata.{name}"
    for name in (
        "colours",
        "database",
        "formats",
        "hints",
        "licences",
        "locks",
        "model",
        "settings",
        "values",
    )
}
COMMAND = {"racedata.cli", "racedata.follower", "racedata.__main__"}
OFFLINE = {name for name in MODULES if name.startswith("racedata.loader")}
ONLINE = {name for name in MODULES if name.startswith("racedata.service")}
# The data without HTTP: in Python, and for assistants.
DIRECT = {f"racedata.{name}" for name in ("assistants", "direct", "mcp_server", "statements")}


def text_of(module):
    return MODULES[module].read_text(encoding="utf-8")


@cache
def imports(module, inside_functions=True):
    """What a module imports: modules of this package by full name, others by the name of their
    package.
    """
    tree = ast.parse(text_of(module))
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
    assert {*MODULES} - OFFLINE - ONLINE - DIRECT == SHARED | COMMAND


@pytest.mark.parametrize(
    ("half", "other"),
    [
        (OFFLINE, ONLINE | DIRECT),
        (ONLINE, OFFLINE | DIRECT),
        (SHARED - {"racedata"}, OFFLINE | ONLINE | DIRECT),
        (DIRECT, OFFLINE),
    ],
)
def test_neither_half_imports_the_other(half, other):
    assert half and other
    assert {
        module: imports(module) & (other | COMMAND)
        for module in half
        if imports(module) & (other | COMMAND)
    } == {}


def test_the_package_imports_only_open_database_and_that_only_when_it_is_used():
    assert imports("racedata", inside_functions=False) == {"typing"}
    assert imports("racedata") == {"typing", "racedata.direct"}


def imports_through_others(module):
    """What is imported with a module: also what the modules that it imports need."""
    found, new = set(), {module}
    while new:
        found |= new
        new = {name for module in new & {*MODULES} for name in imports(module)} - found
    return found


def test_open_database_imports_nothing_of_http_not_even_through_other_modules():
    found = imports_through_others("racedata.direct")
    assert "racedata.service.endpoints" in found
    assert found - {*MODULES} - sys.stdlib_module_names == {"orjson", "pandas"}


def test_the_packages_of_assistants_are_imported_only_when_their_server_starts():
    assert imports("racedata.mcp_server", inside_functions=False) <= {
        *MODULES,
        *sys.stdlib_module_names,
    }


# What only Linux has; the command uses it only for the service.
ONLY_LINUX = {"fcntl", "resource", "gunicorn", "pwd", "grp", "termios"}
OF_THE_SERVICE = {"server", "worker", "ratelimit.local_store"}


def test_only_the_service_imports_what_only_linux_has():
    found = {name for name in MODULES if imports(name, inside_functions=False) & ONLY_LINUX}
    assert found == {f"racedata.service.{name}" for name in OF_THE_SERVICE}


def test_the_command_imports_a_half_only_inside_a_function():
    known = sys.stdlib_module_names | SHARED | COMMAND
    others = {module: imports(module, inside_functions=False) - known for module in COMMAND}
    assert {module: names for module, names in others.items() if names} == {}


def test_only_the_command_imports_a_module_with_which_it_begins():
    modules = {place.partition(":")[0] for place, _ in COMMANDS.values()}
    begun = (modules | imports("racedata.cli")) & (OFFLINE | ONLINE | DIRECT)
    assert {f"racedata.loader.{name}_command" for name in ("load", "refresh")} < begun
    assert {
        (module, name) for module in {*MODULES} - COMMAND for name in imports(module) & begun
    } == set()


def test_modules_do_not_import_each_other_in_a_circle():
    graph = {module: imports(module) & {*MODULES} for module in MODULES}
    graph["racedata"] = set()  # it imports a module only when that is used
    TopologicalSorter(graph).prepare()


REGISTRY = "racedata.loader.sources"
SOURCES = {name for name in OFFLINE if name.startswith("racedata.loader.sources.")}


def test_the_loader_knows_the_registry_of_sources_and_none_of_them():
    assert SOURCES
    assert {
        (module, name)
        for module in OFFLINE - SOURCES - {REGISTRY}
        for name in imports(module) & SOURCES
    } == set()


def test_no_module_of_the_loader_outside_sources_names_a_source():
    names = re.compile("f1db|jolpica|openf1|tracinginsights|ergast", re.IGNORECASE)
    assert [name for name in OFFLINE - SOURCES - {REGISTRY} if names.search(text_of(name))] == []


# The modules that import a package.
IMPORTED = {
    "gunicorn": "service.server service.worker",
    "falcon": "service.answers service.app service.caching service.download service.health "
    "service.middleware service.pages.resources service.ratelimit.middleware",
    "orjson": "assistants direct loader.sources.api_client loader.store "
    "service.app service.health service.openapi service.serializers",
    "jinja2": "service.pages.rendering",
    "markupsafe": "service.pages.rendering",
    "redis": "service.ratelimit.redis_store",
    "icalendar": "service.calendars",
    "urllib3": "loader.exchange",
    "pandas": "direct",
    **dict.fromkeys(("anyio", "mcp", "pydantic", "uvicorn"), "mcp_server"),
}


def test_a_package_is_imported_only_where_it_belongs():
    usual = {*MODULES, *sys.stdlib_module_names, "_typeshed"}  # the last is only for types
    found = {}
    for module in MODULES:
        for package in imports(module) - usual:
            found.setdefault(package, set()).add(module)
    assert found == {
        package: {f"racedata.{name}" for name in names.split()}
        for package, names in IMPORTED.items()
    }


def test_a_calendar_is_written_only_for_endpoints():
    of_answers = imports_through_others("racedata.service.answers")
    assert {"racedata.service.caching", "icalendar"} <= of_answers
    for name in ("download", "pages.resources", "caching", "endpoints"):
        assert "icalendar" not in imports_through_others(f"racedata.service.{name}")


def test_sql_is_only_in_queries_and_where_the_file_is_read():
    sql = re.compile(r"\bSELECT\s.+?\sFROM\s", re.DOTALL)
    assert {module for module in ONLINE | DIRECT if sql.search(text_of(module))} == {
        "racedata.service.queries",
        "racedata.service.pages.page_queries",
        "racedata.service.pages.career_queries",
        "racedata.service.assistant_queries",
        "racedata.service.catalogue",  # all ids of an address, once
        "racedata.service.snapshot",  # the facts about the file
        "racedata.statements",  # the views that statements of users may read
    }


def names_from(module, modules):
    """What modules import from a module, by name."""
    return {
        alias.name
        for importer in modules
        for node in ast.walk(ast.parse(text_of(importer)))
        if isinstance(node, ast.ImportFrom) and node.module == module
        for alias in node.names
    }


def test_the_head_of_formats_names_the_functions_that_only_the_loader_uses():
    module = "racedata.formats"
    of_others = names_from(module, ONLINE | SHARED | COMMAND | DIRECT)
    tree = ast.parse(text_of(module))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    head = ast.get_docstring(tree)
    assert {*re.findall(r"`(\w+)`", head)} == functions & names_from(module, OFFLINE) - of_others


def test_only_three_modules_build_a_database():
    of_build = {module for module in OFFLINE if "racedata.loader.build" in imports(module)}
    # What a load or refresh builds, what the service can begin with, and what a check compares.
    names = ("rebuild", "provide", "check")
    assert of_build == {f"racedata.loader.{name}" for name in names}


def test_html_is_only_in_templates():
    tag = "(?<!P)</?[a-z]+[ >]"  # and no named group of a regular expression
    assert {module for module in ONLINE if re.search(tag, text_of(module))} == set()


WEB = {"falcon", "gunicorn", "http", "socket", "urllib"}
FILES = {"io", "os", "pathlib", "shutil", "tempfile", "racedata.database"}
SQL = {"sqlite3"}
CLOCK = {"time", "datetime", "racedata.loader.same_bytes"}
COMPARING = {name for name in OFFLINE if name.startswith("racedata.loader.compare")}
READING = {name for name in OFFLINE if name.startswith("racedata.loader.files.")}
# What decides what counts, and what changes a store or a database.
DECIDING = {f"racedata.loader.{name}" for name in ("choose", "fill", "lists")}
CHANGING = {
    f"racedata.loader.{name}"
    for name in ("build", "follow", "in_step", "load", "provide", "rebuild", "refresh", "update")
}
PAGES = {name for name in ONLINE if name.startswith("racedata.service.pages.")}

# What a module may not import, because its job needs none of it.
MAY_NOT_IMPORT = {
    "racedata.formats": WEB | FILES | SQL,
    "racedata.model": WEB | FILES - {"racedata.database"},  # it reads the columns in schema.sql
    "racedata.values": WEB | FILES | SQL,
    "racedata.service.addresses": WEB | FILES | SQL,  # it gets texts
    "racedata.service.serializers": WEB | FILES | SQL,  # it gets rows
    **dict.fromkeys(
        (
            "racedata.service.queries",
            "racedata.service.assistant_queries",
            "racedata.service.catalogue",
            "racedata.service.selection",
        ),
        WEB | FILES,  # they get a Snapshot, or what was made from one
    ),
    "racedata.service.content": WEB | FILES | SQL,  # it gets rows and the catalogue
    "racedata.service.endpoints": WEB | FILES | SQL,
    **dict.fromkeys(sorted(PAGES), WEB | FILES),  # they get an Ask
    "racedata.service.pages.ask": WEB | FILES | SQL,  # it gets endpoints
    "racedata.service.pages.rendering": WEB | FILES | SQL,  # it gets facts
    "racedata.service.pages.resources": FILES | SQL,
    # It gets bytes.
    "racedata.service.caching": ONLINE
    - {"racedata.service.environment", "racedata.service.snapshot"},
    "racedata.service.snapshot": WEB,
    "racedata.service.reload": WEB | SQL,  # it gets a Snapshot
    "racedata.service.refresh_times": WEB | SQL,  # database.py reads the store
    "racedata.service.site": SQL | FILES - {"os", "racedata.database"},  # it asks the application
    "racedata.service.site_folder": WEB | SQL | {"racedata.database"},  # it gets bytes
    "racedata.service.worker": ONLINE - {"racedata.service.environment"},  # it gets the application
    "racedata.service.healthcheck": {"falcon", "gunicorn", "orjson"},  # it needs only Python
    "racedata.service.ratelimit.bucket": WEB | FILES | SQL | {"time"},  # it gets the time
    # The rest of the loader requests by exchange.py.
    **dict.fromkeys(sorted(OFFLINE - {"racedata.loader.exchange"}), WEB),
    "racedata.loader.http": WEB - {"urllib"},  # it reads addresses
    **dict.fromkeys(sorted(SOURCES), WEB | DECIDING | CHANGING),  # they say what they have
    **dict.fromkeys(sorted(COMPARING), WEB | FILES | CHANGING),  # they get a finished database
    **dict.fromkeys(sorted(READING), WEB | SOURCES | {REGISTRY, "racedata.loader.store"}),
    "racedata.loader.store": WEB | SOURCES | {REGISTRY} | DECIDING | CHANGING,
    "racedata.loader.update": WEB | FILES | SQL | SOURCES | {REGISTRY, "racedata.loader.build"},
    "racedata.loader.lists": WEB | FILES | SQL | {"time"},
    "racedata.loader.choose": WEB | FILES | SQL | {"time"},
    "racedata.loader.fill": WEB | FILES | SQL | CLOCK | SOURCES | {REGISTRY} | COMPARING,
    "racedata.loader.matching": WEB | FILES | SQL | {"time"},  # it gets races
    "racedata.loader.schedule": WEB | FILES | SQL | {"time"},  # it gets the time
    "racedata.loader.follow": WEB | SQL,  # its sources ask, existing.py opens the database
}


def test_a_module_imports_only_what_its_job_needs():
    refused = {module: imports(module) & names for module, names in MAY_NOT_IMPORT.items()}
    assert {module: names for module, names in refused.items() if names} == {}


def test_what_counts_is_chosen_without_sql():
    assert not re.search("SELECT|INSERT|UPDATE|DELETE", text_of("racedata.loader.choose"))
