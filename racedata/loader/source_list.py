"""The list of sources, the most trusted first. A refresh asks them, and their parts count.

RACEDATA_SOURCES is the list if it is set. Otherwise, it is the default until commands change it.
The list has addresses: a source that was never read has no name.
"""

import os
from collections.abc import Sequence

from racedata.loader.allowed import check_licence
from racedata.loader.errors import LoadError
from racedata.loader.same_bytes import SAMPLE_NAME
from racedata.loader.sources import DEFAULT_LIST, addresses_in, each_once, source_at
from racedata.loader.store import OF_NO_SOURCE, Store
from racedata.settings import LoaderSettings


def configured() -> list[str]:
    """The sources in RACEDATA_SOURCES."""
    return each_once([addresses_in(LoaderSettings.read(os.environ).sources)])


def check_configured(addresses: Sequence[str], only: bool = False) -> None:
    """Raises LoadError if RACEDATA_SOURCES is set, and lacks one of these sources. If these are to
    be the `only` ones, it must have no others.
    """
    own, named = {*configured()}, {*addresses}
    if own and not (named == own if only else named <= own):
        raise elsewhere(" and ".join(addresses))


def elsewhere(what: str) -> LoadError:
    return LoadError(f"{what}: RACEDATA_SOURCES has the list of sources; change it there")


def list_of(store: Store) -> list[str]:
    """The list of sources, by their addresses. If RACEDATA_SOURCES has a whole database, which is
    copied as it is, that is not one of its sources.
    """
    own = [address for address in configured() if not source_at(address).is_whole]
    return own or list(store.recalled(OF_NO_SOURCE).get("list") or DEFAULT_LIST)


def remember_list(store: Store, addresses: Sequence[str]) -> None:
    """Remembers the list. If it is empty, it is the default one."""
    store.remember(OF_NO_SOURCE, {"list": list(addresses)})


def apply_list(store: Store) -> None:
    """Gives the sources in the list their places: only their parts count. Remembers the list for
    commands that do not see RACEDATA_SOURCES.
    """
    addresses = list_of(store)
    remember_list(store, addresses)
    store.order(counting(store, addresses))


def counting(store: Store, addresses: Sequence[str]) -> list[str]:
    """The names of the stored sources that count with a list, the most trusted first.

    Until each dump in the list was read, the dumps that counted before still do.
    """
    known = {source.name: source for source in store.known_sources()}
    names = [name for name in names_in(store, addresses).values() if name in known]
    if unread(store, addresses) or not dumps_in(addresses):
        names += [source.name for source in store.sources() if source.is_loaded]
    # what counts only until another source has it comes last
    return sorted(dict.fromkeys(names), key=lambda name: known[name].is_provisional)


def unread(store: Store, addresses: Sequence[str]) -> list[str]:
    """The dumps in a list, if one of them was never read whole."""
    read = {source.address for source in store.known_sources() if source.is_loaded}
    dumps = dumps_in(addresses)
    return [] if {*dumps} <= read else dumps


def names_in(store: Store, addresses: Sequence[str]) -> dict[str, str]:
    """The names of sources in the store, by their addresses in the list."""
    return {address: store.name_of(source_at(address).name, address) for address in addresses}


def after_load(addresses: Sequence[str], loaded: Sequence[str]) -> list[str]:
    """The list after a load: what was loaded replaces its dumps. A load of exactly these leaves the
    list as it is.

    So does the sample, which only serves until the dumps of the list are read.
    """
    if [*loaded] in ([SAMPLE_NAME], dumps_in(addresses)):
        return [*addresses]
    return in_ranks([*(each for each in addresses if not source_at(each).is_dump), *loaded])


def after_refresh(addresses: Sequence[str], asked: Sequence[str]) -> list[str]:
    """The list after a refresh. A new API joins ahead of the others, a new dump behind them."""
    new = [address for address in asked if address not in addresses]
    if new:  # only then, because a dump must be opened for its name
        known = {source_at(address).name for address in addresses}
        new = [address for address in new if source_at(address).name not in known]
    apis = [address for address in new if source_at(address).is_api]
    return in_ranks([*apis, *addresses, *new]) if new else [*addresses]


def in_ranks(addresses: Sequence[str]) -> list[str]:
    """APIs first, then dumps, and last what only counts until another source has it."""
    sources = {address: source_at(address) for address in addresses}
    return sorted(
        sources, key=lambda each: (sources[each].is_provisional, not sources[each].is_api)
    )


def check_licences(addresses: Sequence[str], only_open: bool) -> None:
    """Raises LoadError if one of these sources is known not to be allowed, before it is asked."""
    for address in addresses:
        if licence := source_at(address).licence:
            check_licence(address, licence, only_open)


def dumps_in(addresses: Sequence[str]) -> list[str]:
    return [address for address in addresses if source_at(address).is_dump]
