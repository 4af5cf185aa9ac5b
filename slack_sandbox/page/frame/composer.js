// The box one writes in: grows with the text, Enter sends, @ offers names, / commands, + shortcuts.

import { h, icon, uniqueId } from "../dom.js";
import { avatar } from "../format.js";

const COMMAND = /^\/[\w-]*$/;
const TRIGGER = /(^|\s)@([\p{L}\p{N}._-]*)$/u;

/**
 * A composer. `options`: testid, id, label, send(text, broadcast), candidates(), broadcastLabel; and where there are
 * such: commands() as {name, usage_hint, description}, more(anchor) which opens the menu of the +.
 */
export class Composer {
  constructor(options) {
    this.options = options;
    this.matches = [];
    this.choice = 0;
    this.listId = uniqueId("names");
    this.area = h("textarea", {
      class: "composer-text", id: options.id, rows: 1, "aria-label": options.label, placeholder: options.label,
      "aria-autocomplete": "list", "aria-controls": this.listId, autocomplete: "off", data: { testid: options.testid },
      on: { input: () => this.#changed(), keydown: (event) => this.#key(event), click: () => this.#offer(), blur: () => this.#hide() },
    });
    this.button = h("button", {
      type: "button", class: "send", "aria-label": "Send", title: "Send (Enter)", disabled: true,
      data: { testid: `${options.testid}-send` }, on: { click: () => this.submit() },
    }, icon("send"));
    this.list = h("div", { class: "names", role: "listbox", id: this.listId, "aria-label": "Names", hidden: true });
    this.broadcast = options.broadcastLabel ? h("input", { type: "checkbox" }) : null;
    const also = this.broadcast && h("label", { class: "also" }, this.broadcast, options.broadcastLabel);
    const tip = h("span", { class: "composer-tip", "aria-hidden": "true" }, h("kbd", {}, "Enter"), " sends, ",
      h("kbd", {}, "Shift"), "+", h("kbd", {}, "Enter"), " new line");
    this.usage = h("p", { class: "usage", role: "status", data: { testid: `${options.testid}-usage` }, hidden: true });
    this.plus = options.more && h("button", {
      type: "button", class: "icon-button plus", "aria-label": "Shortcuts", title: "Shortcuts", "aria-haspopup": "menu", "aria-expanded": "false",
      data: { testid: `${options.testid}-plus` }, on: { click: () => options.more(this.plus) },
    }, icon("plus"));
    this.node = h("div", { class: "composer" }, this.list, this.usage, this.area,
      h("div", { class: "composer-foot" }, this.plus, also ?? tip, this.button));
  }

  get text() {
    return this.area.value;
  }

  /** Replace the text, as when an example is chosen. */
  write(text) {
    this.area.value = text;
    this.#changed(false);
  }

  focus() {
    this.area.focus();
    this.area.setSelectionRange(this.area.value.length, this.area.value.length);
  }

  /** Grow or shrink with the text. */
  fit() {
    this.area.style.setProperty("height", "auto");
    const height = this.area.scrollHeight;
    if (height > 0) this.area.style.setProperty("height", `${Math.min(height, 220)}px`);
  }

  label(text) {
    this.area.placeholder = text;
    this.area.setAttribute("aria-label", text);
  }

  async submit() {
    const text = this.text;
    if (text.trim() === "") return;
    this.#hide();
    const broadcast = this.broadcast?.checked ?? false;
    this.write("");
    if (this.broadcast) this.broadcast.checked = false;
    const sent = await this.options.send(this.#byName(text), broadcast);
    // What could not be sent comes back, unless something new was begun meanwhile.
    if (!sent && this.text === "") this.write(text);
  }

  /** With each full name after an @ as the name that Slack knows. */
  #byName(text) {
    return this.options.candidates().reduce((out, one) => out.replaceAll(`@${one.real_name}`, `@${one.name}`), text);
  }

  #changed(withOffer = true) {
    this.button.disabled = this.text.trim() === "";
    this.fit();
    if (withOffer) this.#offer();
    else this.#hide();
    this.#hint();
    this.options.changed?.(this.text);
  }

  #key(event) {
    if (event.isComposing) return;
    if (!this.list.hidden && this.#keyInList(event)) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit();
    }
  }

  #keyInList(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.#mark((this.choice + step + this.matches.length) % this.matches.length);
    else if (event.key === "Enter" || event.key === "Tab") this.#accept(this.matches[this.choice]);
    else if (event.key === "Escape") this.#hide();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  /** What a command takes, while its words are typed. */
  #hint() {
    const name = /^(\/[\w-]+)\s/.exec(this.text)?.[1];
    const command = name && this.#commands().find((candidate) => candidate.name === name);
    this.usage.hidden = !command;
    if (command) this.usage.replaceChildren(h("strong", {}, command.name), ` ${command.usage_hint || command.description}`);
  }

  #commands() {
    return this.options.commands?.() ?? [];
  }

  #offerCommands() {
    const typed = this.text.slice(0, this.area.selectionEnd);
    if (!COMMAND.test(typed) || typed !== this.text) return false;
    this.#open(this.#commands().filter((command) => command.name.startsWith(typed)), "Commands");
    return true;
  }

  #open(matches, label) {
    this.matches = matches;
    if (matches.length === 0) return this.#hide();
    this.list.setAttribute("aria-label", label);
    this.list.replaceChildren(...matches.map((match, index) => this.#row(match, index)));
    this.list.hidden = false;
    this.#mark(0);
  }

  #offer() {
    if (this.#offerCommands()) return;
    const trigger = TRIGGER.exec(this.text.slice(0, this.area.selectionEnd));
    const query = trigger?.[2].toLowerCase();
    if (!trigger) return this.#hide();
    this.matches = this.options.candidates().filter((candidate) => matches(candidate, query)).slice(0, 7);
    const done = this.matches.some((candidate) => candidate.name.toLowerCase() === query);
    if (this.matches.length === 0 || done) return this.#hide();
    this.#open(this.matches, "Names");
  }

  #row(candidate, index) {
    return h("div", {
      class: "name-row", role: "option", id: `${this.listId}-${index}`,
      on: { pointerdown: (event) => { event.preventDefault(); this.#accept(candidate); } },
    }, candidate.usage_hint === undefined
      ? [avatar(candidate, "small"), h("span", { class: "name-main" }, candidate.real_name || candidate.name), h("span", { class: "name-note" }, `@${candidate.name}`)]
      : h("span", { class: "command-row" }, h("span", { class: "name-main" }, candidate.name, " ", h("span", { class: "command-hint" }, candidate.usage_hint)),
        h("span", { class: "name-note" }, candidate.description)));
  }

  #mark(index) {
    this.choice = index;
    [...this.list.children].forEach((row, at) => row.setAttribute("aria-selected", String(at === index)));
    this.area.setAttribute("aria-activedescendant", `${this.listId}-${index}`);
  }

  #accept(candidate) {
    if (candidate.usage_hint !== undefined) {
      this.write(`${candidate.name} `);
      this.focus();
      return;
    }
    const caret = this.area.selectionEnd;
    const head = this.text.slice(0, caret).replace(TRIGGER, (_, space) => `${space}@${candidate.name} `);
    this.area.value = head + this.text.slice(caret);
    this.area.setSelectionRange(head.length, head.length);
    this.#changed(false);
  }

  #hide() {
    this.list.hidden = true;
    this.area.removeAttribute("aria-activedescendant");
  }
}

function matches(candidate, query) {
  const names = [candidate.name, ...(candidate.real_name ?? "").split(/\s+/)];
  return names.some((name) => name.toLowerCase().startsWith(query));
}
