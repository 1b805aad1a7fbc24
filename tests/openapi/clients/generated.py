# SPDX-License-Identifier: Apache-2.0
# openapi-python-client generate --url http://127.0.0.1:8080/openapi.json
import os

from tidings_client import AuthenticatedClient
from tidings_client.api.channels import channels_history, channels_info
from tidings_client.api.chat import chat_post_message
from tidings_client.api.unread import unread_sync
from tidings_client.models import ChannelsHistoryRequest, ChannelsInfoRequest, ChatPostMessageRequest, UnreadSyncRequest

client = AuthenticatedClient(base_url=os.environ["API"], token=os.environ["TOKEN"], headers={"X-Tidings-Errors": "http"})
channel = os.environ["CHANNEL"]

posted = chat_post_message.sync(client=client, body=ChatPostMessageRequest(channel=channel, text="Hello from Python"))
print("posted", posted.message.text)

info = channels_info.sync(client=client, body=ChannelsInfoRequest(channel=channel))
print("info", info.channel.id, info.channel.unread_count)

for row in unread_sync.sync(client=client, body=UnreadSyncRequest()).channels:
    if row.id == channel:
        print("sync", row.id, row.unread_count)

page = ChannelsHistoryRequest(channel=channel, limit=1)
for _ in range(2):
    history = channels_history.sync(client=client, body=page)
    print("history", history.messages[0].text)
    page.cursor = history.response_metadata.next_cursor

refused = channels_info.sync_detailed(client=client, body=ChannelsInfoRequest(channel="C0000000000"))
print("error", refused.status_code.value, refused.parsed.error)
