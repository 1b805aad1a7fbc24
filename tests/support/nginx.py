# SPDX-License-Identifier: Apache-2.0
"""nginx with the configuration that compose.yaml gives it, in front of instances of a test."""

import getpass
import http.client
import re
from pathlib import Path

from tools.service import Service

CONFIGURATION = Path(__file__).resolve().parents[2] / "deploy" / "nginx.conf"


class Nginx(Service):
    """Listens on a port of its own; `instances` take the places of tidings-1, tidings-2 …"""

    name = "nginx"
    programs = ("nginx",)

    def __init__(self, directory, instances):
        super().__init__(directory)
        self.instances = instances

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def prepare(self):
        text = CONFIGURATION.read_text(encoding="utf-8")
        for number, instance in enumerate(self.instances, 1):
            text, found = re.subn(rf"\btidings-{number}:8080\b", f"127.0.0.1:{instance.port}", text)
            assert found == 1, number
        text, found = re.subn(r"\blisten 80;", f"listen 127.0.0.1:{self.port};", text)
        assert found == 1
        assert "tidings-" not in text
        (self.home / "nginx.conf").write_text(text.replace("http {", f"http {{\n{self._scratch()}", 1), encoding="utf-8")

    def _scratch(self):
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        return "".join(f"    {kind}_temp_path {self.home}/{kind};\n" for kind in kinds)

    def command(self):
        globals_ = f"daemon off; pid {self.home}/nginx.pid; user {getpass.getuser()};"
        return ["/usr/sbin/nginx", "-p", str(self.home), "-e", "stderr", "-c", str(self.home / "nginx.conf"),
                "-g", globals_], None

    def ready(self):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
        try:
            link.request("GET", "/readyz")
            return link.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            link.close()
