// SPDX-License-Identifier: Apache-2.0
// The one place where elements are made. Text only ever becomes text nodes: what peers wrote is never
// parsed as HTML (and the page's policy forbids it).

// el("button", { class: "plain", onclick: f, "aria-pressed": true }, "Mute"): an attribute that is
// false, null or undefined is left out; children are nodes, texts, or lists of them.
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else set(element, key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// Sets or removes an attribute; does nothing when it is right, so that screen readers hear no change.
export function set(element, key, value) {
  if (value === false || value === null || value === undefined) {
    element.removeAttribute(key);
  } else if (element.getAttribute(key) !== String(value)) {
    element.setAttribute(key, String(value));
  }
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const SVG = "http://www.w3.org/2000/svg";

// A drawing of one path in a square of 24: icons take their colour from the text.
export function icon(path) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const shape = document.createElementNS(SVG, "path");
  shape.setAttribute("d", path);
  svg.append(shape);
  return svg;
}

// Makes the children of `parent` those of `items`, in order. A row is known by its key: it is made
// once, kept where it is when it stays, and updated only when `same` says that its item changed.
export function reconcile(parent, items, { key, make, update, same = () => false }) {
  const rows = parent.rows ?? (parent.rows = new Map());
  const kept = new Map();
  let place = parent.firstChild;
  for (const item of items) {
    const id = key(item);
    const row = rows.get(id) ?? { element: make(item), item: undefined };
    if (row.item === undefined || !same(row.item, item)) update(row.element, item);
    row.item = item;
    kept.set(id, row);
    if (row.element === place) place = place.nextSibling;
    else parent.insertBefore(row.element, place);
  }
  for (const [id, row] of rows) {
    if (!kept.has(id)) row.element.remove();
  }
  parent.rows = kept;
}
