# SPDX-License-Identifier: Apache-2.0
"""Every method, called by everyone: authorization.txt says what each of them is answered."""

import pytest

from tests.support.cast import ARGUMENTS, DESTRUCTIVE, IDS, WITHOUT_CHANNEL, Cast, Scene, arguments_of, filled
from tools import authorization

TABLE = authorization.table()
LINES = list(TABLE.rows)


@pytest.fixture(scope="module")
def cast(plain_environment):
    return Cast(plain_environment)


def nobodys(arguments, given):
    """The same arguments with ids that do not exist, and the texts that differ between the two."""
    ids = {given[name]: given[name][0] + "0" * 10 for name, value in arguments.items() if value in IDS}
    return {name: ids.get(value, value) for name, value in given.items()}, ids


def outcome(reply):
    return "ok" if reply["ok"] else reply["error"]


def answered(cast, method, kind, name):
    """The outcome for the caller `name`. Objects that the caller may not see get the same bytes as objects that do not exist."""
    caller = cast.callers[name]
    arguments = arguments_of(method, kind)
    given = filled(arguments, Scene(cast, kind, caller))
    reply = caller.call(method, **given)
    if reply["ok"] and method in DESTRUCTIVE:
        cast.forget_channels()
    others, ids = nobodys(arguments, given)
    if ids and (name == "stranger" or outcome(reply).endswith("_not_found")):
        body = caller.call(method, **others).body.decode()
        real = reply.body.decode()
        for mine, nobody in ids.items():
            body, real = body.replace(nobody, "ID"), real.replace(mine, "ID")
        assert real == body, f"{method} tells {name} what is there"
    return outcome(reply)


def test_the_table_is_whole():
    assert authorization.check() == []
    assert ARGUMENTS.keys() | WITHOUT_CHANNEL.keys() | DESTRUCTIVE <= authorization.methods().keys()


@pytest.mark.parametrize("method, kind", LINES, ids=[f"{method}-{kind.strip('-') or 'any'}" for method, kind in LINES])
def test_answers(cast, method, kind):
    said = {name: answered(cast, method, kind, name) for name in TABLE.callers}
    assert said == TABLE.rows[method, kind]
