# SPDX-License-Identifier: Apache-2.0
"""Registers the phones of a demo as apps on phones do: push apps by an admin, then devices by each user."""

import os

from tests.support.provider_keys import address, apps
from tests.support.push_receivers import Matrix
from tools.demo import ask, call
from tools.project import Failure

DEVICES = {"apns": "iphone", "fcm": "android", "webpush": "browser", "matrix": "tablet"}


def make_app(url, admin, name, given):
    """An app of that name with these keys, whether it is there or not."""
    reply = call(url, "admin.pushApps.create", admin, name=name, **given)
    if not reply["ok"] and reply["error"] == "name_taken":
        reply = call(url, "admin.pushApps.update", admin, name=name, **given)
    if not reply["ok"]:
        raise Failure(f"push app {name}: {reply}")
    return reply["app"]


def new_address(platform, receivers, app):
    """(address of a new device, the receiver's name for it)"""
    if platform == "webpush":
        client, subscription = receivers.webpush.subscribe(app["public_key"])
        return subscription, client
    if platform == "matrix":
        pushkey = os.urandom(8).hex()
        return {"url": receivers.matrix.url + Matrix.PATH, "pushkey": pushkey}, pushkey
    where = address(platform)
    return where, where["push_token"]


def register(workspace, receivers, arrivals):
    """A device of each platform for each user; returns them."""
    url, devices = workspace["url"], []
    for platform, given in apps().items():
        app = make_app(url, workspace["admin_token"], platform, given)
        for user in workspace["users"]:
            where, called = new_address(platform, receivers, app)
            device = {"platform": platform, "app": platform, "user": user["name"], "user_id": user["id"],
                      "device_id": f"{user['name']}-{DEVICES[platform]}"}
            arrivals.name(called, device["device_id"], user["name"])
            ask(url, "devices.register", user["token"], device_id=device["device_id"], app=platform, **where)
            devices.append({**device, **where})
    return devices
