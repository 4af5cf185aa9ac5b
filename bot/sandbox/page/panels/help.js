// The panel that tells a stranger what this is.

import { h } from "../dom.js";
import { Panel } from "./panel.js";

const STEPS = [
  ["Ask for something", "Mention the app in a channel, or write to it directly."],
  ["Open the thread", "It answers there, and puts a card where it needs a decision."],
  ["Decide as somebody else", "Whoever asks cannot approve it. Switch the person at the top right; with Ctrl in a second window."],
];

/** `on` has `examples()`, which shows the line of examples again. */
export class HelpPanel extends Panel {
  constructor(button, root, on) {
    super(button, root, { name: "help", title: "A stand-in for Slack" });
    this.name_ = h("strong", {});
    this.again = h("button", {
      type: "button", class: "button small", data: { testid: "help-examples" }, on: { click: () => { this.close(); on.examples(); } },
    }, "Show the examples");
    this.fill([
      h("p", {}, "Nothing here leaves this machine. The people are made up; ", this.name_, " is the real program, and talks to this page as it would to Slack."),
      h("ol", { class: "help-steps" }, STEPS.map(([title, text]) => h("li", {}, h("h3", {}, title), h("p", {}, text)))),
      h("p", { class: "panel-note" }, "At the top: who is in which group, notifications as a phone gets them, a Slack that misbehaves, and this page as on a phone."),
      h("div", { class: "panel-actions" }, this.again),
    ]);
  }

  render(store) {
    this.name_.textContent = `@${store.bot.name}`;
    this.again.hidden = store.examples.length === 0;
  }
}
