// The side bar: workspace, channels, direct messages.

import { fill, h, icon, memory, rememberFocus, restoreFocus } from "../dom.js";
import { avatar } from "../format.js";

/** Draw the side bar. `on` has `open(channelId)` and `close()`. */
export function renderSidebar(root, store, on) {
  const close = h("button", { type: "button", class: "icon-button sidebar-close", "aria-label": "Close", data: { testid: "sidebar-close" }, on: { click: on.close } }, icon("close"));
  const head = h("div", { class: "workspace" },
    h("span", { class: "workspace-mark", "aria-hidden": "true" }, (store.team.name || "S")[0].toUpperCase()),
    h("span", { class: "workspace-name" }, store.team.name), close);
  const focus = rememberFocus(root);
  fill(root, head,
    sections(store).map(([title, channels], at) => section(title, channels, at > 0, store, on)),
    group("Apps", store.conversations("im"), store, on),
    h("p", { class: "sidebar-note" }, "Nothing here leaves this machine."));
  restoreFocus(root, focus);
}

/** Channels by their headings, in the order in which they come. */
function sections(store) {
  const byTitle = new Map();
  for (const channel of store.conversations("channel")) {
    const title = channel.section || "Channels";
    if (!byTitle.has(title)) byTitle.set(title, []);
    byTitle.get(title).push(channel);
  }
  return [...byTitle];
}

/** A section that can be folded, as in Slack: the open channel and unread ones stay in sight. */
function section(title, channels, isFoldedAtFirst, store, on) {
  const key = `section.${title}`;
  const isFolded = (memory.get(key) ?? (isFoldedAtFirst ? "folded" : "open")) === "folded";
  const shown = channels.filter((channel) => !isFolded || channel.id === store.channel || channel.unread > 0);
  const fold = h("button", {
    type: "button", class: "side-fold", "aria-expanded": String(!isFolded), data: { testid: `section-${title}` },
    on: { click: () => { memory.set(key, isFolded ? "open" : "folded"); on.changed(); } },
  }, icon("down"), title, isFolded && h("span", { class: "side-count" }, channels.length));
  return group(fold, shown, store, on, true);
}

function group(title, channels, store, on, isKept = false) {
  if (channels.length === 0 && !isKept) return null;
  return h("section", { class: "side-group" }, h("h2", {}, title),
    h("ul", {}, channels.map((channel) => h("li", {}, row(channel, store, on)))));
}

function row(channel, store, on) {
  const current = channel.id === store.channel;
  const unread = channel.unread ?? 0;
  const name = store.title(channel);
  const label = `${channel.kind === "im" ? "" : "Channel "}${name}${unread > 0 ? `, ${unread} unread` : ""}`;
  return h("a", {
    class: ["side-row", current && "current", unread > 0 && "unread", channel.archived && "archived"].filter(Boolean).join(" "),
    href: `?as=${encodeURIComponent(store.me)}&channel=${encodeURIComponent(channel.id)}`,
    "aria-current": current ? "page" : null, "aria-label": label, data: { testid: `channel-${channel.id}` },
    on: { click: (event) => { if (isPlainClick(event)) { event.preventDefault(); on.open(channel.id); } } },
  }, mark(channel, store), h("span", { class: "side-name" }, name), extra(channel, store),
  unread > 0 && h("span", { class: "badge", "aria-hidden": "true" }, unread));
}

function mark(channel, store) {
  if (channel.kind !== "im") return icon("hash");
  const other = store.people.get(channel.with ?? store.bot.user_id) ?? { name: store.bot.name, bot: true };
  return avatar(other, "tiny");
}

function extra(channel, store) {
  if (channel.kind !== "im" || (channel.with && channel.with !== store.bot.user_id)) return null;
  const state = store.bot.connected ? "connected" : "not connected";
  return h("span", { class: store.bot.connected ? "presence on" : "presence", role: "img", "aria-label": state, title: state });
}

/** A click that should stay in this window; with a modifier the link opens a second one. */
export function isPlainClick(event) {
  return event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
}
