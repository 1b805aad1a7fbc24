# SPDX-License-Identifier: Apache-2.0
"""The phones of `./dev up --push`: the receivers that the tests use, a log of their pushes, and a page that shows them.

    python -m tests.phones --directory DIR --log FILE --page PORT --apns PORT --fcm PORT --webpush PORT --matrix PORT
"""

import argparse
import signal
import threading

from tests.phones.arrivals import Arrivals, of_apns, of_fcm, of_matrix, of_webpush
from tests.phones.page import Page
from tests.support.push_receivers import Google, Matrix, Receivers

PLATFORMS = ("apns", "fcm", "webpush", "matrix")


def listeners(arrivals):
    """The receivers' messages, by platform."""
    def told(platform, read):
        return lambda line: line["what"] == "accepted" and arrivals.take(platform, read(line))

    def asked(platform, path, read):
        return lambda request: request.path == path and arrivals.take(platform, read(request))

    return {"apns": told("apns", of_apns), "webpush": told("webpush", of_webpush), "fcm": asked("fcm", Google.SEND, of_fcm),
            "matrix": asked("matrix", Matrix.PATH, of_matrix)}


def main():
    parser = argparse.ArgumentParser(prog="tests.phones")
    for name in ("directory", "log"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("page", *PLATFORMS):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    arrivals = Arrivals(options.log)
    receivers = Receivers(options.directory, {name: getattr(options, name) for name in PLATFORMS}, listeners(arrivals))
    receivers.wait_ready()
    receivers.apns.order("any")
    page = Page(options.page, receivers, arrivals)
    ended.wait()
    page.close()
    receivers.close()


main()
