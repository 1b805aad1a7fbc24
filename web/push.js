// SPDX-License-Identifier: Apache-2.0
// Web Push to this browser: a subscription of the browser's push service, registered as a device of the user. worker.js shows what comes.

const WORKER = "/app/worker.js";
const DEVICE_KEY = "tidings.device";
// The page's policy allows a script's address only from here.
const policy = globalThis.trustedTypes?.createPolicy("tidings-worker", { createScriptURL: () => WORKER });

function deviceId() {
  const known = localStorage.getItem(DEVICE_KEY) ?? crypto.randomUUID();
  localStorage.setItem(DEVICE_KEY, known);
  return known;
}

function bytesOf(base64url) {
  const text = atob(base64url.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

// The page itself is outside of the worker's scope, so that navigator.serviceWorker.ready would wait for ever.
function activated(registration) {
  const worker = registration.installing ?? registration.waiting;
  if (registration.active || worker === null) return undefined;
  return new Promise((resolve) => worker.addEventListener("statechange", () => registration.active && resolve()));
}

// The browser's user said no; the message says what to do.
export class NotAllowed extends Error {}

export class BrowserPush {
  constructor(api) {
    this.api = api;
    this.app = undefined; // of this workspace, once it is known; null: there is none
  }

  // Whether this browser can, and the workspace has an app for it.
  async isOffered() {
    if (!("serviceWorker" in navigator && "PushManager" in globalThis && "Notification" in globalThis)) return false;
    if (this.app === undefined) {
      const { apps } = await this.api.call("devices.list");
      this.app = apps.find((app) => app.platform === "webpush") ?? null;
    }
    return this.app !== null;
  }

  async isOn() {
    return (await this.#subscription()) !== null && Notification.permission === "granted";
  }

  // NotAllowed when the browser does not allow it.
  async start() {
    if ((await Notification.requestPermission()) !== "granted") throw new NotAllowed("Allow notifications of this page in your browser first.");
    const registration = await navigator.serviceWorker.register(policy?.createScriptURL(WORKER) ?? WORKER);
    await activated(registration);
    const subscription = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytesOf(this.app.public_key) });
    const { endpoint, keys } = subscription.toJSON();
    const device = { device_id: deviceId(), app: this.app.name, endpoint, p256dh: keys.p256dh, auth: keys.auth };
    await this.api.call("devices.register", { ...device, locale: navigator.language });
  }

  // Also when the user signs out: what comes later is not for who sits here then.
  async stop() {
    const subscription = await this.#subscription();
    if (subscription === null) return;
    await subscription.unsubscribe();
    await this.api.call("devices.unregister", { device_id: deviceId() });
  }

  async #subscription() {
    const registration = await navigator.serviceWorker?.getRegistration("/app/");
    return (await registration?.pushManager.getSubscription()) ?? null;
  }
}
