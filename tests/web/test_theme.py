# SPDX-License-Identifier: Apache-2.0
"""Dark and light: which holds, and that all of it can be read."""

import pytest
from playwright.sync_api import expect

from tests.support.workspace import fresh_name

# The least contrast of any text that is seen, with its text: WCAG's formula, over the nearest opaque ground.
LEAST_CONTRAST = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const mix = (over, under, alpha) => over.slice(0, 3).map((c, i) => c * alpha + under[i] * (1 - alpha));
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      if (color[3] > 250) return color;
    }
    return [255, 255, 255];
  };
  const opacity = (element) => {
    let product = 1;
    for (let at = element; at; at = at.parentElement) product *= Number(getComputedStyle(at).opacity);
    return product;
  };
  let least = [99, ""];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility({ visibilityProperty: true })) continue;
    if (element.closest("button:disabled, .unseen")) continue;
    const under = ground(element);
    const text = mix(rgba(getComputedStyle(element).color), under, opacity(element));
    const [one, other] = [light(text), light(under)].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < least[0]) least = [ratio, walker.currentNode.data];
  }
  return least;
}"""


def ground_of(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_the_systems_theme_and_the_toggle(workspace, screens):
    ann = workspace.user("ann")
    light = ground_of(screens(ann, color_scheme="light").page)
    page = screens(ann, color_scheme="dark").page
    dark = ground_of(page)
    assert light != dark
    toggle = page.get_by_role("button", name="Dark")
    expect(toggle).to_have_attribute("aria-pressed", "true")
    toggle.click()
    expect(toggle).to_have_attribute("aria-pressed", "false")
    assert ground_of(page) == light
    page.reload()
    expect(toggle).to_have_attribute("aria-pressed", "false")
    assert ground_of(page) == light, "the choice stays"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(workspace, screens, scheme):
    ann, bob = workspace.users(2)
    name, quiet, loud = fresh_name("room"), fresh_name("quiet"), fresh_name("loud")
    channel = workspace.channel(ann, bob, name=name)
    muted = workspace.channel(ann, bob, name=quiet)
    bob.ok("channels.setNotifications", channel=muted, muted=True)
    root = ann.post(channel, f"see <https://a.example|this>, <@{bob.id}> and <@{ann.id}>: `code`")
    ts = ann.post(channel, "reply", thread_ts=root)
    assert ts
    mentioning = workspace.channel(ann, bob, name=loud)
    screen = screens(bob, color_scheme=scheme)
    device = screen.devices[0]
    device.open(name)
    for text in (f"<@{bob.id}>", "again"):
        ann.post(mentioning, text)
    device.expect_badge(loud, ", 2 unread, 1 mention")
    device.expect_badge(quiet, ", muted")
    expect(device.root.get_by_role("button", name="1 reply")).to_be_visible()
    ratio, text = screen.page.evaluate(LEAST_CONTRAST)
    assert ratio >= 4.5, text
