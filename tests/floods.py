"""What tests that flood a real service share: how long it takes, with which settings, and what a limit allows.

The environment variable SERVICE_SECONDS makes the floods longer.
"""

import os

SECONDS = float(os.environ.get("SERVICE_SECONDS", "3"))
ADDRESS = "/ergast/f1/2023/18.json"
FOUR_WORKERS = {"WEB_CONCURRENCY": "4", "RACEDATA_TRUSTED_PROXIES": ""}


def assert_limited(client, quota, per_second):
    """Asserts that the client got as many 200s as its limit allows while it ran, or one less."""
    bound = quota + per_second * (client.ended - client.began)
    assert bound - 2 < client.statuses[200] <= bound
    assert set(client.statuses) == {200, 429}
    assert client.statuses[429] > 100
