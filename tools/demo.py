# SPDX-License-Identifier: Apache-2.0
"""The demo workspace of ./dev up: made once over HTTP, then remembered in .run/state.json, because
tokens cannot be asked for again."""
import json
import secrets
import urllib.error
import urllib.request

from tools.phones import PLATFORMS
from tools.project import ROOT, RUN, Failure, write_private

DEMO = RUN / "demo.json"
USERS = ("ann", "bob", "cid")
CHANNELS = ("general", "random")
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # whatever http_proxy says


def call(url, method, token, /, **arguments):
    """Calls a method and returns its reply, whether ok or not."""
    request = urllib.request.Request(
        f"{url}/api/{method}", data=json.dumps(arguments).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    with DIRECTLY.open(request, timeout=60) as reply:
        return json.load(reply)


def ask(url, method, token, /, **arguments):
    """Calls a method that must succeed."""
    try:
        reply = call(url, method, token, **arguments)
    except (OSError, ValueError) as error:
        raise Failure(f"demo set-up: {method}: {error}") from error
    if not reply["ok"]:
        raise Failure(f"demo set-up: {method}: {reply}")
    return reply


def make_workspace(url, operator_token):
    """Creates the workspace with its users, bot and channels; returns its part of demo.json."""
    domain = f"demo-{secrets.token_hex(3)}"  # a set-up that was cut short may have left another
    made = ask(url, "admin.workspaces.create", operator_token, name="Demo", domain=domain)
    admin = made["admin"]["token"]
    users = [make_user(url, admin, name, is_admin=name == "ann") for name in USERS]
    bot = make_user(url, admin, "helper", is_bot=True)
    app = ask(url, "admin.apps.create", admin, name="Helper", bot_user_id=bot["id"])
    members = [user["id"] for user in users[1:]] + [bot["id"]]
    channels = [make_channel(url, users[0], name, members) for name in CHANNELS]
    webhook = ask(url, "admin.webhooks.create", admin, channel=channels[0]["id"], name="Alerts")["webhook"]
    return {
        "workspace": made["workspace"]["id"],
        "admin_token": admin,
        "app_token": app["app_token"],
        "users": users,
        "bots": [bot],
        "channels": channels,
        "webhook": webhook["url"],
    }


def make_user(url, admin, name, **arguments):
    user = ask(url, "admin.users.create", admin, name=name, **arguments)["user"]
    made = {"id": user["id"], "name": name}
    if "bot_id" in user:
        made["bot_id"] = user["bot_id"]
    return {**made, "token": ask(url, "admin.tokens.create", admin, user_id=user["id"])["token"]}


def make_channel(url, creator, name, members):
    channel = ask(url, "channels.create", creator["token"], name=name)["channel"]
    ask(url, "channels.invite", creator["token"], channel=channel["id"], users=members)
    return {"id": channel["id"], "name": name}


def push_part(stack, url):
    """The part of demo.json about pushes. If the phones do not run, their previous entries stay."""
    if stack.phones.ready():
        demo = stack.state["demo"]
        stack.state["devices"] = stack.phones.register({"url": url, "admin_token": demo["admin_token"], "users": demo["users"]})
        stack.save()
    devices = stack.state.get("devices", [])
    return {**{platform: {"url": stack.phones.url_of(platform), "app": platform,
                          "devices": [device for device in devices if device["platform"] == platform]} for platform in PLATFORMS},
            "page": stack.phones.page, "log": str(stack.phones.log_of_pushes.relative_to(ROOT))}


def publish(stack):
    """Writes .run/demo.json for the stack as it runs now, making the workspace the first time."""
    instances = stack.instances
    urls = [instance.url for instance in instances]
    if "demo" not in stack.state:
        stack.state["demo"] = make_workspace(urls[0], stack.state["operator_token"])
        stack.save()
    kafka = stack.run["kafka"]
    demo = {
        "url": urls[0],
        "urls": urls,
        "operator_token": stack.state["operator_token"],
        **stack.state["demo"],
        "database_url": stack.postgres.tcp_url,
        "redis_url": stack.redis.url,
        "kafka_brokers": stack.kafka.brokers if kafka else None,
        "pids": {
            "tidings": [instance.pid for instance in instances],
            "postgres": stack.postgres.pid,
            **{service.name: service.pid for service in stack.redis.services},
            "kafka": stack.kafka.pid if kafka else None,
            **({"phones": stack.phones.pid} if stack.push else {}),
        },
        **({"push": push_part(stack, urls[0])} if stack.push else {}),
        "log": ".run/tidings.log",
    }
    write_private(DEMO, demo)
    return demo


def withdraw():
    DEMO.unlink(missing_ok=True)


def walkthrough(demo):
    """Commands that work when pasted: ann posts, bob reads."""
    ann, bob = demo["users"][:2]
    api, channel = f"{demo['url']}/api", demo["channels"][0]["id"]
    as_ann = f"-H 'Authorization: Bearer {ann['token']}'"
    as_bob = f"-H 'Authorization: Bearer {bob['token']}'"
    return f"""\
# ann posts to #general
curl -sw '\\n' {api}/chat.postMessage {as_ann} -d channel={channel} -d text='Hello, Bob'

# bob sees it as unread, reads it, and has nothing unread
curl -sw '\\n' {api}/unread.sync {as_bob}
curl -sw '\\n' '{api}/channels.history?channel={channel}&limit=5' {as_bob}
curl -sw '\\n' {api}/channels.mark {as_bob} -d channel={channel} -d ts=$(date +%s).999999
curl -sw '\\n' {api}/unread.sync {as_bob}

# a monitoring tool posts to #general
curl -sw '\\n' {demo['webhook']} -d '{{"text":"The disk is full"}}'

# a URL for bob's WebSocket (single use, valid for 30 s)
curl -sw '\\n' -X POST {api}/rtm.connect {as_bob}

# in a browser: bob on two devices; ann, for another tab; the API reference
{demo['url']}/app?devices=2#token={bob['token']}
{demo['url']}/app#token={ann['token']}
{demo['url']}/docs
{push_walkthrough(demo) if "push" in demo else ""}"""


def push_walkthrough(demo):
    ann, bob = demo["users"][:2]
    api, channel = f"{demo['url']}/api", demo["channels"][0]["id"]
    return f"""
# bob's phones: with his browser tabs closed, ann mentions him, then he reads it on another device
{demo["push"]["page"]}#bob
curl -sw '\\n' {api}/chat.postMessage -H 'Authorization: Bearer {ann['token']}' -d channel={channel} -d text='<@{bob['id']}> lunch?'
curl -sw '\\n' {api}/channels.mark -H 'Authorization: Bearer {bob['token']}' -d channel={channel} -d ts=$(date +%s).999999
"""
