# SPDX-License-Identifier: Apache-2.0
"""Pushes to phones: recipients, content, time, and the badge."""

import json
import threading
import time
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.support.command import run
from tests.support.environment import Environment, running
from tests.support.metrics import metric
from tests.support.phones import Phone, receiver
from tests.support.push_receivers import Matrix, certificate
from tests.support.wait import wait_until
from tests.support.workspace import Workspace

PAUSE_MS = 300


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    matrix, settings = receiver(tmp_path_factory.mktemp("gateway"))
    yield matrix, settings
    matrix.close()


@pytest.fixture(scope="module")
def environment(tmp_path_factory, recorder, gateway):
    settings = {**gateway[1], "TIDINGS_PUSH_PAUSE_MS": str(PAUSE_MS)}
    yield from running(Environment(tmp_path_factory.mktemp("pushes"), 1, settings=settings, recorder=recorder))


@pytest.fixture
def phone(workspace, gateway):
    """Registers phones of members. The workspace also has a device of another user, so that the instance knows it has devices."""
    other = Phone(workspace, workspace.admin, gateway[0])
    talker = workspace.user()
    talker.post(talker.ok("conversations.open", users=workspace.admin.id)["channel"]["id"], "known")
    other.wait_texts("known")
    return lambda member, **given: Phone(workspace, member, gateway[0], **given)


@pytest.fixture
def pair(workspace, phone):
    """Ann, who posts, and Bob with his phone, in a channel."""
    ann, bob = workspace.users(2)
    return ann, bob, workspace.channel(ann, bob), phone(bob)


def settled(bob, ann, phone, channel):
    """The phone's state once all earlier pushes have been decided."""
    before = len(phone.texts)
    ann.post(channel, f"<@{bob.id}> that is all")
    wait_until(lambda: len(phone.texts) > before and phone.texts[-1].endswith("that is all"))
    return phone.texts[:-1]


def test_a_mention_is_pushed_with_the_badge(pair):
    ann, bob, channel, phone = pair
    ts = ann.post(channel, f"<@{bob.id}> come &amp; see <https://example.com|this>")
    phone.wait_texts(f"@{bob.name} come & see this")
    push = phone.shown[0]
    name = ann.ok("channels.info", channel=channel)["channel"]["name"]
    assert (push.title, push.subtitle, push.channel, push.ts, push.badge) == (f"#{name}", ann.name, channel, ts, 1)
    assert bob.ok("unread.sync")["totals"]["badge"] == 1


@pytest.mark.parametrize("level, own, is_muted, told", [
    (None, None, False, ["mention"]), ("all", None, False, ["plain", "mention"]), ("none", None, False, []),
    ("mentions", "all", False, ["plain", "mention"]), ("none", "mentions", False, ["mention"]), ("all", "none", False, []),
    ("all", None, True, ["mention"]), (None, "all", True, ["mention"]),
])
def test_levels(pair, level, own, is_muted, told):
    ann, bob, channel, phone = pair
    if level:
        bob.ok("notifications.set", level=level)
    if own or is_muted:
        given = {"notify": own, "muted": is_muted}
        bob.ok("channels.setNotifications", channel=channel, **{name: value for name, value in given.items() if value is not None})
    ann.post(channel, "plain")
    if "plain" in told:
        phone.wait_texts("plain")
        time.sleep(PAUSE_MS / 1000)  # else the burst is one push
    ann.post(channel, f"mention <@{bob.id}>")
    other = bob.ok("conversations.open", users=ann.id)["channel"]["id"]
    ann.post(other, "direct")
    directly = ["direct"] if level != "none" else []
    wanted = [text if text == "plain" else f"mention @{bob.name}" for text in told]
    if level == "none" and not told:  # not even directly: the badge counts it
        phone.wait_badge(2)
        assert phone.texts == []
    else:
        wait_until(lambda: len(phone.texts) == len(wanted + directly))
        assert sorted(phone.texts) == sorted(wanted + directly), phone.pushes


def test_a_direct_message_is_pushed(workspace, phone):
    ann, bob = workspace.users(2)
    phone = phone(bob)
    ann.post(ann.ok("conversations.open", users=bob.id)["channel"]["id"], "psst")
    phone.wait_texts("psst")
    assert (phone.shown[0].title, phone.shown[0].subtitle, phone.badge) == (ann.name, None, 1)


def test_a_reply_is_pushed_to_who_follows(pair, workspace, phone):
    ann, bob, channel, of_bob = pair
    cid = workspace.user()
    ann.ok("channels.invite", channel=channel, users=[cid.id])
    of_cid = phone(cid)
    root = bob.post(channel, "root")
    ann.post(channel, "reply", thread_ts=root)
    of_bob.wait_texts("reply")
    ann.post(channel, f"<@{cid.id}> here", thread_ts=root)
    of_cid.wait_texts(f"@{cid.name} here")
    assert of_cid.shown[0].badge == 1


def test_authors_are_not_told_of_their_own(pair):
    ann, bob, channel, phone = pair
    bob.post(channel, f"<!channel> <@{bob.id}> mine")
    assert settled(bob, ann, phone, channel) == []


def test_what_is_read_is_not_pushed(environment, pair):
    """Nor is a message that was read before the device's turn."""
    ann, bob, channel, phone = pair
    ann.post(channel, f"<@{bob.id}> one")
    phone.wait_texts(f"@{bob.name} one")
    last = ann.post(channel, f"<@{bob.id}> two")  # the conversation rests still
    bob.ok("channels.mark", channel=channel, ts=last)
    phone.wait_badge(0)
    time.sleep(PAUSE_MS / 1000)
    assert settled(bob, ann, phone, channel) == [f"@{bob.name} one"]


def test_a_burst_is_one_push(pair):
    ann, bob, channel, phone = pair
    for number in range(30):
        ann.post(channel, f"<@{bob.id}> {number}")
    wait_until(lambda: phone.texts and phone.texts[-1].endswith(" 29"))
    assert len(phone.texts) < 15 and phone.badge == 30


def test_the_badge_follows_silently(pair):
    ann, bob, channel, phone = pair
    first, second, third = (ann.post(channel, f"<@{bob.id}> {number}") for number in range(3))
    phone.wait_badge(3)
    told = len(phone.shown)
    ann.ok("chat.delete", channel=channel, ts=first)
    phone.wait_badge(2, timeout=10)
    ann.ok("chat.update", channel=channel, ts=second, text="nobody")
    phone.wait_badge(1, timeout=10)
    bob.ok("channels.mark", channel=channel, ts=third)
    phone.wait_badge(0, timeout=10)
    bob.ok("channels.markUnread", channel=channel, ts=third)
    phone.wait_badge(1, timeout=10)
    bob.ok("channels.leave", channel=channel)
    phone.wait_badge(0, timeout=10)
    assert len(phone.shown) <= told + 1  # markUnread: nothing; a burst may have been two pushes


def test_muting_a_direct_conversation_lowers_the_badge(workspace, phone):
    ann, bob = workspace.users(2)
    phone = phone(bob)
    channel = ann.ok("conversations.open", users=bob.id)["channel"]["id"]
    ann.post(channel, "psst")
    phone.wait_badge(1)
    bob.ok("channels.setNotifications", channel=channel, muted=True)
    phone.wait_badge(0)
    bob.ok("channels.setNotifications", channel=channel, muted=False)
    phone.wait_badge(1)
    bob.ok("conversations.close", channel=channel)
    phone.wait_badge(0)
    assert phone.texts == ["psst"]


def test_badge_all_counts_all_unread(pair):
    ann, bob, channel, phone = pair
    bob.ok("notifications.set", badge="all")
    ann.post(channel, "plain")
    phone.wait_badge(1)
    bob.ok("notifications.set", badge="mentions")
    phone.wait_badge(0)
    assert phone.texts == []


def test_an_edit_replaces_what_is_shown(pair):
    ann, bob, channel, phone = pair
    ts = ann.post(channel, f"<@{bob.id}> wrogn")
    phone.wait_texts(f"@{bob.name} wrogn")
    ann.ok("chat.update", channel=channel, ts=ts, text=f"<@{bob.id}> right")
    phone.wait_texts(f"@{bob.name} wrogn", f"@{bob.name} right")
    assert {push.ts for push in phone.shown} == {ts} and phone.badge == 1


OF_JOB = "WHERE user_id = %s AND channel_id = %s"


@pytest.mark.parametrize("due", ["NULL", "clock_timestamp() + interval '1 second'"], ids=["ended", "checked once more"])
def test_an_edit_while_the_push_is_settled(environment, pair, due):
    """The edit's transaction begins before the push counts as sent, and goes on after it. The push may have to be checked once more, since a
    message was read meanwhile."""
    ann, bob, channel, phone = pair
    ts = ann.post(channel, f"<@{bob.id}> wrogn")
    phone.wait_texts(f"@{bob.name} wrogn")
    job = [bob.id, channel]
    with environment.database() as database, environment.database() as settling:
        wait_until(lambda: database.execute(f"SELECT FROM push_jobs {OF_JOB} AND due_at IS NULL AND told_ts = ts", job).rowcount == 1,
                   what="the push counts as sent")
        database.execute(f"UPDATE push_jobs SET told_ts = ts - 1, shown_ts = NULL {OF_JOB}", job)
        with settling.transaction():
            settling.execute("SELECT FROM push_turns WHERE user_id = %s FOR NO KEY UPDATE", [bob.id])
            settling.execute(f"UPDATE push_jobs SET told_ts = ts, shown_ts = ts, due_at = {due} {OF_JOB}", job)
            ann.ok("chat.update", channel=channel, ts=ts, text=f"<@{bob.id}> right")
            wait_until(lambda: database.execute("SELECT FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))",
                                                [settling.info.backend_pid]).rowcount, what="the edit waiting for the device's turn")
    phone.wait_texts(f"@{bob.name} wrogn", f"@{bob.name} right")


CROWD = 100
READ = "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'push_jobs'"


def test_a_push_to_many_reads_only_their_own_jobs(environment, workspace, phone):
    """Also with plans made while none was due. Reading all that are due for each device took 1.8 times Postgres' time for 1,000 devices."""
    ann, *crowd = workspace.users(1 + CROWD)
    channel = workspace.channel(ann, *crowd)
    phones = [phone(member) for member in crowd]
    sql = environment.postgres.sql
    ann.post(channel, "<!channel> first")
    wait_until(lambda: int(sql(f"SELECT count(*) FROM push_jobs WHERE channel_id = '{channel}' AND due_at IS NULL AND told_ts = ts")) == CROWD,
               what="all told of the first")
    sql("VACUUM ANALYZE push_jobs")
    before = int(sql(READ))
    for text in ("second", "third"):
        ann.post(channel, f"<!channel> {text}")
        wait_until(lambda wanted=text: all(each.texts[-1:] == [f"@channel {wanted}"] for each in phones), what=f"all told of the {text}")

    def read():
        """Postgres publishes a connection's counts with a delay: further posts flush them."""
        ann.post(channel, "on")
        return int(sql(READ)) - before

    wait_until(lambda: read() > 4 * CROWD, 60, 0.1, what="counts of what was read")
    assert read() < 60 * CROWD


@pytest.mark.parametrize("own, device, title, body", [
    ("full", "sender", "#", "New message"), ("sender", "full", "#", "New message"), ("none", "full", "New message", None),
])
def test_previews(workspace, phone, own, device, title, body):
    ann, bob = workspace.users(2)
    phone, channel = phone(bob, preview=device), workspace.channel(ann, bob)
    bob.ok("notifications.set", preview=own)
    ann.post(channel, f"<@{bob.id}> secret")
    wait_until(lambda: phone.shown)
    assert phone.shown[0].title.startswith(title) and phone.shown[0].body == body
    assert "secret" not in json.dumps([request.body for request in phone.receiver.requests if phone.pushkey in request.body])


@pytest.mark.parametrize("blocks", [False, True])
def test_a_long_text_ends_where_a_character_does(pair, blocks):
    ann, bob, channel, phone = pair
    text = f"<@{bob.id}>" + "x" * (990 - len(bob.name)) + "\U0001f469\u200d\U0001f469\u200d\U0001f467" * 9
    content = {"blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": text}}]} if blocks else {"text": text}
    ann.ok("chat.postMessage", channel=channel, **content)
    wait_until(lambda: phone.texts)
    shown = f"@{bob.name}" + text[len(f"<@{bob.id}>"):]
    assert phone.texts == [shown[:996]] and len(shown) > 1000


def test_quiet_hours_put_off(environment, pair):
    """The badge is sent at once; the messages follow in one push when quiet hours end."""
    ann, bob, channel, phone = pair
    bob.ok("dnd.setSnooze", num_minutes=10)
    direct = ann.ok("conversations.open", users=bob.id)["channel"]["id"]
    ann.post(channel, f"<@{bob.id}> later")
    ann.post(direct, "later, too")
    phone.wait_badge(2)
    with environment.database() as database:
        wait_until(lambda: database.execute("SELECT count(*) FROM push_jobs WHERE is_quiet AND user_id = %s", [bob.id]).fetchone()[0] == 2)
    assert phone.texts == []
    bob.ok("dnd.endSnooze")
    wait_until(lambda: phone.shown)
    assert phone.shown[0].title == "New messages" and phone.shown[0].badge == 2
    assert settled(bob, ann, phone, channel) == phone.texts[:1]


def test_quiet_hours_of_the_users_zone(pair):
    ann, bob, channel, phone = pair
    there = datetime.now(timezone(timedelta(hours=13)))  # Tongatapu: no summer time
    hours = {"dnd_start": (there - timedelta(hours=1)).strftime("%H:%M"), "dnd_end": (there + timedelta(hours=1)).strftime("%H:%M")}
    bob.ok("notifications.set", tz="Pacific/Tongatapu", **hours)
    ann.post(channel, f"<@{bob.id}> at night")
    phone.wait_badge(1)
    assert phone.texts == []
    bob.ok("notifications.set", tz="UTC")
    phone.wait_texts(f"@{bob.name} at night")


def test_who_is_active_is_not_told(environment, pair, sockets):
    """Any frame from a socket except a ping counts as activity; an open socket alone does not. A user whose socket closes is not active."""
    ann, bob, channel, phone = pair
    socket = sockets(bob)
    socket.request({"id": 1, "type": "ping"})
    assert settled(bob, ann, phone, channel) == []
    told, skipped = phone.texts, metric(environment.instances[0], "tidings_push_skipped_total")
    socket.request({"id": 2, "type": "channel_blur", "channel": channel})
    ann.post(channel, f"<@{bob.id}> you see this")
    phone.wait_badge(2)
    assert phone.texts == told and metric(environment.instances[0], "tidings_push_skipped_total") > skipped
    socket.close()
    wait_until(lambda: bob.ok("users.getPresence")["presence"] == "away", what="bob away")
    ann.post(channel, f"<@{bob.id}> good night")
    phone.wait_texts(*told, f"@{bob.name} good night")


def test_presence_counts_where_it_is_asked_for(environment, pair, sockets, extra_instance):
    """With 0, every connected user is active."""
    ann, bob, channel, phone = pair
    for instance in environment.instances:
        assert instance.stop() == 0
    try:
        extra = extra_instance(push_active_s="0")
        with bob.at(extra.url).socket():
            ann.at(extra.url).post(channel, f"<@{bob.id}> seen")
            phone.wait_badge(1)
            assert phone.texts == []
    finally:
        for instance in environment.instances:
            instance.start()


def test_each_device_of_a_user_is_told(pair, phone):
    ann, bob, channel, first = pair
    second = phone(bob, device_id="tablet")
    ann.post(channel, f"<@{bob.id}> all")
    for one in (first, second):
        one.wait_texts(f"@{bob.name} all")


def test_a_broadcast_reply_right_after_the_first_device(workspace, gateway):
    """The instance does not know yet that the workspace has a device."""
    ann, bob = workspace.users(2)
    channel = workspace.channel(ann, bob)
    root = ann.post(channel, "root")
    bob.post(channel, "I follow", thread_ts=root)
    phone = Phone(workspace, bob, gateway[0])
    ann.post(channel, "for all to see", thread_ts=root, reply_broadcast=True)
    phone.wait_texts("for all to see")


def test_a_device_that_moved_tells_its_new_owner(workspace, pair, gateway):
    ann, bob, channel, phone = pair
    ann.post(channel, f"<@{bob.id}> before")
    phone.wait_badge(1)
    cid = workspace.user()
    phone.member = cid
    phone.register()
    phone.wait_badge(0)  # that of its new owner
    ann.post(channel, f"<@{bob.id}> after")
    ann.post(ann.ok("conversations.open", users=cid.id)["channel"]["id"], "for cid")
    phone.wait_badge(1)
    assert phone.texts == [f"@{bob.name} before", "for cid"]


def test_what_a_gateway_does_not_take_is_tried_again(pair, gateway):
    ann, bob, channel, phone = pair
    gateway[0].answer = lambda request: (502, {}, {})
    try:
        ann.post(channel, f"<@{bob.id}> patience")
        wait_until(lambda: len(phone.pushes) >= 2)  # they were asked, and refused it
    finally:
        gateway[0].answer = None
    asked = len(phone.pushes)
    wait_until(lambda: len(phone.pushes) > asked)
    assert set(phone.texts) == {f"@{bob.name} patience"} and phone.badge == 1


def test_a_device_that_is_gone_goes(pair, gateway):
    ann, bob, channel, phone = pair
    gateway[0].rejected.add(phone.pushkey)
    ann.post(channel, f"<@{bob.id}> anybody?")
    wait_until(lambda: not bob.ok("devices.list")["devices"])


def dead(environment, workspace, what, *arguments):
    """The output of `tidings push dead` for the workspace."""
    done = run("push", "dead", what, "--workspace", workspace.id, *arguments, DATABASE_URL=environment.postgres.url)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_is_refused_is_a_dead_letter(environment, workspace, pair, gateway):
    ann, bob, channel, phone = pair
    gateway[0].answer = lambda request: (400, {}, {"errcode": "M_BAD_JSON"})
    try:
        ts = ann.post(channel, f"<@{bob.id}> refused")
        letters = wait_until(lambda: dead(environment, workspace, "list"), interval=0.2)
        ann.post(channel, f"<@{bob.id}> refused, too")
        wait_until(lambda: ts not in (dead(environment, workspace, "list") or [ts])[0], interval=0.2)  # there is one of a conversation
    finally:
        gateway[0].answer = None
    letter = json.loads(letters[0])
    assert len(letters) == 1 and letter.pop("died") > time.time() - 600
    assert letter == {"workspace": workspace.id, "user": bob.id, "app": "phone", "device_id": "phone", "channel": channel, "thread_ts": None,
                      "ts": ts, "reason": "M_BAD_JSON"}
    assert dead(environment, workspace, "list", "--app", "other") == []
    before = len(phone.texts)
    assert dead(environment, workspace, "retry") == ["1 tried again"]
    wait_until(lambda: len(phone.texts) > before)
    assert phone.texts[-1] == f"@{bob.name} refused, too" and dead(environment, workspace, "list") == []


def test_what_nobody_takes_in_time_is_a_dead_letter(environment, workspace, pair, gateway, extra_instance):
    ann, bob, channel, phone = pair
    for instance in environment.instances:
        assert instance.stop() == 0
    gateway[0].answer = lambda request: (502, {}, {"errcode": "M_UNKNOWN"})
    try:
        extra = extra_instance(push_ttl_s="1")
        ann.at(extra.url).post(channel, f"<@{bob.id}> too late")
        letters = wait_until(lambda: dead(environment, workspace, "list"), interval=0.2)
        wait_until(lambda: metric(extra, "tidings_push_died_total") == 1, what="it counted")
    finally:
        gateway[0].answer = None
        for instance in environment.instances:
            instance.start()
    assert json.loads(letters[0])["reason"] == "M_UNKNOWN"
    assert dead(environment, workspace, "drop") == ["1 dropped"] and dead(environment, workspace, "list") == []
    phone.wait_badge(1)
    assert bob.ok("unread.sync")["totals"]["badge"] == 1


def test_the_command(environment):
    assert run("push", "--help").stdout.startswith("usage: tidings push dead list|retry|drop")
    for arguments in ([], ["dead"], ["dead", "lost"], ["dead", "list", "--workspace"], ["dead", "list", "--workspace", "x"], ["live", "list"]):
        done = run("push", *arguments, DATABASE_URL=environment.postgres.url)
        assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("usage:")


@contextmanager
def under_way(gateway, push):
    """Calls `push` and keeps what it causes from arriving until the end; yields what it returned."""
    held, go_on = threading.Event(), threading.Event()

    def hold(request):
        held.set()
        go_on.wait(30)
        return gateway[0].serve(request)

    gateway[0].answer = hold
    try:
        returned = push()
        assert held.wait(30)
        yield returned
    finally:
        gateway[0].answer = None
        go_on.set()


def test_another_instance_goes_on(environment, pair, gateway, extra_instance):
    """The instance with pushes in flight is killed: they arrive within 10 s."""
    ann, bob, channel, phone = pair
    with under_way(gateway, lambda: ann.post(channel, f"<@{bob.id}> hold on")):
        extra_instance()
        environment.instances[0].kill()
        killed = time.monotonic()
    arrived = len(phone.pushes)
    wait_until(lambda: len(phone.pushes) > arrived)
    took_s = time.monotonic() - killed
    environment.instances[0].start()
    assert took_s < 10 and set(phone.texts) == {f"@{bob.name} hold on"} and phone.badge == 1


def test_there_is_room_for_so_many(environment, pair, extra_instance):
    """Without room, the text of a message is dropped and counted. The badge is not."""
    ann, bob, channel, phone = pair
    for instance in environment.instances:
        assert instance.stop() == 0
    try:
        extra = extra_instance(push_jobs_max="0")
        ann.at(extra.url).post(channel, f"<@{bob.id}> no room")
        wait_until(lambda: metric(extra, "tidings_push_jobs_dropped_total") == 1)
        bob.at(extra.url).ok("notifications.set", badge="all")
        phone.wait_badge(1)
        assert phone.texts == []
    finally:
        for instance in environment.instances:
            instance.start()


def test_as_many_as_there_is_room_for_and_one_more(environment, gateway):
    def dropped():
        return metric(instance, "tidings_push_jobs_dropped_total")

    with environment.apart("jobs", push_jobs_max=1) as instance:
        workspace = Workspace([instance.url], environment.operator_token)
        ann, bob = workspace.users(2)
        phone = Phone(workspace, bob, gateway[0])
        first, second = (workspace.channel(ann, bob) for _ in range(2))
        with under_way(gateway, lambda: ann.post(first, f"<@{bob.id}> one")):
            wait_until(lambda: metric(instance, "tidings_push_waiting") == 1, what="word of the first")
            assert dropped() == 0
            ann.post(second, f"<@{bob.id}> two")
            wait_until(lambda: dropped() == 1, what="the second dropped")
        phone.wait_texts(f"@{bob.name} one")
        bob.ok("channels.markAll")
        phone.wait_badge(0)
        assert phone.texts == [f"@{bob.name} one"]


def test_what_is_read_while_its_push_is_under_way(pair, gateway):
    ann, bob, channel, phone = pair
    with under_way(gateway, lambda: ann.post(channel, f"<@{bob.id}> quick")) as ts:
        bob.ok("channels.mark", channel=channel, ts=ts)
    phone.wait_badge(1)
    phone.wait_badge(0)


@pytest.mark.parametrize("why", ["mention", "thread", "all"])
def test_what_is_deleted_while_its_push_is_under_way(pair, gateway, why):
    """The push arrives; another one, without text, withdraws it."""
    ann, bob, channel, phone = pair
    thread = {"thread_ts": bob.post(channel, "root")} if why == "thread" else {}
    if why == "all":
        bob.ok("channels.setNotifications", channel=channel, notify="all")
    text = f"<@{bob.id}> quick" if why == "mention" else "quick"
    with under_way(gateway, lambda: ann.post(channel, text, **thread)) as ts:
        ann.ok("chat.delete", channel=channel, ts=ts)
    wait_until(lambda: len(phone.pushes) == 2, what="a push that withdraws it")
    assert [bool(push.title) for push in phone.pushes] == [True, False] and phone.badge == 0


def test_a_gateway_that_stands_still_delays_no_other(workspace, pair, phone, gateway):
    ann, bob, channel, of_bob = pair
    cid = workspace.user()
    ann.ok("channels.invite", channel=channel, users=[cid.id])
    other = Matrix(certificate(Path(gateway[1]["TIDINGS_PUSH_CA_FILE"]).parent))
    held, go_on = threading.Event(), threading.Event()

    def hold(request):
        held.set()
        go_on.wait(30)
        return gateway[0].serve(request)

    gateway[0].answer = hold
    try:
        of_cid = Phone(workspace, cid, other, name="other")
        ann.post(channel, f"<@{bob.id}> one")
        assert held.wait(30)
        ann.post(channel, f"<@{bob.id}> <@{cid.id}> two")
        of_cid.wait_texts(f"@{bob.name} @{cid.name} two")
        assert not go_on.is_set() and of_bob.texts == []  # of which the gateway has said nothing
    finally:
        gateway[0].answer = None
        go_on.set()
        other.close()
    wait_until(lambda: of_bob.texts and of_bob.texts[-1] == f"@{bob.name} @{cid.name} two")
