# SPDX-License-Identifier: Apache-2.0
"""Servers that receive pushes like those of Apple, Google, browsers and Matrix, with their own certificates.

APNs is pushy's MockApnsServer, Web Push is web-push-testing; Google's two URLs and the Matrix push gateway are here, according to their
documents: https://firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode, https://spec.matrix.org/v1.11/push-gateway-api/.
"""

import base64
import json
import os
import socket
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs

from google.auth import jwt

from tests.support.provider_keys import APNS, ec_key, service_account
from tests.support.script import Script
from tools import maven, node
from tools.project import BUILD
from tools.services import free_port

HERE = Path(__file__).parent / "push"
JARS = BUILD / "pushy"


def openssl(*arguments, text=None):
    return subprocess.run(["openssl", *map(str, arguments)], input=text, capture_output=True, check=True, timeout=60).stdout


def certificate(directory):
    """Paths of a certificate for this machine, which is its own authority, and of its key; they stay, once they are made."""
    certificate_path, key_path = Path(directory) / "receivers.crt", Path(directory) / "receivers.key"
    if not certificate_path.exists():
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "365", "-subj", "/CN=localhost",
                "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key_path, "-out", certificate_path)
    return certificate_path, key_path


class Apns:
    def __init__(self, files, port=None, listener=None):
        maven.fetch(HERE / "pom.xml", JARS)
        self.port = port or free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        public_key = base64.b64encode(openssl("pkey", "-pubout", "-outform", "DER", text=ec_key().encode())).decode()
        self.script = Script(["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*", HERE / "Apns.java", *files,
                              self.port, public_key, APNS["key_id"], APNS["team_id"], APNS["topic"]], listener)

    def order(self, line):
        """Gives an order, and waits until it was carried out."""
        what = {"what": line.split()[0]}
        before = len(self.script.matching(what))
        self.script.say(line)
        self.script.expect(what, count=before + 1)

    def new_token(self, known=True):
        token = os.urandom(32).hex()
        if known:
            self.order(f"token {token}")
        return token

    def accepted(self, token, count):
        """Pushes to a device, once there are so many."""
        match = {"what": "accepted", "headers": {":path": f"/3/device/{token}"}}
        self.script.expect(match, count=count)
        return self.script.matching(match)


class WebPush:
    def __init__(self, files, directory, port=None, listener=None):
        self.port = port or free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        modules = node.packages(HERE)
        environment = {**node.environment(), "NODE_PATH": str(modules)}
        self.script = Script([node.node(), HERE / "webpush.js", *files, self.port], listener, cwd=directory, env=environment)

    def subscribe(self, public_key):
        """(client hash, the address of a new subscription)"""
        made = self.script.ask("subscribe", public_key)
        return made["clientHash"], {"endpoint": made["endpoint"], **made["keys"]}


class Https:
    """An HTTPS server of these tests. `answer`, if set, answers instead of `serve(request)` with (status, headers, JSON). `listener`, if
    set, receives each request that was answered with 200."""

    def __init__(self, files, port=0, listener=None):
        self.requests, self.answer, self.listener, owner = [], None, listener, self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                owner.handle(self)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def handle(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"])).decode()
        request = SimpleNamespace(path=handler.path, headers=handler.headers, body=body)
        status, headers, answer = (self.answer or self.serve)(request)
        self.requests.append(request)
        if status == 200 and self.listener:
            self.listener(request)
        text = json.dumps(answer)
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(text.encode())

    def serve(self, request):
        raise NotImplementedError

    def to(self, path):
        return [request for request in self.requests if request.path == path]

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def fcm_error(status, name, code=None):
    details = [{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code}] if code else []
    return {"error": {"code": status, "message": "refused", "status": name, "details": details}}


class Google(Https):
    """Access tokens for who signs as Google documents it, and FCM for who shows one of them."""

    SEND = "/v1/projects/demo-1/messages:send"

    def __init__(self, files, port=0, listener=None):
        self.account = json.loads(service_account())
        self.unregistered, self._access, self._number = set(), set(), 0
        self.public_key = openssl("req", "-x509", "-new", "-key", "/dev/stdin", "-subj", "/CN=x", "-days", "2",
                                  text=self.account["private_key"].encode())
        super().__init__(files, port, listener)

    def serve(self, request):
        return self._token(request) if request.path == "/token" else self._send(request)

    def _token(self, request):
        form = parse_qs(request.body)
        if form.get("grant_type") != ["urn:ietf:params:oauth:grant-type:jwt-bearer"]:
            return 400, {}, {"error": "unsupported_grant_type"}
        try:
            claims = jwt.decode(form["assertion"][0], certs=self.public_key, audience=self.account["token_uri"])
        except ValueError as error:
            return 400, {}, {"error": "invalid_grant", "error_description": str(error)}
        if claims["iss"] != self.account["client_email"] or claims["scope"] != "https://www.googleapis.com/auth/firebase.messaging":
            return 400, {}, {"error": "invalid_scope"}
        self._number += 1
        token = f"ya29.{self._number}-" + "x" * 900
        self._access.add(token)
        return 200, {}, {"access_token": token, "expires_in": 3599, "token_type": "Bearer"}

    def revoke(self):
        """Revokes all access tokens issued so far."""
        self._access.clear()

    def _send(self, request):
        if request.headers["Authorization"].removeprefix("Bearer ") not in self._access:
            return 401, {}, fcm_error(401, "UNAUTHENTICATED")
        message = json.loads(request.body)["message"]
        if request.path != self.SEND or not all(isinstance(value, str) for value in message["data"].values()):
            return 400, {}, fcm_error(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT")
        if message["token"] in self.unregistered:
            return 404, {}, fcm_error(404, "NOT_FOUND", "UNREGISTERED")
        return 200, {}, {"name": "projects/demo-1/messages/1"}


class Matrix(Https):
    PATH = "/_matrix/push/v1/notify"

    def __init__(self, files, port=0, listener=None):
        self.rejected = set()
        super().__init__(files, port, listener)

    def serve(self, request):
        notification = json.loads(request.body)["notification"]
        if not all({"app_id", "pushkey"} <= device.keys() for device in notification["devices"]):
            return 400, {}, {"errcode": "M_BAD_JSON", "error": "devices"}
        return 200, {}, {"rejected": [device["pushkey"] for device in notification["devices"] if device["pushkey"] in self.rejected]}


class Receivers:
    """One of each kind; `ports` and `listeners` by platform, for those that need any."""

    def __init__(self, directory, ports=None, listeners=None):
        self.directory = Path(directory)
        ports, listeners, files = ports or {}, listeners or {}, certificate(directory)
        self.apns = Apns(files, ports.get("apns"), listeners.get("apns"))
        self.webpush = WebPush(files, directory, ports.get("webpush"), listeners.get("webpush"))
        self.google = Google(files, ports.get("fcm", 0), listeners.get("fcm"))
        self.matrix = Matrix(files, ports.get("matrix", 0), listeners.get("matrix"))
        self.settings = {"TIDINGS_PUSH_APNS_URL": self.apns.url, "TIDINGS_PUSH_FCM_URL": self.google.url,
                         "TIDINGS_PUSH_GOOGLE_TOKEN_URL": f"{self.google.url}/token", "TIDINGS_PUSH_CA_FILE": str(files[0]),
                         "TIDINGS_EVENTS_API_PRIVATE": "true"}

    def wait_ready(self):
        self.apns.script.expect({"what": "back"})
        self.webpush.script.expect({"what": "ready"})
        # A JVM takes seconds for its first handshake.
        context = ssl.create_default_context(cafile=self.settings["TIDINGS_PUSH_CA_FILE"])
        with socket.create_connection(("127.0.0.1", self.apns.port), timeout=60) as link:
            context.wrap_socket(link, server_hostname="localhost").close()

    def close(self):
        self.apns.script.close()
        self.webpush.script.close()
        self.google.close()
        self.matrix.close()
