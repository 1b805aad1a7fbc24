# SPDX-License-Identifier: Apache-2.0
"""A real Chromium: Debian's."""

import os
from contextlib import contextmanager

from playwright.sync_api import sync_playwright


@contextmanager
def chromium():
    """A running browser of Playwright's, without a window."""
    options = ["--no-sandbox"] if os.geteuid() == 0 else []  # its own does not work for root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=options, timeout=120_000)
        try:
            yield browser
        finally:
            browser.close()
