# SPDX-License-Identifier: Apache-2.0
"""Every method, called by everyone: authorization.txt says what each of them is answered."""

import pytest

from tests.support.cast import ARGUMENTS, DESTRUCTIVE, IDS, WITHOUT_CHANNEL, Cast, Scene, arguments_of, filled
from tests.support.workspace import Member, fresh_name
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
    return answered_to(cast, method, kind, name, cast.callers[name])


def answered_to(cast, method, kind, name, caller):
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


@pytest.mark.parametrize("method, kind", LINES, ids=[f"{method}-{kind.strip('-') or 'any'}" for method, kind in LINES])
def test_answers_to_a_jwt(plain_environment, cast, method, kind):
    """A member with a JWT in place of a token is answered the same; auth.revoke revokes that JWT alone."""
    member = cast.member
    caller = Member(member.url, cast.provider.jwt("member", n=fresh_name("jwt")), member.id, member.name, member.recorder)
    assert answered_to(cast, method, kind, "member", caller) == TABLE.rows[method, kind]["member"]
