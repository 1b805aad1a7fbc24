// SPDX-License-Identifier: Apache-2.0
// The dialog about what reaches a user outside of this page: for what, when, with how much of the text, and whether this browser is
// told. All of it is the service's; what another device has changed is read when the dialog opens.
import { el, set } from "./dom.js";
import { BrowserPush, NotAllowed } from "./push.js";

const LEVELS = { all: "Every message", mentions: "Mentions and direct messages", none: "Nothing" };
const BADGES = { mentions: "Mentions and direct messages", all: "All unread messages" };
const PREVIEWS = { full: "Name and text", sender: "Name only", none: "Neither" };
const PAUSES = { 30: "30 minutes", 60: "1 hour", 240: "4 hours", 1440: "1 day" };
const AWAY = "The service did not answer. Please try again.";
const REFUSED = "The service refused this.";
const SAME = "Choose two different times.";

function select(options, attributes = {}) {
  return el("select", attributes, Object.entries(options).map(([value, text]) => el("option", { value }, text)));
}

function field(text, input) {
  return el("label", {}, el("span", {}, text), input);
}

function zoneHere() {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

export class Notices {
  constructor(device) {
    this.client = device.client;
    this.push = new BrowserPush(device.client.api);
    this.level = select(LEVELS);
    this.badge = select(BADGES);
    this.preview = select(PREVIEWS);
    this.quiet = el("input", { type: "checkbox", onchange: () => this.#drawQuiet() });
    this.start = el("input", { type: "time", required: true, "aria-label": "Quiet from", oninput: () => this.#drawQuiet() });
    this.end = el("input", { type: "time", required: true, "aria-label": "Quiet until", oninput: () => this.#drawQuiet() });
    this.zone = el("select");
    this.pause = select({ "": "Not paused", ...PAUSES }, { onchange: () => this.#pauseFor(this.pause.value) });
    this.paused = el("p", { class: "quiet", role: "status" });
    this.resume = el("button", { class: "plain", type: "button", hidden: true, onclick: () => this.#pauseFor("") }, "Go on now");
    this.browser = el("input", { type: "checkbox", onchange: () => this.#toggleBrowser() });
    this.browserField = field("Notify in this browser", this.browser);
    this.browserField.hidden = true;
    this.error = el("p", { class: "error", role: "alert" });
    this.fields = el("fieldset", { disabled: true }, this.#settings(), this.#pauses());
    this.element = el("dialog", { class: "notices", "aria-label": device.nameOf("Notifications") },
      el("form", { onsubmit: (event) => this.#save(event) }, el("h2", {}, "Notifications"), this.fields, this.error, this.#ends()));
  }

  #settings() {
    return [field("Notify me about", this.level), field("Count on the badge", this.badge), field("Show in notifications", this.preview),
      field("Quiet every day", this.quiet), el("div", { class: "times" }, this.start, "to", this.end), field("Time zone", this.zone)];
  }

  #pauses() {
    return [field("Pause for", this.pause), el("div", { class: "times" }, this.paused, this.resume), this.browserField];
  }

  #ends() {
    this.submit = el("button", { class: "primary", type: "submit", disabled: true }, "Save");
    return el("div", { class: "ends" }, el("button", { class: "plain", type: "button", onclick: () => this.element.close() }, "Close"), this.submit);
  }

  // Nothing can be set before it is known what is: what is shown is what is saved.
  async open() {
    this.fields.disabled = this.submit.disabled = true;
    this.element.showModal();
    await this.#try(async () => {
      const [wanted, dnd] = await Promise.all([this.client.readNotices(), this.client.api.call("dnd.info")]);
      this.fields.disabled = this.submit.disabled = false;
      this.#draw(wanted);
      this.#drawPause(dnd);
      await this.#drawBrowser();
    });
  }

  #draw({ level, badge, preview, dnd_start: start, dnd_end: end, tz }) {
    this.level.value = level;
    this.badge.value = badge;
    this.preview.value = preview;
    this.quiet.checked = start !== "";
    this.start.value = start || "22:00";
    this.end.value = end || "07:00";
    const zones = new Set([zoneHere(), tz, "UTC", ...Intl.supportedValuesOf("timeZone")]);
    this.zone.replaceChildren(...[...zones].sort().map((zone) => el("option", { value: zone }, zone.replaceAll("_", " "))));
    this.zone.value = start ? tz : zoneHere();
    this.#drawQuiet();
  }

  #drawQuiet() {
    this.start.disabled = this.end.disabled = this.zone.disabled = !this.quiet.checked;
    this.end.setCustomValidity(this.start.value === this.end.value ? SAME : "");
  }

  #drawPause({ snooze_enabled: isPaused, snooze_endtime: until }) {
    const time = new Intl.DateTimeFormat([], { dateStyle: "short", timeStyle: "short" });
    this.pause.value = "";
    this.paused.textContent = isPaused ? `Paused until ${time.format(until * 1000)}` : "";
    this.resume.hidden = !isPaused;
  }

  async #drawBrowser() {
    this.browserField.hidden = !(await this.push.isOffered());
    this.browser.checked = await this.push.isOn();
  }

  async #toggleBrowser() {
    await this.#try(() => (this.browser.checked ? this.push.start() : this.push.stop()));
    this.browser.checked = await this.push.isOn();
  }

  // The time zone belongs to the quiet hours, and stays as it is without.
  async #save(event) {
    event.preventDefault();
    const quiet = this.quiet.checked ? { dnd_start: this.start.value, dnd_end: this.end.value, tz: this.zone.value } : { dnd_start: "", dnd_end: "" };
    await this.#try(async () => {
      await this.client.setNotices({ level: this.level.value, badge: this.badge.value, preview: this.preview.value, ...quiet });
      this.element.close();
    });
  }

  // For so many minutes; "": no longer. What is shown then is what the service says, also when it had ended by itself.
  async #pauseFor(minutes) {
    await this.#try(async () => {
      if (minutes !== "") await this.client.api.call("dnd.setSnooze", { num_minutes: Number(minutes) });
      else await this.client.api.call("dnd.endSnooze").catch((error) => ignore(error, "snooze_not_active"));
      this.#drawPause(await this.client.api.call("dnd.info"));
    });
  }

  async #try(action) {
    set(this.element, "aria-busy", true);
    this.error.textContent = "";
    try {
      await action();
    } catch (error) {
      this.error.textContent = error instanceof NotAllowed ? error.message : error.isPassing ? AWAY : REFUSED;
    }
    set(this.element, "aria-busy", false);
  }
}

function ignore(error, code) {
  if (error.code !== code) throw error;
}
