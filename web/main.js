// SPDX-License-Identifier: Apache-2.0
// The page: who is signed in, and one or two devices of that user. The token comes by the form or in
// the fragment, which no server and no log ever sees, and lives in this tab's sessionStorage.
import { Device } from "./device.js";

const TOKEN_KEY = "tidings.token";
const count = new URLSearchParams(location.search).get("devices") === "2" ? 2 : 1;
const byId = (id) => document.getElementById(id);
const main = byId("main");
let devices = [];

function takeFragment() {
  const found = /^#token=([\w.-]+)$/.exec(location.hash);
  if (found === null) return;
  sessionStorage.setItem(TOKEN_KEY, found[1]);
  history.replaceState(null, "", location.pathname + location.search);
}

// The message that is linked to here, as chat.getPermalink has it: /archives/C…/p1503435956000247, of a reply with ?thread_ts=….
function takeLink() {
  const found = /^\/archives\/(\w+)\/p(\d{10})(\d{6})$/.exec(location.pathname);
  const threadTs = new URLSearchParams(location.search).get("thread_ts");
  if (location.pathname.startsWith("/archives/")) history.replaceState(null, "", "/app");
  return found && { channel: found[1], ts: `${found[2]}.${found[3]}`, threadTs };
}

function showLogin(complaint) {
  for (const device of devices.splice(0)) device.stop();
  updateTitle();
  byId("leave").hidden = true;
  byId("login").hidden = false;
  byId("login-error").textContent = complaint;
  byId("token").focus();
}

const COMPLAINTS = {
  token_revoked: "This token has been revoked.",
  token_expired: "This token has expired.",
  account_inactive: "This account is inactive.",
  invalid_auth: "This token is not known here.",
};

function refused(error) {
  sessionStorage.removeItem(TOKEN_KEY);
  showLogin(COMPLAINTS[error.code] ?? `This page needs a token of a user: ${error.code.replaceAll("_", " ")}.`);
}

function open() {
  const token = sessionStorage.getItem(TOKEN_KEY);
  if (token === null) return showLogin("");
  byId("login").hidden = true;
  byId("leave").hidden = false;
  devices = Array.from({ length: count }, (_, index) => new Device(token, index, count, updateTitle, refused));
  main.classList.toggle("pair", count === 2);
  main.append(...devices.map((device) => device.element));
  const link = takeLink();
  for (const device of devices) device.start(link);
}

function updateTitle() {
  const { count: badge, isUnread } = devices[0]?.client.badge ?? { count: 0, isUnread: false };
  const title = badge > 0 ? `(${badge}) Tidings` : isUnread ? "• Tidings" : "Tidings";
  if (document.title !== title) document.title = title;
}

async function leave() {
  await devices[0]?.notices.push.stop().catch(() => {});
  sessionStorage.clear();
  showLogin("");
}

function updateTheme() {
  byId("theme").setAttribute("aria-pressed", String(themeIsDark()));
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN_KEY, byId("token").value.trim());
  byId("token").value = "";
  open();
});
byId("leave").addEventListener("click", leave);
byId("theme").addEventListener("click", themeToggle);
byId("devices").textContent = count === 2 ? "One device" : "Two devices";
byId("devices").href = count === 2 ? "/app" : "/app?devices=2";
document.addEventListener("theme", updateTheme);
navigator.serviceWorker?.addEventListener("message", ({ data }) => devices[0]?.follow(data)); // a notification was clicked
addEventListener("hashchange", () => {
  takeFragment();
  location.reload();
});
updateTheme();
takeFragment();
open();
