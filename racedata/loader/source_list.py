"""The list of sources, the most trusted first. A refresh asks them, and their parts count.

The last command that changed the list decides. If RACEDATA_SOURCES has changed since, that decides.
Otherwise, it is the default. The list has addresses: a source that was never read has no name.
"""

import os
from collections.abc import Sequence
from itertools import takewhile

from racedata.loader.allowed import check_licence
from racedata.loader.same_bytes import SAMPLE_NAME
from racedata.loader.sources import DEFAULT_LIST, addresses_in, each_once, source_at, type_at
from racedata.loader.store import OF_NO_SOURCE, Store
from racedata.settings import LoaderSettings


def configured() -> list[str]:
    """The sources in RACEDATA_SOURCES."""
    return each_once([addresses_in(LoaderSettings.read(os.environ).sources)])


def is_changed(store: Store) -> bool:
    """Whether RACEDATA_SOURCES has changed since a command read the dumps in it."""
    own = configured()
    return bool(own) and own != store.recalled(OF_NO_SOURCE).get("configured")


def wanted_list(store: Store) -> list[str]:
    """The list, even if the dumps that RACEDATA_SOURCES adds to it are not read yet."""
    if is_changed(store):
        own = configured()
        # A list without a dump only names the sources to ask. The dumps that were read stay.
        has_history = any(type_at(each).is_dump or type_at(each).is_whole for each in own)
        return own if has_history else after_load(own, dumps_read(store))
    return list_that_counts(store)


def dumps_read(store: Store) -> list[str]:
    """The dumps in the list that counts that were read."""
    read = {source.address for source in store.known_sources() if source.is_loaded}
    return [address for address in dumps_in(list_that_counts(store)) if address in read]


def list_that_counts(store: Store) -> list[str]:
    """The list by which the database is built: a change of RACEDATA_SOURCES counts once the dumps
    in it were read.
    """
    return list(store.recalled(OF_NO_SOURCE).get("list") or DEFAULT_LIST)


def put_source_list(store: Store, addresses: Sequence[str], is_read: bool = True) -> None:
    """Remembers the list that counts, and which stored parts do.

    `is_read` says whether the dumps in RACEDATA_SOURCES were read, or others on purpose.
    """
    store.remember(OF_NO_SOURCE, {"list": list(addresses)})
    if is_read:
        store.remember(OF_NO_SOURCE, {"configured": configured()})
    names = [name for address in addresses for name in names_at(store, address)]
    # what counts only until another source has it comes last
    provisional = {source.name for source in store.known_sources() if source.is_provisional}
    store.order(sorted(dict.fromkeys(names), key=lambda name: name in provisional))


def names_at(store: Store, address: str) -> list[str]:
    """The names of the stored sources with an address."""
    names = [source.name for source in store.known_sources() if source.address == address]
    return names or [source_at(address).name]


def after_load(addresses: Sequence[str], loaded: Sequence[str]) -> list[str]:
    """The list after a load: what was loaded is in the place of its dumps. A load of exactly these
    leaves the list as it is.

    The sample is in no dump's place: it only serves until they are read.
    """
    if [*loaded] == [SAMPLE_NAME]:
        return each_once([addresses, loaded])
    if [*loaded] == dumps_in(addresses):
        return [*addresses]
    ahead = list(takewhile(is_api, addresses))
    kept = [address for address in addresses[len(ahead) :] if not type_at(address).is_dump]
    return [*(each for each in ahead if each not in loaded), *loaded, *kept]


def is_api(address: str) -> bool:
    return type_at(address).is_api


def after_refresh(addresses: Sequence[str], asked: Sequence[str]) -> list[str]:
    """The list after a refresh. A new API joins ahead of the others, any other source behind them;
    what only counts until another source has it is last.
    """
    new = [address for address in asked if address not in addresses]
    if new:  # only then, because a dump must be opened for its name
        known = {source_at(address).name for address in addresses}
        new = [address for address in new if source_at(address).name not in known]
    apis = list(filter(is_api, new))
    joined = [*apis, *addresses, *(address for address in new if address not in apis)]
    return sorted(joined, key=lambda address: type_at(address).is_provisional)


def check_licences(addresses: Sequence[str], only_open: bool) -> None:
    """Raises LoadError if one of these sources is known not to be allowed, before it is asked."""
    for address in addresses:
        if licence := source_at(address).licence:
            check_licence(address, licence, only_open)


def dumps_in(addresses: Sequence[str]) -> list[str]:
    return [address for address in addresses if type_at(address).is_dump]
