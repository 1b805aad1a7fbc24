# SPDX-License-Identifier: Apache-2.0
"""Instances whose clocks are wrong: Postgres' clock is that of all."""
import pytest

from tests.faults.load import Load
from tests.support.skew import skewed
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

HOUR_S = 3600


@pytest.fixture(params=[HOUR_S, -HOUR_S], ids=["an hour ahead", "an hour behind"])
def wrong(parts, request, tmp_path):
    instance = parts.instance(start=False)
    instance.environment.update(skewed(tmp_path, request.param))
    instance.start()
    yield instance
    assert instance.stop() == 0


def test_a_load_on_a_clock_that_is_wrong(parts, wrong):
    with Load(parts, urls=[wrong.url, parts.urls[0]]) as load:
        load.wait_acked(100)
        load.finish()
        assert load.failed() == []


def test_tokens_end_when_postgres_says_so(parts, wrong):
    workspace = Workspace([parts.urls[0]], parts.operator_token)
    [ann] = workspace.users(1)

    def client(seconds):
        made = workspace.admin.ok("admin.tokens.create", user_id=ann.id, expires_in=seconds)
        return parts.client(made["token"], wrong.url)

    long, short = client(600), client(1)
    assert long.ok("auth.test")["user_id"] == ann.id
    wait_until(lambda: short.call("auth.test").get("error") == "token_expired", what="the end of a token")
    assert long.ok("auth.test")["user_id"] == ann.id
