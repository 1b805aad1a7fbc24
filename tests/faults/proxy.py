# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy on loopback that can misbehave on purpose.

Modes hold for every byte that arrives while they are set:
  pass       forwards both directions unchanged
  blackhole  reads and discards both directions; closes nothing
  drop-reply forwards the client's bytes and discards the server's
  cut        closes open connections at once, and new ones as soon as they arrive

Traps watch for one string from the client and fire once:
  trap(needle, "drop-reply")  the bytes go to the server, its answer is discarded, and once the
                              server has answered, the connection is closed: a lost COMMIT reply
  trap(needle, "cut")         the connection is closed before the bytes reach the server
  trap(needle, "late")        the same, but deliver_late() sends the bytes to the server
  trap(needle, "hold")        the bytes go to the server; its answers on this connection wait for let_go()

lose(needle): data from the server that arrives together with that string is discarded, and stored in `lost`, until lose(None).
"""
import select
import socket
import threading
import time

CHUNK = 65536
POLL_S = 0.1
HOLD_POLL_S = 0.002
SEND_TIMEOUT_S = 10


class _Link:
    """One client connection, its server connection and the two threads that copy between them."""

    def __init__(self, proxy, client, server):
        self.proxy = proxy
        self.client = client
        self.server = server
        self.swallow_then_close = False
        self.open = True
        self.tail = b""
        self.held = False
        self.has_answer = False  # that is held
        self.downstream = None

    def start(self):
        self.downstream = threading.Thread(target=self._downstream, daemon=True)
        self.downstream.start()
        threading.Thread(target=self._upstream, daemon=True).start()

    def close(self):
        self.open = False
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
        self.proxy.forget(self)

    def _read(self, end):
        """The bytes read, b"" at the end of the stream, None if nothing arrived in time."""
        try:
            ready, _, _ = select.select([end], [], [], POLL_S)
            return end.recv(CHUNK) if ready else None
        except (OSError, ValueError):  # ValueError: the other thread has closed it
            return b""

    def _pump(self, source, handle):
        while self.open:
            data = self._read(source)
            if data == b"":
                self.close()
            elif data is not None:
                try:
                    handle(data)
                except OSError:
                    self.close()

    def _upstream(self):
        self._pump(self.client, self._from_client)

    def _downstream(self):
        self._pump(self.server, self._from_server)

    def _from_client(self, data):
        action = self.proxy.spring(self.tail + data)
        self.tail = (self.tail + data)[-256:]
        if action == "cut":
            self.close()
            return
        if action == "late":
            self.proxy.late.append((self, self.server, data))
            self.server = socket.socket()  # closed in place of the one that is kept
            self.close()
            return
        if action == "drop-reply":
            self.swallow_then_close = True
        self.held = self.held or action == "hold"
        if self.proxy.mode != "blackhole":
            self.server.sendall(data)

    def let_go(self):
        self.held = self.has_answer = False

    def _from_server(self, data):
        while self.held and self.open:
            self.has_answer = True
            time.sleep(HOLD_POLL_S)
        if self.swallow_then_close:
            self.close()
        elif self.proxy.mode == "pass" and not self.proxy.loses(data):
            self.client.sendall(data)


class Proxy:
    def __init__(self, target_host, target_port):
        self.target = (target_host, target_port)
        self.mode = "pass"
        self.sprung = 0
        self.late = []
        self._traps = {}
        self._needle = None
        self.lost = b""
        self._links = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.settimeout(POLL_S)
        self.port = self._listener.getsockname()[1]
        self._running = True
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()

    def of(self, url):
        """The URL of the same server through the proxy."""
        return url.replace(f":{self.target[1]}/", f":{self.port}/")

    def stop(self):
        self._running = False
        self._thread.join()
        self._listener.close()
        self._close_links()

    def set_mode(self, mode):
        assert mode in ("pass", "blackhole", "drop-reply", "cut"), mode
        self.mode = mode
        if mode == "cut":
            self._close_links()

    def trap(self, needle, action):
        assert action in ("drop-reply", "cut", "late", "hold"), action
        with self._lock:
            self._traps[needle.encode()] = action

    def lose(self, needle):
        self.lost = b""
        self._needle = needle.encode() if needle else None

    def loses(self, data):
        needle = self._needle
        if needle is None or needle not in data:
            return False
        self.lost += data
        return True

    def spring(self, data):
        """The action of a trap that this data sets off, or None."""
        with self._lock:
            for needle, action in self._traps.items():
                if needle in data:
                    del self._traps[needle]
                    self.sprung += 1
                    return action
        return None

    def holds(self):
        """Whether a held answer has arrived."""
        with self._lock:
            return any(link.has_answer for link in self._links)

    def let_go(self):
        with self._lock:
            links = list(self._links)
        for link in links:
            link.let_go()

    def deliver_late(self):
        """Gives servers the bytes that were kept back, and waits until each has answered."""
        for link, server, data in self.late:
            link.downstream.join()  # which must not take the answer
            with server:
                server.sendall(data)
                server.recv(CHUNK)
        self.late = []

    def forget(self, link):
        with self._lock:
            self._links.discard(link)

    def _close_links(self):
        with self._lock:
            links = list(self._links)
        for link in links:
            link.close()

    def _accept(self):
        while self._running:
            try:
                client, _ = self._listener.accept()
            except socket.timeout:
                continue
            self._connect(client)

    def _connect(self, client):
        if self.mode == "cut":
            client.close()
            return
        try:
            server = socket.create_connection(self.target, timeout=2)
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.settimeout(SEND_TIMEOUT_S)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = _Link(self, client, server)
        with self._lock:
            self._links.add(link)
        link.start()
