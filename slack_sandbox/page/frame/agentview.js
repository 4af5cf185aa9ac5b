// Slack's surface for agents: prompts to begin with, a thread's title, the stop button.

import { fill, h, icon } from "../dom.js";

/** Draw the prompts of the open conversation into `root`; one click sends one. `on`: begin(text). */
export function drawPrompts(root, store, on) {
  const offered = store.isHome ? undefined : store.prompts.get(store.channel);
  const sign = JSON.stringify([store.channel, offered]);
  root.hidden = !offered;
  if (root.dataset.sign === sign) return;
  root.dataset.sign = sign;
  root.setAttribute("aria-label", offered?.title || "Suggested prompts");
  fill(root, offered && [
    h("span", { class: "hint-word" }, offered.title || "Try"),
    h("div", { class: "hint-chips" }, offered.prompts.map(({ title, message }) => h("button", {
      type: "button", class: "hint-chip", title: message, data: { testid: "prompt" }, on: { click: () => on.begin(message) },
    }, title))),
  ]);
}

/** The title of a thread that is a session of the agent. */
export function sessionTitle(session) {
  return session.title && h("span", { class: "session-title", data: { testid: "session-title" } }, session.title);
}

/** The button that stops the agent while it works. */
export function stopButton(session, stop) {
  if (session.status !== "processing") return null;
  return h("button", { type: "button", class: "stop-button", data: { testid: "stop-agent" }, on: { click: stop } }, icon("stop"), "Stop");
}
