# SPDX-License-Identifier: Apache-2.0
"""A load like that of users at work: 500 posts/s, each checked at the sockets of its channel's 20 members (1,000 sockets in all), and 500
channels.info/s. Other loads are judged by their effect on it."""
from concurrent.futures import ThreadPoolExecutor

RATE = 500
KINDS = ("post", "frame", "info")


def latencies_of(run, prefix):
    return {name: run[f"{prefix}{name}"] for name in ("p50_ms", "p99_ms", "max_ms")}


def run_honest(bench, seconds):
    """Latencies of each kind, and `wrong`: how many were refused, or frames that were lost or came twice."""
    with ThreadPoolExecutor(2) as pool:
        posts = pool.submit(bench.rig.load, "delivery", rate=RATE, seconds=seconds, warm_ms=500)
        infos = pool.submit(bench.rig.load, "info", rate=RATE, seconds=seconds, warm_ms=500)
        posts, infos = posts.result(), infos.result()
    return {"post": latencies_of(posts, "ack_"), "frame": latencies_of(posts, ""),
            "info": latencies_of(infos, ""),
            "wrong": sum(posts[name] for name in ("refused", "lost", "doubled", "closed"))}
