// A panel below the top bar, and the button that opens it: what all of them have in common.

import { fill, h, icon, isShown, keepFocusInside, onLeave, uniqueId } from "../dom.js";

/** Subclasses give `fill` what is in it; `opened` is called each time it is opened. */
export class Panel {
  constructor(button, root, { name, title }) {
    this.button = button;
    this.root = root;
    this.name = name;
    this.stop = null;
    this.heading = h("h2", { id: uniqueId("panel"), tabindex: "-1" }, title);
    button.addEventListener("click", () => (this.stop ? this.close() : this.open()));
    root.addEventListener("keydown", (event) => this.#key(event));
    root.setAttribute("aria-labelledby", this.heading.id);
  }

  get isOpen() {
    return this.stop !== null;
  }

  /** Put the content in: nodes for the body, and one for the foot or null. */
  fill(body, foot = null) {
    const close = h("button", {
      type: "button", class: "icon-button", "aria-label": "Close", data: { testid: `${this.name}-close` }, on: { click: () => this.close() },
    }, icon("close"));
    fill(this.root, h("div", { class: "panel-head" }, this.heading, close), h("div", { class: "panel-body" }, body),
      foot && h("div", { class: "panel-foot" }, foot));
  }

  open() {
    this.root.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    const left = onLeave([this.root, this.button, document.getElementById("layers")], () => this.close(false));
    const ended = this.opened();
    this.stop = () => { left(); ended?.(); };
    this.heading.focus();
  }

  /** Called when it was opened; may return what to do when it is closed. */
  opened() {
    return null;
  }

  close(refocus = true) {
    this.stop?.();
    this.stop = null;
    this.root.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
    if (refocus) (isShown(this.button) ? this.button : document.getElementById("tools-toggle")).focus();
  }

  #key(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      this.close();
      return;
    }
    keepFocusInside(this.root, event);
  }
}
