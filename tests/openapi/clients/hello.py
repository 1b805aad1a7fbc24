# SPDX-License-Identifier: Apache-2.0
# openapi-generator generate -g python -i http://127.0.0.1:8080/openapi-3.0.json -o client
import os

from openapi_client import (ApiClient, Block, ChannelsApi, ChannelsHistoryRequest, ChatApi, ChatPostMessageRequest,
                            Configuration)

configuration = Configuration(host=os.environ["API"].rstrip("/"), access_token=os.environ["TOKEN"])
channel = os.environ["CHANNEL"]

with ApiClient(configuration) as client:
    section = Block.from_dict({"type": "section", "text": {"type": "plain_text", "text": "Hello!"}})
    posted = ChatApi(client).chat_post_message(
        ChatPostMessageRequest(channel=channel, text="Hello from Python", blocks=[section]))
    if not posted.ok:
        raise SystemExit(posted.error)
    history = ChannelsApi(client).channels_history(ChannelsHistoryRequest(channel=channel, limit=1))
    for message in history.messages:
        print(str(message.ts == posted.ts).lower(), message.text, message.blocks[0].to_dict()["text"]["text"])
