// SPDX-License-Identifier: Apache-2.0
// Message text as it travels (Slack's form: & < > escaped, <@U…> a mention, <https://…|label> a link,
// `code`, *bold*, _italic_, ~struck~, > quoted) to nodes and back.
import { el } from "./dom.js";

const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">" };
// The pieces of a text that are not plain; a line after a block of code or a quote begins by itself.
const PIECE = new RegExp(
  [
    "```(?<block>[^]+?)```\\n?",
    "`(?<code>[^`\\n]+)`",
    "<(?<inner>[^<>\\n]+)>",
    "\\b(?<url>https?://[^\\s<>`\"']*[^\\s<>`\"'.,;:!?)*_~])",
    "(?<quote>(?:^(?:&gt;|>).*(?:\\n|$))+)",
    "(?<![\\p{L}\\p{N}*_~])(?<mark>[*_~])(?!\\s)(?<marked>(?:(?!\\k<mark>)[^\\n])+)(?<!\\s)\\k<mark>(?![\\p{L}\\p{N}*_~])",
  ].join("|"),
  "gmu",
);
const MARKS = { "*": "strong", _: "em", "~": "s" };
const GROUPS = new Set(["channel", "here", "everyone", "group"]);

export function unescapeText(text) {
  return text.replace(/&(?:amp|lt|gt);/g, (entity) => ENTITIES[entity]);
}

export function escapeText(text) {
  return text.replace(/[&<>]/g, (character) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[character]);
}

// Nodes that show `text`. `names` gives names of users and channels and says who "me" is.
export function textNodes(text, names) {
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(PIECE)) {
    nodes.push(unescapeText(text.slice(end, found.index)));
    nodes.push(piece(found, names));
    end = found.index + found[0].length;
  }
  nodes.push(unescapeText(text.slice(end)));
  return nodes.filter((node) => node !== "");
}

// The same as plain text: for the live region and previews.
export function plainText(text, names) {
  return textNodes(text, names)
    .map((node) => (typeof node === "string" ? node : node.className === "block" ? `${node.textContent}\n` : node.textContent))
    .join("");
}

// What a message says: its text, or when it has none that of its blocks and attachments.
export function messageText({ text, blocks, attachments }) {
  return text || textsOf([blocks, attachments].flat()).join("\n");
}

function textsOf(part) {
  if (Array.isArray(part)) return part.flatMap(textsOf);
  if (part === null || typeof part !== "object") return [];
  const own = [part.pretext, part.title, part.text ?? part.fallback ?? part.alt_text];
  return [...own.filter((text) => typeof text === "string"), ...[part.text, part.fields, part.elements].flatMap(textsOf)];
}

// Bots may choose a name for a message.
export function authorOf(message, names) {
  return message.username || names.user(message.user);
}

export function repliesText({ reply_count: count = 0 }) {
  return `${count} ${count === 1 ? "reply" : "replies"}`;
}

function piece({ 0: whole, groups: { block, code, inner, url, quote, mark, marked } }, names) {
  if (block !== undefined) return el("code", { class: "block" }, unescapeText(block.replace(/^\n|\n$/g, "")));
  if (code !== undefined) return el("code", {}, unescapeText(code));
  if (url !== undefined) return link(url, url);
  if (quote !== undefined) {
    return el("blockquote", { class: "block" }, textNodes(quote.replace(/^(?:(?:&gt;|>) ?)+/gm, "").replace(/\n$/, ""), names));
  }
  if (mark !== undefined) return el(MARKS[mark], {}, textNodes(marked, names));
  return reference(inner, names) ?? unescapeText(whole);
}

// What stands between < and >; undefined when it is nothing known, and so is text.
function reference(inner, names) {
  const [target, label] = inner.split("|", 2);
  if (/^@[UW][A-Z0-9]+$/.test(target)) {
    const id = target.slice(1);
    return mention("@" + names.user(id), id === names.me);
  }
  if (target.startsWith("!") && GROUPS.has(target.slice(1))) return mention("@" + target.slice(1), true);
  if (/^#[CG][A-Z0-9]+$/.test(target)) return mention("#" + (names.channel(target.slice(1)) ?? label ?? "channel"), false);
  if (/^(https?:\/\/|mailto:)/.test(target)) return link(target, label || target);
  if (target.startsWith("!date^") && label) return el("span", {}, unescapeText(label));
  return undefined;
}

function mention(text, isMe) {
  return el("span", { class: isMe ? "mention me" : "mention", dir: "auto" }, text);
}

// A label may say anything, so where it leads is told too. A message of this service opens here: another tab would not be signed in.
function link(target, label) {
  const href = unescapeText(target);
  const isElsewhere = !href.startsWith(`${location.origin}/archives/`);
  const title = label !== target && href;
  return el("a", { href, title, target: isElsewhere && "_blank", rel: isElsewhere && "noopener noreferrer" }, unescapeText(label));
}

// What a person typed, as it travels: @name and @here become mentions.
export function composeText(typed, userByName) {
  return escapeText(typed).replace(/(^|[\s(])@([\p{L}\p{N}._-]*[\p{L}\p{N}])/gu, (whole, before, name) => {
    if (GROUPS.has(name)) return `${before}<!${name}>`;
    const id = userByName(name);
    return id === undefined ? whole : `${before}<@${id}>`;
  });
}
