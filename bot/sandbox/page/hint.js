// The panel that tells a stranger what this is and what to try.

import { h, icon, memory } from "./dom.js";

const EXAMPLES = [
  ["@countersign deploy payments 1.4.2 to staging", "asks for approval first"],
  ["@countersign deploy payments 1.4.2 to production", "asks, too"],
  ["@countersign refund order 1234 120.50", "asks, too"],
  ["@countersign deploy payments", "asks you what is missing"],
  ["@countersign status of payments", "answers at once"],
];

const ALONE = [
  ["status of payments", "answers at once"],
  ["deploy payments 1.4.2 to staging", "needs approval, and says that nobody here can give it"],
];

const WRITE = "Write: ";
const OR = ", or: ";

/** What can be tried: what the channel's topic says, or else what is understood everywhere. */
function examples(store) {
  if (isDirect(store)) return ALONE;
  const topic = store.channels.get(store.channel)?.topic ?? "";
  if (!topic.startsWith(WRITE)) return EXAMPLES;
  const [first, ...more] = topic.slice(WRITE.length).split(OR);
  return [first, ...more.map((text) => `@${store.bot.name} ${text}`)].map((text) => [text, ""]);
}

/** The channel's topic, where it says something other than what to write. */
function about(store) {
  const topic = isDirect(store) ? "" : store.channels.get(store.channel)?.topic ?? "";
  return topic.startsWith(WRITE) ? "" : topic;
}

/** Whether the panel should be shown. */
export function isHintOpen() {
  return memory.get("hint") !== "closed";
}

/** Show or hide the panel from now on. */
export function setHintOpen(open) {
  memory.set("hint", open ? "open" : "closed");
}

/** The panel as an item of the message list. `on`: try(text), act(personId), open(channelId), close(). */
export function hintItem(store, on) {
  const others = approvers(store);
  return { key: "hint", sign: JSON.stringify([store.me, examples(store), about(store), others.map((p) => p.id)]), draw: () => draw(store, others, on) };
}

function isDirect(store) {
  return store.channels.get(store.channel)?.kind === "im";
}

function approvers(store) {
  return store.humans.filter((person) => person.id !== store.me && !person.guest).slice(0, 2);
}

function draw(store, others, on) {
  const me = store.people.get(store.me);
  const close = h("button", { type: "button", class: "icon-button hint-close", "aria-label": "Hide this panel", on: { click: on.close } }, icon("close"));
  const buttons = examples(store).map(([text, note]) => h("li", {},
    h("button", { type: "button", class: "example", data: { testid: "hint-example" }, on: { click: () => on.try(text) } },
      h("span", { class: "example-text" }, text), h("span", { class: "example-note" }, note))));
  return h("section", { class: "hint", data: { testid: "hint" }, "aria-label": "What is this?" }, close,
    h("h2", {}, "A stand-in for Slack, on your machine"),
    h("p", {}, "Nothing leaves it. The people are made up; the bot ", h("strong", {}, `@${store.bot.name}`),
      " is the real program, and talks to this page as it would to Slack."),
    h("ol", { class: "hint-steps" },
      h("li", {}, h("h3", {}, "Ask for something"), h("ul", { class: "examples" }, buttons)),
      isDirect(store) ? elsewhere(store, me, on) : together(others, me, about(store), on)));
}

/** How it goes on where other people are. */
function together(others, me, topic, on) {
  const switches = others.map((person) =>
    h("button", { type: "button", class: "button small", on: { click: () => on.act(person.id) } }, `Act as ${person.real_name}`));
  return [
    h("li", {}, h("h3", {}, "Open the thread"), h("p", {}, "The bot answers there, and puts a card where it needs a decision.")),
    h("li", {}, h("h3", {}, "Decide as somebody else"),
      h("p", {}, `The one who asks cannot approve it${me ? ` \u2013 that is ${me.real_name} now` : ""}. Switch the person at the top right.`),
      topic && h("p", {}, topic),
      h("div", { class: "hint-people" }, switches)),
  ];
}

/** How it goes on in a direct message, which nobody else can see. */
function elsewhere(store, me, on) {
  const [channel] = store.conversations("channel");
  return h("li", {}, h("h3", {}, "Decide in a channel"),
    h("p", {}, `Only ${me?.real_name ?? "you"} and the bot can see this direct message, and the one who asks cannot approve it. `,
      "Ask in a channel for what needs approval: there somebody else can decide."),
    channel && h("div", { class: "hint-people" },
      h("button", { type: "button", class: "button small", on: { click: () => on.open(channel.id) } }, `Open #${channel.name}`)));
}
