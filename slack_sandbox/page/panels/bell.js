// The panel of notifications: what this person's phone showed, and what a screen reader reads.

import { read } from "../api.js";
import { flatText } from "../blocks/mrkdwn.js";
import { fill, h } from "../dom.js";
import { avatar, clockTime, count } from "../format.js";
import { Panel } from "./panel.js";

const WHY = { "direct message": "Direct message", mention: "Mentions you", reply: "A thread that you are in" };

/** `open(channel, thread)` shows a message. */
export class BellPanel extends Panel {
  constructor(button, root, open) {
    super(button, root, { name: "bell", title: "Notifications" });
    this.goTo = open;
    this.badge = h("span", { class: "badge", "aria-hidden": "true", hidden: true });
    button.append(this.badge);
    this.note = h("p", { class: "panel-note" });
    this.list = h("ul", { class: "notification-list", data: { testid: "bell-list" } });
    this.fill([this.note, this.list]);
  }

  render(store) {
    this.store = store;
    const fresh = this.isOpen ? 0 : store.notified;
    this.badge.hidden = fresh === 0;
    this.badge.textContent = fresh > 9 ? "9+" : String(fresh);
    this.button.setAttribute("aria-label", `Notifications${fresh > 0 ? `, ${fresh} new` : ""}`);
    if (this.isOpen && store.notified > 0) this.#load();
  }

  opened() {
    this.#load();
  }

  async #load() {
    const { store } = this;
    store.notified = 0;
    this.badge.hidden = true;
    const answer = await read("notifications", { as: store.me });
    const notifications = answer.ok ? answer.notifications : [];
    const name = store.people.get(store.me)?.real_name ?? "Nobody";
    this.note.textContent = notifications.length > 0
      ? `${name}'s phone showed ${count(notifications.length, "notification", "notifications")}. A screen reader reads the same text.`
      : `${name}'s phone has shown nothing yet: no mention, no direct message, no reply in a thread of theirs.`;
    fill(this.list, notifications.map((notification) => this.#item(notification)));
  }

  #item(notification) {
    const { store } = this;
    const author = store.author(notification);
    const channel = store.channels.get(notification.channel);
    const where = channel?.kind === "im" ? "" : ` in #${channel?.name ?? "…"}`;
    const text = flatText(notification.text, store.names);
    const now = flatText(notification.now, store.names);
    return h("li", {}, h("button", {
      type: "button", class: "notification", on: { click: () => { this.close(); this.goTo(notification.channel, notification.thread_ts ?? ""); } },
    }, avatar(author, "small"), h("span", { class: "notification-text" },
      h("span", { class: "notification-head" }, h("strong", {}, `${author.real_name || author.name}${where}`), h("span", { class: "time" }, clockTime(notification.ts))),
      h("span", {}, text),
      now !== text && h("span", { class: "notification-now" }, "Reads now: ", now),
      h("span", { class: "notification-why" }, WHY[notification.why] ?? notification.why))));
  }
}
