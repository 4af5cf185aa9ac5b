// One line above the composer with what can be tried here.

import { fill, h, icon, memory } from "../dom.js";

const WRITE = "Write: ";
const BETWEEN = /, (?:or|then): /;
const MOST = 3;

/** What can be tried in the open conversation: what its topic says, or else what is understood everywhere. */
function examples(store) {
  const channel = store.channels.get(store.channel);
  if (!channel || channel.archived || channel.has_bot === false || channel.member === false || store.examples.length === 0) return [];
  const call = channel.kind === "im" ? "" : `@${store.bot.name} `;
  const topic = channel.topic ?? "";
  const texts = topic.startsWith(WRITE)
    ? topic.slice(WRITE.length).split(BETWEEN).map((text) => text.replace(`@${store.bot.name} `, ""))
    : store.examples.filter(([, , place]) => !place || place === (channel.kind === "im" ? "direct" : "channel")).map(([text]) => text);
  return texts.slice(0, MOST).map((text) => [text, text.startsWith("/") ? text : call + text]);
}

/** Whether the line is wanted. */
export function isHintOpen() {
  return memory.get("hint") !== "closed";
}

/** Show or hide it from now on. */
export function setHintOpen(open) {
  memory.set("hint", open ? "open" : "closed");
}

/** Draw the line into `root`. `on`: try(text), close(). */
export function drawHint(root, store, on) {
  const chips = isHintOpen() ? examples(store) : [];
  const sign = JSON.stringify(chips);
  root.hidden = chips.length === 0;
  if (root.dataset.sign === sign) return;
  root.dataset.sign = sign;
  fill(root, h("span", { class: "hint-word" }, "Try"), h("div", { class: "hint-chips" }, chips.map(([label, text]) => h("button", {
    type: "button", class: "hint-chip", title: text, data: { testid: "hint-example" }, on: { click: () => on.try(text) },
  }, label))), h("button", { type: "button", class: "icon-button", "aria-label": "Hide the examples", on: { click: on.close } }, icon("close")));
}
