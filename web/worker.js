// SPDX-License-Identifier: Apache-2.0
// Shows what Web Push brings while no page is open: one notification a channel, the newest, and the badge. A push without an alert says
// what the badge is now, and of which channel what was shown has been read.

addEventListener("install", () => skipWaiting());

addEventListener("push", (event) => event.waitUntil(show(event.data.json())));

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data));
});

// A badge that the browser refuses keeps nothing from being shown.
async function show(push) {
  await notify(push);
  if (push.aps.badge !== undefined) await setBadge(push.aps.badge);
}

async function notify({ aps, tidings }) {
  if (aps.alert === undefined) return withdraw(aps.badge === 0 ? undefined : tidings.channel ?? "none");
  const { title, subtitle, body } = aps.alert;
  const text = [subtitle, body].filter(Boolean).join("\n");
  await registration.showNotification(title, { body: text, tag: aps["thread-id"] ?? "summary", data: tidings, icon: "/app/icon.svg" });
}

// Of that channel; undefined: all.
async function withdraw(channel) {
  for (const shown of await registration.getNotifications({ tag: channel })) shown.close();
}

// Not every browser has one.
async function setBadge(count) {
  await (count > 0 ? navigator.setAppBadge?.(count) : navigator.clearAppBadge?.());
}

// In a page that is open, if there is one: it knows who is signed in. What sums up is of no channel.
async function open({ channel, ts, thread_ts: threadTs }) {
  const [page] = await clients.matchAll({ type: "window", includeUncontrolled: true });
  if (page === undefined) return clients.openWindow(channel === undefined ? "/app" : linkOf(channel, ts, threadTs));
  await page.focus();
  if (channel !== undefined) page.postMessage({ channel, ts, threadTs: threadTs ?? null });
}

function linkOf(channel, ts, threadTs) {
  return `/archives/${channel}/p${ts.replace(".", "")}${threadTs ? `?thread_ts=${threadTs}` : ""}`;
}
