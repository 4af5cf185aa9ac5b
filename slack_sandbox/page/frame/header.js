// The top of a conversation: tabs, a banner, and how it begins.

import { h } from "../dom.js";

/** The tabs of the app's conversation. */
export function tabs(store, openTab, header) {
  const onTabKey = (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    openTab(store.tab === "home" ? "messages" : "home");
    setTimeout(() => header.querySelector("[aria-selected='true']")?.focus(), 0);
  };
  const tab = (name, label) => h("button", {
    type: "button", class: "tab", role: "tab", "aria-selected": String(store.tab === name), tabindex: store.tab === name ? "0" : "-1",
    data: { testid: `tab-${name}` }, on: { click: () => openTab(name) },
  }, label);
  return h("div", { class: "tabs", role: "tablist", "aria-label": store.bot.name, on: { keydown: onTabKey } }, tab("home", "Home"), tab("messages", "Messages"));
}

/** What one must know before one writes here; null when there is nothing. */
export function bannerOf(store, channel, addBot) {
  if (channel?.archived) return "This channel is archived.";
  if (channel && channel.member === false) return "You are not in this channel.";
  const add = channel?.has_bot === false && h("button", {
    type: "button", class: "button small", data: { testid: "add-bot" }, on: { click: addBot },
  }, `Add ${store.bot.name}`);
  if (add) return [`${store.bot.name} is not in this channel, and hears nothing here. `, add];
  return store.bot.connected ? null : `${store.bot.name} is not connected. It will answer when the bot runs.`;
}

/** The beginning of a conversation: its name, and its topic in full. */
export function introItem(store, channel) {
  const title = store.title(channel);
  const isDirect = channel?.kind === "im";
  const text = isDirect ? `This is your conversation with ${title}. No one else can read it.` : channel?.topic || `This is the start of #${title}.`;
  const draw = () => h("div", { class: "intro" }, h("h2", {}, isDirect ? title : `#${title}`), h("p", {}, text));
  return { key: "intro", sign: `${title} ${text}`, draw };
}
