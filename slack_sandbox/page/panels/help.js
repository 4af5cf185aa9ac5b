// The panel that tells a stranger what this is.

import { h } from "../dom.js";
import { Panel } from "./panel.js";

const STEPS = [
  ["Ask for something", "Mention the app in a channel, or write to it directly."],
  ["Open the thread", "It replies there and posts a card when it needs a decision."],
  ["Approve as someone else", "Requesters can't approve their own requests. Switch people at the top right, or Ctrl-click to open a second window."],
];

/** `on` has `examples()`, which shows the line of examples again, and `guide()`. */
export class HelpPanel extends Panel {
  constructor(button, root, on) {
    super(button, root, { name: "help", title: "A stand-in for Slack" });
    this.name_ = h("strong", {});
    this.again = h("button", {
      type: "button", class: "button small", data: { testid: "help-examples" }, on: { click: () => { this.close(); on.examples(); } },
    }, "Show the examples");
    this.tour = h("button", {
      type: "button", class: "button small", data: { testid: "help-guide" }, on: { click: () => { this.close(); on.guide(); } },
    }, "Show the guide");
    this.fill([
      h("p", {}, "Nothing here leaves this machine. The people are made up; ", this.name_, " is the real bot, and it talks to this page as it would to Slack."),
      h("ol", { class: "help-steps" }, STEPS.map(([title, text]) => h("li", {}, h("h3", {}, title), h("p", {}, text)))),
      h("p", { class: "panel-note" }, "In the toolbar: people and groups, phone notifications, simulated Slack problems, and a phone view."),
      h("div", { class: "panel-actions" }, this.tour, this.again),
    ]);
  }

  render(store) {
    this.name_.textContent = `@${store.bot.name}`;
    this.again.hidden = store.examples.length === 0;
    this.tour.hidden = !store.guide;
  }
}
