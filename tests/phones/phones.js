// SPDX-License-Identifier: Apache-2.0
// Draws each phone of a user as it would look: what pushes put on its lock screen, and the badge of the last one.
// A push replaces the one with its collapse id; a silent one with a ts withdraws it, if it is of that message or an earlier one. A badge of 0
// clears the screen, as it does on an iPhone.
const AGAIN_MS = 1000;
const SHOWN_MAX = 20;

const at = (id) => document.getElementById(id);
const state = {devices: [], pushes: []};

function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
}

function time(ms) {
    return new Date(ms).toLocaleTimeString();
}

function replaces(push, shown) {
    const isSame = Boolean(push.collapse_id) && push.collapse_id === shown.collapse_id;
    return isSame && (!push.silent || (Boolean(push.ts) && shown.ts <= push.ts));
}

// What a device shows after all its pushes, oldest first.
function screenOf(device) {
    const screen = {badge: 0, shown: [], last: null};
    for (const push of state.pushes.filter((one) => one.device === device.device_id)) {
        screen.last = push;
        screen.badge = push.badge ?? screen.badge;
        if (screen.badge === 0) screen.shown = [];
        screen.shown = screen.shown.filter((one) => !replaces(push, one));
        if (!push.silent) screen.shown.unshift(push);
    }
    return screen;
}

function noticeOf(push) {
    const notice = element('li', 'notice');
    const head = element('div', 'head');
    head.append(element('strong', '', push.title), element('time', '', time(push.received_ms)));
    notice.append(head);
    if (push.subtitle) notice.append(element('div', 'subtitle', push.subtitle));
    if (push.body) notice.append(element('div', 'body', push.body));
    return notice;
}

function iconOf(badge) {
    const icon = element('div', 'icon', 'T');
    icon.setAttribute('role', 'img');
    icon.setAttribute('aria-label', `badge ${badge}`);
    if (badge > 0) icon.append(element('span', 'badge', badge));
    return icon;
}

function phoneOf(device) {
    const {badge, shown, last} = screenOf(device);
    const phone = element('section', 'phone');
    phone.dataset.device = device.device_id;
    phone.dataset.badge = badge;
    const list = element('ul', 'notices');
    list.append(...shown.slice(0, SHOWN_MAX).map(noticeOf));
    const name = element('h2', '', device.device_id);
    name.append(' ', element('small', '', device.platform));
    phone.append(name, list, iconOf(badge));
    if (last) phone.append(element('footer', '', `last push ${time(last.received_ms)}${last.silent ? ', silent' : ''}`));
    return phone;
}

function draw() {
    const users = [...new Set(state.devices.map((device) => device.user))];
    const chosen = users.includes(location.hash.slice(1)) ? location.hash.slice(1) : (users[1] ?? users[0]);
    at('users').replaceChildren(...users.map((user) => {
        const link = element('a', '', user);
        link.href = `#${user}`;
        if (user === chosen) link.setAttribute('aria-current', 'page');
        return link;
    }));
    at('phones').replaceChildren(...state.devices.filter((device) => device.user === chosen).map(phoneOf));
}

function keep({app, devices, first, pushes}) {
    state.devices = devices;
    state.pushes = [...state.pushes.slice(0, first), ...pushes];
    at('away').hidden = true;
    at('app').hidden = !app;
    if (app) at('app').href = app;
    draw();
}

async function follow() {
    for (let query = ''; ; query = `?after=${state.pushes.length}`) {
        try {
            const reply = await fetch(`/pushes${query}`);
            if (!reply.ok) throw new Error(reply.status);
            keep(await reply.json());
        } catch {
            at('away').hidden = false;
            await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
        }
    }
}

addEventListener('hashchange', draw);
follow();
