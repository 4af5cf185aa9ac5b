// A card about a person, at their name: by resting on it, or by a click on an author's name.

import { fill, h, onLeave } from "../dom.js";
import { avatar, timeIn } from "../format.js";

const REST_MS = 400;

/** Watches the page for names; `store` knows the people. */
export class HoverCard {
  constructor(host, store) {
    this.store = store;
    this.node = h("div", { class: "hover-card", role: "dialog", "aria-label": "About this person", hidden: true, data: { testid: "hover-card" } });
    host.append(this.node);
    document.addEventListener("pointerover", (event) => this.#over(event));
    document.addEventListener("click", (event) => {
      const name = /** @type {Element} */ (event.target).closest?.("button[data-user-id]");
      if (name) this.#show(name, true);
    });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.node.hidden) return;
      event.stopPropagation();
      this.#hide();
    }, true);
    document.addEventListener("scroll", () => this.#hide(), true);
  }

  #over(event) {
    clearTimeout(this.timer);
    const name = event.target.closest?.("[data-user-id]");
    if (name) this.timer = setTimeout(() => this.#show(name, false), REST_MS);
    else if (!this.node.hidden && !this.pinned && !this.node.contains(event.target)) this.timer = setTimeout(() => this.#hide(), REST_MS / 2);
  }

  #show(name, pinned) {
    const person = this.store.names.person(name.dataset.userId);
    if (!person || !name.isConnected) return;
    this.stop?.();
    this.pinned = pinned;
    if (pinned) this.stop = onLeave([this.node, name], () => this.#hide());
    fill(this.node, this.#content(person));
    this.node.hidden = false;
    const box = name.getBoundingClientRect();
    const { width, height } = this.node.getBoundingClientRect();
    const above = box.top - height - 8;
    this.node.style.setProperty("left", `${Math.max(8, Math.min(box.left, window.innerWidth - width - 8))}px`);
    this.node.style.setProperty("top", `${above > 8 ? above : box.bottom + 8}px`);
  }

  #content(person) {
    const groups = [...this.store.groups.values()].filter((group) => group.members.includes(person.id)).map((group) => `@${group.handle}`);
    const kind = person.bot ? "App" : person.gone ? "Deactivated account" : person.guest ? "Guest" : person.stranger ? "Another company" : "";
    const facts = [
      ["Title", person.bot ? "" : person.title], ["Account", kind], ["Groups", person.bot ? "" : groups.join(", ") || "none"],
      ["Local time", person.bot || !person.tz ? "" : `${timeIn(person.tz)}, ${person.tz.replaceAll("_", " ")}`],
    ].filter(([, value]) => value);
    return [
      h("div", { class: "hover-head" }, avatar(person), h("div", {}, h("strong", {}, person.real_name || person.name), h("span", { class: "name-note" }, `@${person.name ?? person.real_name}`))),
      h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    ];
  }

  #hide() {
    clearTimeout(this.timer);
    this.stop?.();
    this.stop = null;
    this.pinned = false;
    this.node.hidden = true;
  }
}
