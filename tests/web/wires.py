# SPDX-License-Identifier: Apache-2.0
"""A page's connection to the service, which a test can cut, delay and record; and the visibility of the page's tab."""

from tests.support.wait import wait_until

SCRIPT = """
window.wires = {
  sockets: [], heard: [], called: [], gates: new Map(), beats: [], pauses: 0, skipped: 0, isHidden: false,
  hold(method) { const gate = {}; gate.opened = new Promise((open) => (gate.open = open)); this.gates.set(method, gate); },
  release(method) { this.gates.get(method).open(); this.gates.delete(method); },
  hide(isHidden) { this.isHidden = isHidden; document.dispatchEvent(new Event("visibilitychange")); },
};
window.WebSocket = class extends WebSocket {
  constructor(url) {
    super(url);
    wires.sockets.push(this);
    this.addEventListener("message", ({ data }) => wires.heard.push(data));
  }
};
const call = window.fetch;
window.fetch = async (url, options) => {
  const method = url.split("/").at(-1);
  wires.called.push(method);
  const reply = await call(url, options);
  const gate = wires.gates.get(method);
  if (gate) {
    gate.isReached = true;
    await gate.opened;
  }
  return reply;
};
const later = window.setTimeout;
window.setTimeout = (work, ms) => later(() => { work(); wires.pauses += ms === 400; }, ms);
const every = window.setInterval;
window.setInterval = (work, ms) => (ms === 15000 ? wires.beats.push(work) : every(work, ms));
const now = Date.now;
Date.now = () => now() + wires.skipped;
Object.defineProperty(document, "hidden", { get: () => wires.isHidden });
Object.defineProperty(document, "visibilityState", { get: () => (wires.isHidden ? "hidden" : "visible") });
const frame = window.requestAnimationFrame;
window.requestAnimationFrame = (draw) => (wires.isHidden ? 0 : frame(draw));
"""


class Wires:
    """The connections of a page that was opened with SCRIPT."""

    def __init__(self, page):
        self._page = page

    def cut(self):
        """Ends the socket."""
        self._page.evaluate("wires.sockets.at(-1).close()")

    def hold(self, method):
        """From now on, the page does not receive the service's replies to calls of `method`."""
        self._page.evaluate("method => wires.hold(method)", method)

    def wait_held(self, method):
        """Waits until the service has answered such a call."""
        wait_until(lambda: self._page.evaluate("method => wires.gates.get(method).isReached", method), what=f"a call of {method}")

    def release(self, method):
        self._page.evaluate("method => wires.release(method)", method)

    def wait_heard(self, words, times=1):
        """Waits until this many frames that contain `words` arrived on sockets, and the page has processed them."""
        count = "words => wires.heard.filter((data) => data.includes(words)).length"
        wait_until(lambda: self._page.evaluate(count, words) >= times, what=f"{times} times {words!r}")

    def calls(self, method):
        """The number of the page's calls of `method`."""
        return self._page.evaluate("method => wires.called.filter((one) => one === method).length", method)

    def wait_looked(self, act):
        """Waits until the page, after `act`, has checked for messages to mark."""
        before = self._page.evaluate("wires.pauses")
        act()
        wait_until(lambda: self._page.evaluate("wires.pauses") > before, what="a look at what is to be marked")

    def deafen(self):
        """From now on, everything the page sends over its socket is lost."""
        self._page.evaluate("wires.sockets.at(-1).send = () => {}")

    def beat(self, later_ms=0):
        """Runs the page's periodic work, after a time without events."""
        self._page.evaluate("ms => { wires.skipped += ms; for (const work of wires.beats) work(); }", later_ms)

    def hide(self, is_hidden=True):
        """The tab goes to the background, where nothing is drawn."""
        self._page.evaluate("isHidden => wires.hide(isHidden)", is_hidden)

    @property
    def sockets(self):
        """The number of sockets so far."""
        return self._page.evaluate("wires.sockets.length")
