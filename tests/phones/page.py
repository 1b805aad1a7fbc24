# SPDX-License-Identifier: Apache-2.0
"""Serves the lock screens on loopback, and two requests for programs: POST /register, and /subscribe for the user's own browser."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.phones.registration import register
from tests.support.script import ScriptError
from tools.project import ROOT, Failure

HERE = Path(__file__).parent
FILES = {"/": (HERE / "phones.html", "text/html"), "/phones.js": (HERE / "phones.js", "text/javascript"),
         "/phones.css": (HERE / "phones.css", "text/css"), "/icon.svg": (ROOT / "web" / "icon.svg", "image/svg+xml")}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
          "form-action 'none'; frame-ancestors 'none'")
WAIT_S = 20
BODY_MAX = 65536


class Page:
    def __init__(self, port, receivers, arrivals):
        self.receivers, self.arrivals, self.devices, self.app = receivers, arrivals, [], None
        self._lock, page = threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                page.get(self)

            def do_POST(self):
                page.post(self)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def get(self, handler):
        where = urlsplit(handler.path)
        if handler.headers["Host"] not in self._hosts:  # another site, which gave itself this address
            answer(handler, 403, "application/json", b"{}")
        elif where.path in FILES:
            path, kind = FILES[where.path]
            answer(handler, 200, f"{kind}; charset=utf-8", path.read_bytes())
        elif where.path == "/pushes":
            after = parse_qs(where.query).get("after", [""])[0]
            is_number = after.isascii() and after.isdecimal()
            first, pushes = self.arrivals.after(int(after), WAIT_S) if is_number else self.arrivals.after(0, 0)
            tell(handler, 200, {"app": self.app, "devices": self._shown(), "first": first, "pushes": pushes})
        else:
            tell(handler, 404, {})

    def _shown(self):
        """The devices without their addresses."""
        return [{name: device[name] for name in ("user", "device_id", "platform")} for device in self.devices]

    def post(self, handler):
        """JSON alone: no form of another site can send it."""
        calls = {"/register": self._register, "/subscribe": self._subscribe}
        length = handler.headers["Content-Length"] or ""
        if handler.path not in calls or handler.headers["Host"] not in self._hosts or handler.headers["Content-Type"] != "application/json":
            handler.close_connection = True
            return tell(handler, 404, {})
        if not length.isdecimal() or int(length) > BODY_MAX:
            handler.close_connection = True
            return tell(handler, 413, {})
        try:
            return tell(handler, 200, calls[handler.path](json.loads(handler.rfile.read(int(length)))))
        except (Failure, ScriptError, KeyError, ValueError) as error:
            return tell(handler, 400, {"error": str(error)})

    def _register(self, workspace):
        """Only once: repeated calls return the same devices."""
        with self._lock:
            if not self.devices:
                self.app, self.devices = f"{workspace['url']}/app", register(workspace, self.receivers, self.arrivals)
        return {"devices": self.devices}

    def _subscribe(self, given):
        _, subscription = self.receivers.webpush.subscribe(given["public_key"])
        return subscription


def tell(handler, status, document):
    answer(handler, status, "application/json", json.dumps(document).encode())


def answer(handler, status, kind, body):
    handler.send_response(status)
    for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), "Content-Security-Policy": POLICY, "Cache-Control": "no-store",
                        "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)
