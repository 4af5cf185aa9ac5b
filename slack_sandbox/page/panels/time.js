// The panel that lets time pass at once, where the bot goes by the page's clock.

import { explain, read, send } from "../api.js";
import { announce, fill, h } from "../dom.js";
import { now, span, moment } from "../format.js";
import { notice } from "../notices.js";
import { Panel } from "./panel.js";

const LOOK_MS = 2000;
const SKIPS = [[900, "+15 minutes"], [3600, "+1 hour"], [86400, "+1 day"]];

export class TimePanel extends Panel {
  constructor(button, root) {
    super(button, root, { name: "time", title: "Skip ahead in time" });
    this.mark = h("span", { class: "ahead", "aria-hidden": "true", data: { testid: "time-ahead" } });
    button.append(this.mark);
    this.outside = h("span", { class: "ahead outside", "aria-hidden": "true" });
    document.getElementById("tools-toggle").append(this.outside);
    this.facts = h("dl", { class: "facts", data: { testid: "time-told" } });
    this.next = this.#skip({}, "Skip to the next event", "next");
    this.fill([
      h("p", { class: "panel-note" }, "Skips time for the bot and this page. Reminders, escalations and deadlines fire as if you had waited."),
      this.facts,
      h("div", { class: "panel-actions" }, SKIPS.map(([seconds, label]) => this.#skip({ seconds }, label, seconds))),
      h("div", { class: "panel-actions" }, this.next),
      h("p", { class: "panel-note" }, "To go back, restart the demo."),
    ]);
  }

  /** Show on the button how far ahead it is; without such a clock there is no button. */
  render(store) {
    this.button.hidden = store.ahead === null;
    this.ahead = store.ahead ?? 0;
    const ahead = this.ahead;
    fill(this.outside, ahead > 0 && `+${span(ahead, "short")}`);
    fill(this.mark, ahead > 0 && `+${span(ahead, "short")}`);
    this.button.setAttribute("aria-label", `Skip ahead in time, ${ahead > 0 ? `${span(ahead)} ahead` : "not ahead"}`);
  }

  opened() {
    this.#draw({ now: now() / 1000, ahead: this.ahead, next: undefined });  // the buttons keep their place when the answer comes
    this.#load();
    const timer = setInterval(() => this.#load(), LOOK_MS);
    return () => clearInterval(timer);
  }

  #skip(body, label, name) {
    return h("button", {
      type: "button", class: "button small", data: { testid: `time-${name}` }, on: { click: (event) => this.#do(event.currentTarget, body) },
    }, h("span", { class: "button-label" }, label));
  }

  async #do(button, body) {
    if (button.getAttribute("aria-busy") === "true") return;
    button.setAttribute("aria-busy", "true");
    const before = now();
    const answer = await send("time", body, "control");
    button.removeAttribute("aria-busy");
    if (!answer.ok) {
      notice(explain(answer), "error");
      return;
    }
    announce(`It is ${span(Math.round(answer.now - before / 1000))} later: ${moment(answer.now)}.`);
    this.#draw(answer);
  }

  async #load() {
    const answer = await read("time", {}, "control");
    if (answer.ok) this.#draw(answer);
  }

  #draw({ now: at, ahead, next }) {
    const due = next === undefined ? "…" : next === null ? "Nothing due" : next <= at ? "Now" : `In ${span(Math.max(Math.ceil(next - at), 1))}`;
    const facts = [["It is", moment(at)], ["Skipped", ahead > 0 ? span(ahead) : "No time skipped"], ["Next due", due]];
    fill(this.facts, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  }
}
