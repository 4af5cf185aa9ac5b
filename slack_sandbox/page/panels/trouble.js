// The panel in which one lets Slack misbehave: switches, and what can be done at once.

import { explain, read, send } from "../api.js";
import { announce, fill, h, uniqueId } from "../dom.js";
import { count } from "../format.js";
import { notice } from "../notices.js";
import { Panel } from "./panel.js";

const LOOK_MS = 2000;

export class TroublePanel extends Panel {
  constructor(button, root) {
    super(button, root, { name: "trouble", title: "Simulate Slack problems" });
    this.rows = new Map();
    this.turns = 0;
    this.dot = h("span", { class: "dot", hidden: true });
    button.append(this.dot);
    this.#build();
  }

  /** Show on the button how much is on. */
  render(store) {
    const words = store.troubles > 0 ? `${count(store.troubles, "thing", "things")} on` : "nothing on";
    this.dot.hidden = store.troubles === 0;
    this.button.setAttribute("aria-label", `Simulate Slack problems, ${words}`);
    // A control that goes out of use must not take the focus with it.
    if (store.troubles === 0 && document.activeElement === this.calm) this.heading.focus();
    this.calm.disabled = store.troubles === 0;
    if (this.isOpen) this.#load();
  }

  opened() {
    this.#load();
    const timer = setInterval(() => this.#load(), LOOK_MS);
    return () => clearInterval(timer);
  }

  #build() {
    this.list = h("div", { class: "panel-list" });
    this.others = h("p", { class: "panel-note", hidden: true });
    this.link = h("p", { class: "panel-note", role: "status", data: { testid: "trouble-connections" } });
    this.coped = h("dl", { class: "facts coped", data: { testid: "trouble-coped" } });
    this.calm = this.#action("calm", "Back to normal", "Everything is back to normal.", {}, "button small primary");
    this.calm.disabled = true;
    this.fill([
      h("p", { class: "panel-note" }, "The bot should survive all of these without losing or repeating anything. Turn one on, then keep working."),
      h("h3", {}, "How the bot coped"), this.coped,
      h("h3", {}, "What goes wrong"), this.list, this.others,
      h("h3", {}, "Connection"), this.link,
      h("div", { class: "panel-actions" },
        this.#action("disconnect", "Disconnect now", "Slack has asked the bot to connect again.", { reason: "refresh_requested" }),
        this.#action("disconnect", "Warn, then disconnect", "Slack will end the connection in ten seconds.", { reason: "warning" }, "button small", "warn"),
        this.#action("cut", "Drop the connection", "The connection dropped without warning.")),
    ], this.calm);
  }

  #action(path, label, told, body = {}, look = "button small", name = path) {
    return h("button", {
      type: "button", class: look, data: { testid: `trouble-${name}` },
      on: { click: () => this.#do(path, body, told) },
    }, label);
  }

  async #do(path, body, told) {
    const answer = await send(path, body, "control");
    if (answer.ok) announce(told);
    else notice(explain(answer), "error");
    await this.#load();
  }

  async #load() {
    const turns = this.turns;
    const shown = await read("panel", {}, "control");
    if (shown.ok) this.#draw(shown, turns);
  }

  #draw(shown, turns) {
    // What was read before a switch was turned would turn it back under somebody's hand.
    if (turns === this.turns) for (const toggle of shown.switches) this.#row(toggle).checked = toggle.on;
    this.others.hidden = shown.others === 0;
    fill(this.others, `${count(shown.others, "more rule was", "more rules were")} added by a program.`);
    const { failed, again, lost, doubles } = shown.coped;
    const facts = [
      ["Calls that failed", failed, "It tries again, or says so on the card."],
      ["Duplicate deliveries", again, "Events and clicks that Slack sent twice."],
      ["Never arrived", lost, "It looks for what it missed."],
      ["Duplicate messages", doubles, doubles === 0 ? "As expected." : "This is a bug."],
    ];
    const sign = JSON.stringify(facts);
    if (this.drawnFacts !== sign) {
      this.drawnFacts = sign;
      fill(this.coped, facts.map(([name, value, note]) => [h("dt", {}, name), h("dd", {}, String(value), h("span", { class: "fact-note" }, note))]));
    }
    const open = shown.connections > 0
      ? `The bot has ${count(shown.connections, "connection", "connections")} open.`
      : "No Socket Mode connection is open.";
    if (this.link.textContent !== open) fill(this.link, open);
  }

  #row({ key, label, note }) {
    if (!this.rows.has(key)) {
      const ids = { name: uniqueId("tn"), note: uniqueId("tt") };
      const input = h("input", {
        type: "checkbox", role: "switch", "aria-labelledby": ids.name, "aria-describedby": ids.note, data: { testid: `trouble-${key}` },
        on: { change: (event) => this.#turn(key, label, event.target.checked) },
      });
      this.rows.set(key, input);
      this.list.append(h("label", { class: "panel-row" },
        h("span", { class: "panel-text" }, h("strong", { id: ids.name }, label), h("span", { id: ids.note }, note)), input));
    }
    return this.rows.get(key);
  }

  async #turn(key, label, on) {
    this.turns += 1;
    const turns = this.turns;
    const answer = await send("switch", { key, on }, "control");
    if (!answer.ok) notice(explain(answer), "error");
    else announce(`${label} is ${on ? "on" : "off"}.`);
    if (answer.ok) this.#draw(answer, turns);
    else await this.#load();
  }
}
