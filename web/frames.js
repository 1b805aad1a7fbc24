// SPDX-License-Identifier: Apache-2.0
// What each frame of the socket, or event of channels.events, does to a device's state. Applying one
// twice changes nothing.

import { reactionsAfter } from "./reactions.js";

const UNCOUNTED = /^(channel|group|mpim|im)_/;

export function applyFrame(client, frame) {
  const handler = handlers[frame.type] ?? (frame.seq === undefined ? undefined : changedChannel);
  handler?.(client, frame);
  const channel = client.channels.get(frame.channel?.id ?? frame.channel);
  if (channel && frame.seq > channel.seq) channel.seq = frame.seq;
  channel?.timeline?.heard(frame.seq);
}

const handlers = {
  message,
  channel_marked: marked,
  group_marked: marked,
  im_marked: marked,
  mpim_marked: marked,
  unread_changed: marked,
  thread_marked: threadMarked,
  thread_subscribed: threadMarked,
  thread_unsubscribed: threadMarked,
  reaction_added: reacted,
  reaction_removed: reacted,
  pin_added: pinned,
  pin_removed: pinned,
  user_typing: (client, frame) => client.isTyping(frame.channel, frame.user),
  gap: changedChannel,
  channel_joined: changedChannel,
  group_joined: changedChannel,
  mpim_joined: changedChannel,
  im_created: changedChannel,
  im_open: changedChannel,
  channel_left: changedChannel,
  group_left: changedChannel,
  mpim_close: changedChannel,
  im_close: changedChannel,
};

function changedChannel(client) {
  client.syncSoon();
}

function message(client, frame) {
  const channel = client.channels.get(frame.channel);
  if (channel === undefined) client.syncSoon();
  else if (frame.subtype === "message_changed") changed(client, channel, frame);
  else if (frame.subtype === "message_deleted") deleted(client, channel, frame);
  else if (frame.subtype !== "tombstone") posted(client, channel, frame);
}

function isReply(message) {
  return message.thread_ts !== undefined && message.thread_ts !== message.ts;
}

function posted(client, channel, frame) {
  const isNew = countMessage(client, channel, frame);
  client.outbox.heard(frame);
  client.stoppedTyping(channel.id, frame.user);
  if (!isReply(frame) || frame.subtype === "thread_broadcast") {
    if (channel.timeline?.isLoaded) channel.timeline.add([frame]);
    if (channel !== client.open || client.views.room.isAtEnd) channel.timeline?.trim();
  }
  if (isReply(frame)) replied(client, channel, frame, isNew);
  const isSeen = isNew && channel === client.open && !isReply(frame);
  if (isSeen && frame.user !== client.me.id) client.onNews(frame);
  if (channel === client.open) client.markSoon();
}

// Whether a message is new here. Counts it when it counts for this user.
function countMessage(client, channel, frame) {
  if (frame.seq <= channel.seq) return false;
  const counts = !UNCOUNTED.test(frame.subtype ?? "") && (!isReply(frame) || frame.subtype === "thread_broadcast");
  if (counts && frame.user !== client.me.id) {
    const text = frame.text ?? "";
    const isMention = new RegExp(`<(@${client.me.id}|!(channel|here|everyone|group))[>|]`).test(text);
    const isFull = channel.count(frame.seq, frame.ts, isMention);
    // Mentions may stand in blocks, or be meant for those who are present: the service knows.
    if (isFull || isMention || frame.blocks) client.syncSoon();
  }
  return true;
}

function replied(client, channel, frame, isNew) {
  const adopt = (root) =>
    (root.latest_reply ?? "") < frame.ts ? { reply_count: (root.reply_count ?? 0) + 1, latest_reply: frame.ts } : {};
  channel.timeline?.change(frame.thread_ts, adopt);
  const thread = client.thread;
  if (thread?.channel === channel && thread.ts === frame.thread_ts) {
    thread.timeline.change(frame.thread_ts, adopt);
    thread.timeline.add([frame]);
    if (isNew && frame.user !== client.me.id) client.onNews(frame);
    client.markSoon();
  }
  client.syncSoon();
}

function timelinesOf(client, channel) {
  const thread = client.thread?.channel === channel ? client.thread.timeline : null;
  return [channel.timeline, thread].filter((timeline) => timeline !== null);
}

function changed(client, channel, frame) {
  for (const timeline of timelinesOf(client, channel)) {
    timeline.change(frame.message.ts, () => frame.message);
  }
  if (frame.message.subtype === "thread_broadcast") shown(channel.timeline, frame.message);
}

// A reply that its channel shows from now on; one of before what is loaded comes with that.
function shown(timeline, message) {
  const oldest = timeline?.sorted[0]?.ts ?? "";
  if (timeline?.isLoaded && (!timeline.hasMore || message.ts > oldest)) timeline.add([message]);
}

function deleted(client, channel, frame) {
  const gone = frame.previous_message ?? client.thread?.timeline.byTs.get(frame.deleted_ts);
  channel.forget(frame.deleted_ts);
  for (const timeline of timelinesOf(client, channel)) {
    const isKnown = frame.seq > channel.seq && gone && isReply(gone);
    if (isKnown) timeline.change(gone.thread_ts, (root) => ({ reply_count: Math.max(0, (root.reply_count ?? 1) - 1) }));
    timeline.remove(frame.deleted_ts);
  }
  if (gone && isReply(gone)) client.syncSoon();
}

function noted(client, { item }, changes) {
  const channel = client.channels.get(item.channel);
  if (channel === undefined) return;
  for (const timeline of timelinesOf(client, channel)) timeline.change(item.ts ?? item.message?.ts, changes);
}

function reacted(client, frame) {
  noted(client, frame, (message) => ({ reactions: reactionsAfter(message.reactions, frame) }));
}

function pinned(client, frame) {
  noted(client, frame, () => ({ pinned_to: frame.type === "pin_added" ? [frame.item.channel] : undefined }));
}

function marked(client, frame) {
  const channel = client.channels.get(frame.channel);
  if (channel === undefined) client.syncSoon();
  else client.marked(channel, frame);
}

function threadMarked(client, frame) {
  const thread = client.thread;
  if (thread?.channel.id === frame.channel && thread.ts === frame.thread_ts) {
    thread.subscribed = frame.subscribed;
    if (frame.last_read > thread.lastRead) thread.lastRead = frame.last_read;
  }
  client.syncSoon();
}
