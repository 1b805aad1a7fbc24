# SPDX-License-Identifier: Apache-2.0
"""@slack/webhook against an incoming webhook."""


def test_send(scripts, workspace):
    ann = workspace.user()
    channel = workspace.channel(ann)
    hook = workspace.admin.ok("admin.webhooks.create", channel=channel, name="Alerts")["webhook"]
    client = scripts("webhook.mjs", url=hook["url"])
    assert client.ask("send", {"text": "from JavaScript", "icon_emoji": ":fire:"})["text"] == "ok"
    message = ann.history(channel)[0]
    assert (message["text"], message["icons"]) == ("from JavaScript", {"emoji": ":fire:"})
