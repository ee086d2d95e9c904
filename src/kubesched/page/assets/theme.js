// Light and dark: as the browser prefers, or as the reader chose.

import { html, useEffect, useState } from "./dom.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const CHANGED = "themechange";

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : dark.matches;
}

/** Whether the page is dark now; draws again when that changes. */
export function useDark() {
  const [now, set] = useState(isDark());
  useEffect(() => {
    const update = () => set(isDark());
    dark.addEventListener("change", update);
    addEventListener(CHANGED, update);
    return () => {
      dark.removeEventListener("change", update);
      removeEventListener(CHANGED, update);
    };
  }, []);
  return now;
}

/** The value of a custom property of the style sheet, such as "--text". */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function ThemeButton() {
  const now = useDark();
  const toggle = () => {
    document.documentElement.dataset.theme = now ? "light" : "dark";
    dispatchEvent(new Event(CHANGED));
  };
  return html`<button type="button" class="theme" onClick=${toggle}>
    ${now ? "Light" : "Dark"} colours
  </button>`;
}
