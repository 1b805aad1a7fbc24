# SPDX-License-Identifier: Apache-2.0
"""Counting in web/channel.js: correct for any order and repetition of replies and frames."""

import pytest

ALL_ORDERS = """async () => {
  const { Channel } = await import("/app/channel.js");
  const ts = (seq) => `000000000${seq}.000000`;
  const read = (lastRead, unread) =>
    ({ last_read: ts(lastRead), read_epoch: 0, is_muted: false, mention_count: 0, has_unreads: unread > 0, unread_count: unread });
  const wrong = [];
  const run = (steps, expected) => {
    const channel = new Channel("C1");
    channel.synced({ ...read(0, 0), seq: 0, is_private: false });
    for (const [, step] of steps) step(channel);
    if (channel.unread !== expected) wrong.push(`${steps.map(([name]) => name)}: ${channel.unread}, not ${expected}`);
  };
  const frames = [1, 2, 3, 4].map((seq) => [seq, (channel) => channel.count(seq, ts(seq), false)]);
  const doubled = frames.flatMap((frame) => [frame, frame]);
  for (const heard of [frames, doubled]) {
    for (let at = 0; at <= heard.length; at++) {
      for (let through = 0; through <= 4; through++) {
        const sync = [`sync ${through}`, (channel) => channel.synced({ ...read(0, through), seq: through, is_private: false })];
        run(heard.toSpliced(at, 0, sync), 4);
      }
      const mark = ["mark 2", (channel) => channel.marked(read(2, 0))];
      const older = ["mark 1", (channel) => channel.marked(read(1, 1))];
      run(heard.toSpliced(at, 0, mark), 2);
      run(heard.toSpliced(at, 0, mark, older), 2);
    }
  }
  return wrong;
}"""

# Each guard, and the code without it: the test above must find that.
GUARDS = [("one.seq > this.said.seq && ", ""), (" && one.ts > this.lastRead", ""), ("if (isOld) return false;", ""),
          ("if (this.heard.some((one) => one.seq === seq)) return false;", "")]


def test_every_order(workspace, screens):
    assert screens(workspace.user()).page.evaluate(ALL_ORDERS) == []


@pytest.mark.parametrize("guard", GUARDS, ids=range(len(GUARDS)))
def test_each_guard_is_needed(environment, browser, guard):
    page = browser.new_page()
    source = environment.client().page("/app/channel.js").text
    assert guard[0] in source
    page.route("**/channel.js", lambda route: route.fulfill(body=source.replace(*guard), content_type="text/javascript"))
    page.goto(f"{environment.urls[0]}/app")
    assert page.evaluate(ALL_ORDERS) != []
    page.close()


def test_long_timelines_are_trimmed(workspace, screens):
    """At 400 all messages stay; at one more only the newest 200 stay, and the others can be read again."""
    kept = screens(workspace.user()).page.evaluate("""async () => {
      const { Timeline } = await import("/app/channel.js");
      const timeline = new Timeline();
      const trimmed = (count) => {
        timeline.add(Array.from({ length: count }, (_, at) => ({ ts: String(1000 + at) })));
        timeline.trim();
        return [timeline.sorted.length, timeline.byTs.size, timeline.newest.ts, timeline.hasMore];
      };
      return [trimmed(400), trimmed(401)];
    }""")
    assert kept == [[400, 400, "1399", False], [200, 200, "1400", True]]
