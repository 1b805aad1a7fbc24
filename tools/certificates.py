# SPDX-License-Identifier: Apache-2.0
"""A certificate authority of one's own, for the private servers that speak TLS."""
import subprocess
from pathlib import Path

HERE = "DNS:localhost,IP:127.0.0.1"


class Authority:
    """Keeps its files in `directory`, and makes each of them once."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.certificate = self.directory / "ca.crt"
        self.key = self.directory / "ca.key"
        if not self.certificate.exists():
            self._make(self.certificate, self.key, "/CN=Tidings test authority")

    def issue(self, name, subject_alt_name=HERE):
        """Paths of a certificate and its key; `subject_alt_name` in OpenSSL's words."""
        certificate, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        if not certificate.exists():
            self._make(certificate, key, f"/CN={name}", "-addext", f"subjectAltName={subject_alt_name}",
                       "-CA", self.certificate, "-CAkey", self.key)
        return certificate, key

    @staticmethod
    def _make(certificate, key, subject, *more):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3650",
                        "-subj", subject, *more, "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=60)
