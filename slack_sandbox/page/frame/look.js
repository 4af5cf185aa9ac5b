// How the page looks: light or dark, as on a phone, and where the tools of the top bar are.

import { h, memory, moveWithArrows, onLeave } from "../dom.js";

const dark = window.matchMedia("(prefers-color-scheme: dark)");

/** The button that changes light and dark; what the system says counts until it is pressed. */
export function watchTheme(button) {
  const apply = () => {
    const wanted = memory.get("theme");
    if (wanted) document.documentElement.dataset.theme = wanted;
    const isDark = wanted ? wanted === "dark" : dark.matches;
    button.setAttribute("aria-pressed", String(isDark));
  };
  button.addEventListener("click", () => {
    memory.set("theme", button.getAttribute("aria-pressed") === "true" ? "light" : "dark");
    apply();
  });
  dark.addEventListener("change", apply);
  window.addEventListener("storage", apply);
  apply();
}

/** The button that shows this page in a frame of a phone's width. Inside of the frame there is no such button. */
export function watchPhone(button, columns) {
  if (window.self !== window.top) {
    button.remove();
    return;
  }
  let frame = null;
  button.addEventListener("click", () => {
    if (frame) {
      window.location.search = frame.contentWindow.location.search;
      return;
    }
    frame = h("iframe", { class: "phone-frame", title: "As on a phone", src: window.location.href, data: { testid: "phone-frame" } });
    columns.replaceChildren(frame);
    document.body.classList.add("as-phone");
    button.setAttribute("aria-pressed", "true");
  });
}

/** In a narrow window the tools stand in a menu of their own. */
export function watchTools(toggle, tools) {
  let stop = null;
  const turn = (open, refocus = false) => {
    stop?.();
    stop = open ? onLeave([tools, toggle], () => turn(false)) : null;
    tools.classList.toggle("open", open);
    toggle.setAttribute("aria-expanded", String(open));
    if (open) tools.querySelector(".tool:not([hidden])").focus();
    else if (refocus) toggle.focus();
  };
  toggle.addEventListener("click", () => turn(stop === null));
  tools.addEventListener("click", (event) => { if (stop && event.target.closest("[aria-controls]")) turn(false); });
  tools.addEventListener("keydown", (event) => {
    if (!stop) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      turn(false, true);
    }
    moveWithArrows([...tools.querySelectorAll(".tool:not([hidden])")], event);
  });
}
