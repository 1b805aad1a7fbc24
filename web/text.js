// SPDX-License-Identifier: Apache-2.0
// Message text as it travels (Slack's form: & < > escaped, <@U…> a mention, <https://…|label> a link,
// `code`) to nodes and back.
import { el } from "./dom.js";

const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">" };
const PIECE = /```([^]+?)```|`([^`\n]+)`|<([^<>\n]+)>|\bhttps?:\/\/[^\s<>`"']+/g;
const GROUPS = new Set(["channel", "here", "everyone"]);

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
    .map((node) => (typeof node === "string" ? node : node.textContent))
    .join("");
}

function piece([whole, block, code, inner], names) {
  if (block !== undefined) return el("code", { class: "block" }, unescapeText(block.replace(/^\n|\n$/g, "")));
  if (code !== undefined) return el("code", {}, unescapeText(code));
  if (inner === undefined) return link(whole, whole);
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
  return undefined;
}

function mention(text, isMe) {
  return el("span", { class: isMe ? "mention me" : "mention", dir: "auto" }, text);
}

function link(target, label) {
  return el("a", { href: unescapeText(target), target: "_blank", rel: "noopener noreferrer" }, unescapeText(label));
}

// What a person typed, as it travels: @name and @here become mentions.
export function composeText(typed, userByName) {
  return escapeText(typed).replace(/(^|[\s(])@([\p{L}\p{N}._-]*[\p{L}\p{N}])/gu, (whole, before, name) => {
    if (GROUPS.has(name)) return `${before}<!${name}>`;
    const id = userByName(name);
    return id === undefined ? whole : `${before}<@${id}>`;
  });
}
