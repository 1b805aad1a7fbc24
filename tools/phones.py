# SPDX-License-Identifier: Apache-2.0
"""The phones of ./dev up --push: a program of the tests that plays the push providers and the devices behind them."""
import http.client
import json
import os
import sys

from tools import testing
from tools.service import Service, ServiceError

PLATFORMS = ("apns", "fcm", "webpush", "matrix")
REGISTER_S = 60


class Phones(Service):
    """`ports` of the providers, by platform; the service's own port is that of the page that shows what arrived."""

    name = "phones"
    programs = (os.path.basename(os.path.realpath(sys.executable)), "java", "node")
    start_timeout = 120  # a JVM, and perhaps what Maven and npm bring

    def __init__(self, directory, ports, log_of_pushes):
        super().__init__(directory, ports["phones"])
        self.ports, self.log_of_pushes = ports, log_of_pushes

    def url_of(self, platform):
        return f"https://127.0.0.1:{self.ports[platform]}"

    @property
    def page(self):
        return f"http://127.0.0.1:{self.port}/"

    @property
    def settings(self):
        """Settings of Tidings that direct its pushes to the phones."""
        return {"TIDINGS_PUSH_APNS_URL": self.url_of("apns"), "TIDINGS_PUSH_FCM_URL": self.url_of("fcm"),
                "TIDINGS_PUSH_GOOGLE_TOKEN_URL": f"{self.url_of('fcm')}/token", "TIDINGS_PUSH_CA_FILE": str(self.directory / "receivers.crt"),
                "TIDINGS_EVENTS_API_PRIVATE": "true"}

    def command(self):
        options = [word for platform in PLATFORMS for word in (f"--{platform}", str(self.ports[platform]))]
        return [testing.python(), "-m", "tests.phones", "--directory", self.directory, "--log", self.log_of_pushes,
                "--page", str(self.port), *options], dict(os.environ)

    def ready(self):
        try:
            return self._ask("GET", "/pushes", timeout=1)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def register(self, workspace):
        """The devices of the workspace's users, which are registered the first time."""
        try:
            status, reply = self._ask("POST", "/register", workspace, REGISTER_S)
        except (OSError, http.client.HTTPException) as error:
            raise ServiceError(f"phones: {error}") from error
        if status != 200:
            raise ServiceError(f"phones: {reply.get('error', status)}")
        return reply["devices"]

    def _ask(self, method, path, document=None, timeout=1):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            link.request(method, path, document and json.dumps(document), {"Content-Type": "application/json"})
            reply = link.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            link.close()
