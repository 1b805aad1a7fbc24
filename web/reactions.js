// SPDX-License-Identifier: Apache-2.0
// Reactions to a message, and what is pinned: the buttons below it, and what frames change.
import { el, set } from "./dom.js";

const EMOJI = { "+1": "👍", thumbsup: "👍", heart: "❤️", joy: "😂", tada: "🎉", eyes: "👀", white_check_mark: "✅", rocket: "🚀", pray: "🙏" };
const OFFERED = ["+1", "heart", "joy", "tada", "eyes", "white_check_mark"];
const USERS_MAX = 50; // that the service names

// The reactions of a message after a frame, whose count is absolute: applied twice it changes nothing.
export function reactionsAfter(reactions = [], { type, reaction: name, user, count }) {
  const known = reactions.find((one) => one.name === name);
  const users = (known?.users ?? []).filter((id) => id !== user);
  if (type === "reaction_added") users.push(user);
  const now = { name, users, count };
  const all = known ? reactions.map((one) => (one === known ? now : one)) : [...reactions, now];
  return all.filter((one) => one.count > 0);
}

function shownAs(name) {
  return EMOJI[name] ?? `:${name}:`;
}

function namesOf({ users, count }, names) {
  const shown = users.slice(0, USERS_MAX).map((id) => names.user(id));
  return count > shown.length ? `${shown.join(", ")} and ${count - shown.length} more` : shown.join(", ");
}

// A button for each reaction; onReact(name) adds the reader's own or removes it.
export function reactionButtons(message, names, me, onReact) {
  return (message.reactions ?? []).map((one) => {
    const isOwn = one.users.includes(me);
    return el("button", { class: "reaction", "data-name": one.name, type: "button", "aria-pressed": String(isOwn), title: namesOf(one, names),
      "aria-label": `${one.name}, ${one.count}`, onclick: () => onReact(one.name) },
      el("span", { "aria-hidden": "true" }, shownAs(one.name)), ` ${one.count}`);
  });
}

// Some emoji to choose from, which `button` opens. Its `onChoose(name)` is set by whoever made it.
export function palette(button) {
  const choice = el("div", { class: "palette", role: "group", "aria-label": "Emoji", hidden: true });
  const open = (isOpen) => {
    choice.hidden = !isOpen;
    set(button, "aria-expanded", String(isOpen));
  };
  const close = () => {
    open(false);
    button.focus();
  };
  const choose = (name) => {
    close();
    choice.onChoose(name);
  };
  button.addEventListener("click", () => open(choice.hidden));
  choice.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
  });
  choice.append(...OFFERED.map((name) => el("button", { type: "button", "aria-label": name, onclick: () => choose(name) }, EMOJI[name])));
  return choice;
}
