"""What tests that flood a real service share: how long it takes, with which settings, and what a limit allows.

The environment variable SERVICE_SECONDS makes the floods longer.
"""

import os

SECONDS = float(os.environ.get("SERVICE_SECONDS", "3"))
ADDRESS = "/ergast/f1/2023/18.json"
FOUR_WORKERS = {"WEB_CONCURRENCY": "4", "RACEDATA_TRUSTED_PROXIES": ""}


def assert_limited(client, quota, per_second, lost=0):
    """Asserts that a client that was refused all the time got as many 200s as its limit allows, but for `lost` ones.

    The service decides later than a request is sent, and earlier than its answer comes. So the times between which
    tokens came back are known only within bounds, which are wide on a busy machine.
    """
    most = quota + per_second * (client.ended - client.began)
    least = (
        quota + per_second * (client.refused - client.answered) - 1
    )  # at the last refusal, less than a token is left
    assert least - lost < client.statuses[200] <= most
    assert set(client.statuses) == {200, 429}
    assert client.statuses[429] > 100
