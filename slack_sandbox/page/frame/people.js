// "Acting as …": who this window is, and which person has something new.

import { fill, h, icon, moveWithArrows, onLeave, rememberFocus, restoreFocus } from "../dom.js";
import { avatar, count } from "../format.js";
import { isPlainClick } from "./sidebar.js";

/** The control to act as another person. `choose(personId)` is called with the choice. */
export class PersonSwitch {
  constructor(root, news, choose) {
    this.root = root;
    this.news = news;
    this.choose = choose;
    this.stop = null;
    this.label = h("span", { class: "person-label" });
    this.face = h("span", { class: "person-face" });
    this.dot = h("span", { class: "dot", hidden: true });
    this.button = h("button", {
      type: "button", class: "person-switch", "aria-haspopup": "menu", "aria-expanded": "false",
      data: { testid: "person-switch" }, on: { click: () => (this.stop ? this.#close(false) : this.#open()) },
    }, this.face, this.label, icon("down"), this.dot);
    root.append(this.button);
    root.addEventListener("keydown", (event) => this.#key(event));
  }

  render(store) {
    this.store = store;
    const me = store.people.get(store.me);
    fill(this.face, avatar(me, "small"));
    fill(this.label, h("span", { class: "person-prefix" }, "Acting as "), h("strong", {}, me ? me.real_name || me.name : "nobody"));
    const others = store.humans.filter((person) => person.id !== store.me && newsOf(store, person) > 0);
    this.dot.hidden = others.length === 0;
    const news = others.map((person) => `${person.real_name} has ${newsOf(store, person)} new`).join(", ");
    this.button.setAttribute("aria-label", `Acting as ${me?.real_name ?? "nobody"}. Change person.${news ? ` ${news}.` : ""}`);
    const focus = rememberFocus(this.news);
    fill(this.news, others.map((person) => this.#chip(person)));
    restoreFocus(this.news, focus);
    if (this.stop) this.#draw();
  }

  #chip(person) {
    const amount = newsOf(this.store, person);
    const text = `${person.real_name}: ${count(amount, "new message", "new messages")}. Act as ${person.real_name}`;
    return h("button", {
      type: "button", class: "news-chip", "aria-label": text, title: text, data: { testid: `news-${person.id}` },
      on: { click: () => this.choose(person.id) },
    },
      avatar(person, "small"), h("span", { class: "badge", "aria-hidden": "true" }, amount > 99 ? "99+" : amount));
  }

  #open() {
    this.menu = h("div", { class: "menu person-menu", role: "menu", "aria-label": "Act as" });
    this.root.append(this.menu);
    this.#draw();
    this.button.setAttribute("aria-expanded", "true");
    this.stop = onLeave(this.root, () => this.#close(false));
    (this.menu.querySelector("[aria-checked='true']") ?? this.menu.querySelector("a"))?.focus();
  }

  #draw() {
    const focus = this.menu.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement).dataset.testid : null;
    fill(this.menu, h("p", { class: "menu-title" }, "Act as"), this.store.humans.map((person) => this.#option(person)),
      h("p", { class: "menu-note" }, "Ctrl-click (or \u2318-click) opens a second window for that person."));
    if (focus) this.menu.querySelector(`[data-testid="${CSS.escape(focus)}"]`)?.focus();
  }

  #option(person) {
    const { store } = this;
    const current = person.id === store.me;
    const amount = current ? 0 : newsOf(store, person);
    const query = new URLSearchParams({ as: person.id, ...(store.channel && { channel: store.channel }), ...(store.thread && { thread: store.thread }) });
    return h("a", {
      class: "menu-item person-option", href: `?${query}`, role: "menuitemradio", "aria-checked": String(current),
      data: { testid: `person-option-${person.id}` },
      on: { click: (event) => { if (isPlainClick(event)) { event.preventDefault(); this.#close(true); this.choose(person.id); } } },
    }, avatar(person), h("span", { class: "person-text" }, h("strong", {}, person.real_name || person.name),
      h("span", {}, describe(person))),
    amount > 0 && h("span", { class: "badge", "aria-label": `${amount} new` }, amount), current && icon("check"));
  }

  #close(refocus) {
    this.menu?.remove();
    this.button.setAttribute("aria-expanded", "false");
    this.stop?.();
    this.stop = null;
    if (refocus) this.button.focus();
  }

  #key(event) {
    if (!this.stop) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      this.#close(true);
      return;
    }
    moveWithArrows([...this.menu.querySelectorAll(".person-option")], event);
  }
}

function describe(person) {
  const guest = person.guest && !/guest/i.test(person.title ?? "") ? "guest" : "";
  return [person.title, guest].filter(Boolean).join(" · ");
}

function newsOf(store, person) {
  return store.news.get(person.id) ?? 0;
}
