// SPDX-License-Identifier: Apache-2.0
// Shows what Web Push brings while no page is open: one notification a conversation, the newest, and the badge. A push without an alert says
// what the badge is now, and which message is not to be shown any more.

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

// Without a sound it replaces what is shown, silently. What is shown anew makes itself heard, also in the place of an earlier one.
async function notify({ aps, tidings }) {
  if (aps.alert === undefined) return withdraw(aps, tidings);
  const { title, subtitle, body } = aps.alert;
  const text = [subtitle, body].filter(Boolean).join("\n");
  const silent = aps.sound === undefined;
  await registration.showNotification(title, { body: text, tag: tagOf(tidings), data: tidings, icon: "/app/icon.svg", silent, renotify: !silent });
}

// A thread's notification stands beside its channel's. What sums up is of no channel.
function tagOf({ channel, thread_ts: threadTs }) {
  return [channel ?? "summary", threadTs].filter(Boolean).join(".");
}

// That of the message, or of an earlier one in its place. Without a message, a badge of 0 clears all.
async function withdraw(aps, tidings) {
  const isGone = tidings.ts === undefined ? () => aps.badge === 0 : ({ tag, data }) => tag === tagOf(tidings) && data.ts <= tidings.ts;
  (await registration.getNotifications()).filter(isGone).forEach((shown) => shown.close());
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
