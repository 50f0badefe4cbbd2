"""racedata.service.ratelimit.stores: the limit store that the settings name."""

import re
import sys

import pytest
from support.answers import settings_of

from racedata.service.ratelimit.stores import store_for
from racedata.settings import SettingError


def test_limits_are_settings_and_either_or_both_may_be_off():
    minute = store_for(settings_of(burst_limit="off", sustained_limit="20/minute"))
    assert [(limit.name, limit.quota, limit.window) for limit in minute.limits] == [
        ("sustained", 20, 60)
    ]
    assert store_for(settings_of(burst_limit="off", sustained_limit="off")) is None
    both = store_for(settings_of(burst_limit="9/hour", sustained_limit="1000/day"))
    assert [(limit.quota, limit.window) for limit in both.limits] == [(9, 3600), (1000, 86400)]


def test_a_redis_url_without_the_redis_package_is_refused_with_the_command_that_installs_it(
    monkeypatch,
):
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "racedata.service.ratelimit.redis_store", raising=False)
    with pytest.raises(
        SettingError, match=re.escape(f"run {sys.executable} -m pip install 'racedata-f1[redis]'")
    ):
        store_for(settings_of(limit_store="redis://127.0.0.1"))


URLS = (
    "host:port host:70000 [::1 :pa#secret@host :secret@host?db=zero host?secret=1 host?protocol=1"
)


@pytest.mark.parametrize("url", URLS.split())
def test_a_redis_url_that_cannot_be_used_is_refused_without_its_password(url):
    said = r"^RACEDATA_LIMIT_STORE: expected a URL such as redis://"
    with pytest.raises(SettingError, match=said) as refused:
        store_for(settings_of(limit_store=f"redis://{url}"))
    assert "sec" not in str(refused.value)
