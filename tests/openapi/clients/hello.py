# SPDX-License-Identifier: Apache-2.0
# openapi-generator generate -g python -i http://127.0.0.1:8080/openapi-3.0.json -o client
import os

from openapi_client import (ApiClient, ApiException, Block, ChannelsApi, ChannelsHistoryRequest, ChannelsInfoRequest, ChatApi,
                            ChatPostMessageRequest, Configuration, UnreadApi, UnreadSyncRequest)

configuration = Configuration(host=os.environ["API"].rstrip("/"), access_token=os.environ["TOKEN"])
channel = os.environ["CHANNEL"]

with ApiClient(configuration, "X-Tidings-Errors", "http") as client:
    section = Block.from_dict({"type": "section", "text": {"type": "plain_text", "text": "Hello from pydantic"}})
    posted = ChatApi(client).chat_post_message(
        ChatPostMessageRequest(channel=channel, text="Hello from pydantic", blocks=[section]))
    print("posted", posted.message.blocks[0].to_dict()["text"]["text"])

    info = ChannelsApi(client).channels_info(ChannelsInfoRequest(channel=channel))
    print("info", info.channel.id, info.channel.unread_count)

    for row in UnreadApi(client).unread_sync(UnreadSyncRequest()).channels:
        if row.id == channel:
            print("sync", row.id, row.unread_count)

    page = ChannelsHistoryRequest(channel=channel, limit=1)
    for _ in range(2):
        history = ChannelsApi(client).channels_history(page)
        print("history", history.messages[0].text)
        page.cursor = history.response_metadata.next_cursor

    try:
        ChannelsApi(client).channels_info(ChannelsInfoRequest(channel="C0000000000"))
    except ApiException as refused:
        print("error", refused.status, refused.data.error)
