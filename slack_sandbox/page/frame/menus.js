// Menus that hang on a button: of a message, of the composer, of reactions.

import { fill, h, moveWithArrows, onLeave } from "../dom.js";

let shut = null;

/**
 * Open a menu at a button, or close the one that is open there.
 *
 * `entries` are {label, note, icon, run, testid}, or {heading}; `look` is a class for the menu.
 */
export function openMenu(anchor, entries, { label, look = "" }) {
  const again = shut?.anchor === anchor;
  shut?.(false);
  if (again) return;
  const root = h("div", { class: `menu popup ${look}`.trim(), role: "menu", "aria-label": label });
  const stop = onLeave([root, anchor], () => close(false));
  const close = (refocus) => {
    stop();
    root.remove();
    anchor.setAttribute("aria-expanded", "false");
    shut = null;
    if (refocus) anchor.focus();
  };
  close.anchor = anchor;
  fill(root, entries.map((item) => (item.heading ? h("p", { class: "menu-title" }, item.heading) : entry(item, close))));
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      event.stopPropagation();
      close(true);
    } else {
      moveWithArrows([...root.querySelectorAll(".menu-item")], event);
    }
  });
  document.getElementById("layers").append(root);
  anchor.setAttribute("aria-expanded", "true");
  place(root, anchor);
  shut = close;
  root.querySelector(".menu-item")?.focus();
}

function entry({ label, note, sign, run, testid }, close) {
  return h("button", {
    type: "button", class: "menu-item", role: "menuitem", data: { testid }, on: { click: () => { close(true); run(); } },
  }, sign, h("span", { class: "menu-text" }, h("span", {}, label), note && h("span", { class: "menu-item-note" }, note)));
}

function place(root, anchor) {
  const box = anchor.getBoundingClientRect();
  const { width, height } = root.getBoundingClientRect();
  const left = Math.max(8, Math.min(box.left, window.innerWidth - width - 8));
  const below = box.bottom + 4 + height < window.innerHeight;
  root.style.setProperty("left", `${left}px`);
  root.style.setProperty("top", `${below ? box.bottom + 4 : Math.max(8, box.top - height - 4)}px`);
}
