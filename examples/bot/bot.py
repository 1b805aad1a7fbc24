# SPDX-License-Identifier: Apache-2.0
"""A bot by Socket Mode, with Slack's own SDK: it keeps a list of things to bring for each channel it is in.

    @helper bring cake      @helper list      @helper done cake
"""

import os
import re
import signal
from threading import Event

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse

API = os.environ["API"]
MENTION = re.compile(r"<@\w+>\s*")

# A bot has two tokens: with its own it calls methods, with that of its app it listens.
web = WebClient(os.environ["BOT_TOKEN"], base_url=API)
web.retry_handlers.append(RateLimitErrorRetryHandler(max_retry_count=3))
listener = SocketModeClient(os.environ["APP_TOKEN"], web_client=WebClient(base_url=API))

lists = {}  # of each channel; a real bot would keep them in a database


def bring(things, thing):
    if thing and thing not in things:
        things.append(thing)
    return f"{len(things)} to bring: {', '.join(things)}"


def done(things, thing):
    if thing not in things:
        return f"Nobody wanted to bring {thing}."
    things.remove(thing)
    return f"Thanks for {thing}! {len(things)} left."


def show(things, _):
    return ", ".join(things) or "Nothing to bring."


COMMANDS = {"bring": bring, "done": done, "list": show}


def answer(event):
    """What the bot says to a message that mentions it."""
    word, _, rest = MENTION.sub("", event["text"]).strip().partition(" ")
    command = COMMANDS.get(word.lower())
    if not command:
        return f"I know: {', '.join(COMMANDS)}."
    return command(lists.setdefault(event["channel"], []), rest.strip())


def mentioned(event):
    web.chat_postMessage(
        channel=event["channel"],
        thread_ts=event.get("thread_ts", event["ts"]),
        text=answer(event),
        # The event comes again when its acknowledgement is lost. Under this name the answer is posted only once.
        client_msg_id=f"answer-to-{event['channel']}-{event['ts']}",
    )


def heard(client, request):
    """Acknowledges an event after it has been dealt with: what is not acknowledged within 3 s is sent again, so no mention
    is lost when the bot is killed in between. (Work that takes longer belongs into a queue of the bot's own.)"""
    event = request.payload.get("event", {})
    if event.get("type") == "app_mention":
        try:
            mentioned(event)
        except SlackApiError as refused:  # say, the bot was removed from the channel meanwhile
            print(f"refused: {refused.response['error']}", flush=True)
    client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))


def main():
    me = web.auth_test()
    listener.socket_mode_request_listeners.append(heard)
    listener.connect()  # and again by itself after each break; what happens meanwhile waits on the server, for 5 minutes
    print(f"{me['user']} ({me['user_id']}) listens", flush=True)
    stopped = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    stopped.wait()
    listener.close()


if __name__ == "__main__":
    main()
