# SPDX-License-Identifier: Apache-2.0
"""An app's HTTP server: receives the requests to its events_url, and answers as the test chooses."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace


def plain(request):
    """Answers challenges, and takes every event."""
    challenge = request.json.get("challenge")
    return 200, {}, json.dumps({"challenge": challenge}) if challenge else ""


class EventsUrl:
    """`answer(request)` gives (status, headers, text), or None to wait until the server is closed."""

    def __init__(self, answer=plain):
        self.answer = answer
        self.requests = []
        self._closing = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                owner.handle(self)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/slack/events"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def handle(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"])).decode()
        request = SimpleNamespace(path=handler.path, headers=dict(handler.headers), body=body, json=json.loads(body))
        answer = self.answer(request)
        self.requests.append(request)  # last: who sees it may change the answer of those to come
        if answer is None:
            self._closing.wait()
            handler.close_connection = True
            return
        status, headers, text = answer
        try:
            handler.send_response(status)
            for name, value in {"Content-Length": str(len(text)), **headers}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(text.encode())
        except OSError:
            handler.close_connection = True  # the other side has read enough

    @property
    def challenges(self):
        return [r for r in self.requests if r.json["type"] == "url_verification"]

    @property
    def events(self):
        return [r for r in self.requests if r.json["type"] == "event_callback"]

    def texts(self):
        return [r.json["event"].get("text") for r in self.events]

    def tries(self, text):
        """All requests with the message `text`."""
        return [r for r in self.events if r.json["event"].get("text") == text]

    def close(self):
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
