// SPDX-License-Identifier: Apache-2.0
// Loaded before anything is painted, so that no page flashes in the wrong colours. The choice is kept
// for this browser; without one the system's preference holds.
const THEME_KEY = "tidings.theme";
const darkSystem = matchMedia("(prefers-color-scheme: dark)");

function themeIsDark() {
  const chosen = localStorage.getItem(THEME_KEY);
  return chosen === null ? darkSystem.matches : chosen === "dark";
}

function themeApply() {
  document.documentElement.dataset.theme = themeIsDark() ? "dark" : "light";
  document.dispatchEvent(new Event("theme"));
}

function themeToggle() {
  localStorage.setItem(THEME_KEY, themeIsDark() ? "light" : "dark");
  themeApply();
}

darkSystem.addEventListener("change", themeApply);
themeApply();
