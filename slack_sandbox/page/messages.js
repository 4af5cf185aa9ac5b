// One message, and lists of them that are redrawn only where something changed.

import { h, icon, rememberFocus, restoreFocus } from "./dom.js";
import { emoji } from "./blocks/emoji.js";
import { renderBlocks } from "./blocks/blocks.js";
import { avatar, clockTime, count, dayKey, dayName, fullTime } from "./format.js";
import { flatText, mrkdwn } from "./blocks/mrkdwn.js";
import { isBroadcast, isReply } from "./store.js";

const NEAR_S = 300;

/**
 * Draw messages into `list`.
 *
 * `view`: {store, place: "channel"|"thread", act, openThread}. Unchanged messages keep their elements,
 * so that a redraw never takes away the focus or a half-made choice.
 */
export function renderMessages(list, messages, view, before = []) {
  const items = [...before];
  let previous = null;
  for (const message of messages) {
    if (!previous || dayKey(previous.ts) !== dayKey(message.ts)) items.push(dayItem(message.ts));
    items.push(messageItem(message, previous, view));
    previous = message;
  }
  reconcile(list, items);
}

/** Something in a list: `key` says which, `sign` says in which state, `draw` makes it. */
function dayItem(ts) {
  const name = dayName(ts);
  const draw = () => h("div", { class: "day", role: "separator", "aria-label": name }, h("span", {}, name));
  return { key: `day-${dayKey(ts)}`, sign: name, draw };
}

function messageItem(message, previous, view) {
  const { store } = view;
  const replies = view.place === "channel" && !isReply(message) ? store.replies(store.channel, message.ts) : [];
  const facts = {
    compact: isCompact(message, previous, view),
    replies: replies.filter((reply) => !reply.ephemeral),
    hidden: replies.filter((reply) => reply.ephemeral).length,
    fresh: store.newReplies.get(message.ts) ?? 0,
    status: view.place === "channel" ? store.status(store.channel, message.ts) : "",
    open: view.place === "channel" && store.thread === message.ts,
    folded: view.place === "channel" && isReply(message) && store.thread === message.thread_ts,
    warning: store.warnings.get(`${store.channel}:${message.ts}`) ?? "",
  };
  const sign = JSON.stringify([message, facts.compact, facts.replies.map((r) => [r.ts, r.user]), facts.hidden, facts.fresh,
    facts.status, facts.open, facts.folded, facts.warning, store.me, store.people.size]);
  return { key: message.ts, sign, draw: () => drawMessage(message, facts, view) };
}

function isCompact(message, previous, view) {
  if (!previous || message.ephemeral || previous.ephemeral || message.deleted || previous.deleted) return false;
  if (previous.user !== message.user || dayKey(previous.ts) !== dayKey(message.ts)) return false;
  if (view.place === "channel" && view.store.replies(view.store.channel, previous.ts).length > 0) return false;
  return Number.parseFloat(message.ts) - Number.parseFloat(previous.ts) < NEAR_S;
}

function reconcile(list, items) {
  const old = new Map([...list.children].map((node) => [node.itemKey, node]));
  let cursor = list.firstElementChild;
  for (const item of items) {
    let node = old.get(item.key);
    old.delete(item.key);
    if (node && node.itemSign === item.sign) {
      if (node === cursor) cursor = cursor.nextElementSibling;
      else list.insertBefore(node, cursor);
      continue;
    }
    const fresh = item.draw();
    fresh.itemKey = item.key;
    fresh.itemSign = item.sign;
    if (node) {
      if (node === cursor) cursor = cursor.nextElementSibling;
      swap(node, fresh);
    } else {
      list.insertBefore(fresh, cursor);
    }
  }
  old.forEach((node) => node.remove());
}

function swap(node, fresh) {
  const focus = rememberFocus(node);
  const held = node.contains(document.activeElement);
  fresh.classList.add("redrawn");
  node.replaceWith(fresh);
  if (held && !restoreFocus(fresh, focus)) fresh.focus({ preventScroll: true });
}

/* ---- one message ------------------------------------------------------------------------ */

function drawMessage(message, facts, view) {
  const author = view.store.author(message);
  const classes = ["message", facts.compact && "compact", message.ephemeral && "is-ephemeral", facts.open && "thread-is-open", view.isRoot?.(message) && "thread-root"];
  const copy = view.place === "channel" && isReply(message);
  const testid = copy ? `broadcast-${message.ts}` : view.isRoot?.(message) ? "thread-root" : `message-${message.ts}`;
  const content = h("div", { class: "content", data: message.ephemeral ? { testid: "ephemeral" } : {} },
    message.ephemeral && h("div", { class: "ephemeral-label" }, icon("eye"), "Only visible to you"),
    !facts.compact && meta(author, message),
    copy && h("button", { type: "button", class: "replied-to", on: { click: () => view.openThread(message.thread_ts) } }, "replied to a thread"),
    // The thread beside it has the whole message: a card has its buttons once on the page.
    facts.folded ? h("div", { class: "text folded" }, summary(view.store, message)) : body(message, view),
    facts.warning && h("div", { class: "app-warning", role: "alert", data: { testid: "app-warning" } }, icon("warn"), facts.warning),
    reactions(message, view), threadBar(message, facts, view));
  return h("article", {
    class: classes.filter(Boolean).join(" "), tabindex: "-1", data: { testid, ts: message.ts },
    "aria-label": `${author.real_name || author.name}, ${clockTime(message.ts)}`,
  }, gutter(author, message, facts), content, toolbar(message, facts, view));
}

function gutter(author, message, facts) {
  if (!facts.compact) return h("div", { class: "gutter" }, avatar(author));
  return h("div", { class: "gutter" }, h("time", { class: "gutter-time", title: fullTime(message.ts) }, clockTime(message.ts).replace(/\s*[ap]\.?m\.?$/i, "")));
}

function meta(author, message) {
  return h("div", { class: "meta" },
    h("button", { type: "button", class: "author", data: { userId: author.id } }, author.real_name || author.name),
    author.bot && h("span", { class: "app-badge" }, "App"),
    author.guest && h("span", { class: "app-badge" }, "Guest"),
    author.stranger && h("span", { class: "app-badge" }, "Other company"),
    h("time", { class: "time", title: fullTime(message.ts) }, clockTime(message.ts)));
}

function body(message, view) {
  if (message.deleted) return h("div", { class: "body deleted" }, "This message was deleted.");
  const { store } = view;
  const root = h("div", { class: "body" });
  if (message.blocks?.length > 0) {
    const values = store.valuesOf(store.channel, message.ts);
    values.keepOnly(message.blocks);
    const ctx = {
      names: store.names, values, redraw: view.redraw,
      act: (item, blockId, value) => view.act(message, item, blockId, value),
      suggest: (item, blockId, typed) => view.suggest(message, item, blockId, typed),
    };
    root.append(h("div", { class: "blocks" }, renderBlocks(message.blocks, ctx)));
  } else {
    root.append(h("div", { class: "text" }, mrkdwn(message.text, store.names)));
  }
  if (message.streaming) writingPlace(root).append(h("span", { class: "cursor", role: "img", "aria-label": "still writing" }));
  if (message.edited) root.append(h("span", { class: "edited" }, "(edited)"));
  return root;
}

function writingPlace(root) {
  let place = root.querySelector(".text") ?? root.querySelector(".blocks") ?? root;
  while (place.lastElementChild?.matches(".block, .rich-section, p, ul, ol, li")) place = place.lastElementChild;
  return place;
}

/** Who reacted with what; one's own can be taken back. */
function reactions(message, view) {
  if (!message.reactions?.length || message.deleted) return null;
  const { store } = view;
  const chips = message.reactions.map(({ name, users }) => {
    const own = users.includes(store.me);
    const people = users.map((id) => store.names.person(id)).map((person) => person?.real_name || person?.name || "Somebody").join(", ");
    return h("button", {
      type: "button", class: own ? "reaction own" : "reaction", "aria-pressed": String(own), title: `${people} reacted with :${name}:`,
      "aria-label": `${name.replaceAll("_", " ")}: ${count(users.length, "reaction", "reactions")}, ${people}`,
      data: { testid: `reaction-${name}` }, on: { click: () => view.react(message, name) },
    }, emoji(name), h("span", { class: "reaction-count" }, users.length));
  });
  const more = h("button", {
    type: "button", class: "reaction reaction-add", "aria-label": "Add a reaction", "aria-haspopup": "menu", "aria-expanded": "false",
    on: { click: (event) => view.pick(message, event.currentTarget) },
  }, icon("smile"));
  return h("div", { class: "reactions", role: "group", "aria-label": "Reactions" }, chips, more);
}

function threadBar(message, facts, view) {
  const { replies, hidden, fresh, status } = facts;
  if (view.place !== "channel" || (replies.length === 0 && hidden === 0 && !status)) return null;
  const authors = [...new Map(replies.map((reply) => [reply.user, view.store.author(reply)])).values()].slice(-3);
  const last = replies[replies.length - 1];
  const text = replies.length > 0 ? count(replies.length, "reply", "replies") : hidden > 0 ? "For your eyes only" : "Thread";
  return h("button", {
    type: "button", class: "thread-bar", data: { testid: `thread-open-${message.ts}` }, on: { click: () => view.openThread(message.ts) },
  },
  authors.map((author) => avatar(author, "small")),
  h("span", { class: "thread-count" }, text),
  fresh > 0 && h("span", { class: "badge" }, `${fresh} new`),
  status ? h("span", { class: "thread-status" }, statusText(view.store, status))
    : last && h("span", { class: "thread-last" }, `Last reply ${dayName(last.ts).toLowerCase()} at ${clockTime(last.ts)}`));
}

function toolbar(message, facts, view) {
  if (message.ephemeral || message.deleted) return null;
  const hasBar = facts.replies.length > 0 || facts.hidden > 0 || facts.status;
  const root = message.thread_ts || message.ts;
  const tool = (sign, label, testid, run, popup) => h("button", {
    type: "button", class: "icon-button", "aria-label": label, title: label, data: { testid },
    "aria-haspopup": popup ? "menu" : null, "aria-expanded": popup ? "false" : null,
    on: { click: (event) => run(event.currentTarget) },
  }, icon(sign));
  const opener = hasBar || isBroadcast(message) ? `thread-reply-${message.ts}` : `thread-open-${message.ts}`;
  return h("div", { class: "toolbar" },
    tool("smile", "Add a reaction", `react-${message.ts}`, (anchor) => view.pick(message, anchor), true),
    view.place === "channel" && tool("reply", "Reply in thread", opener, () => view.openThread(root, true)),
    tool("more", "More actions", `more-${message.ts}`, (anchor) => view.more(message, anchor), true));
}

/** "countersign is thinking…" */
export function statusText(store, text) {
  return `${store.bot.name} ${text}`;
}

/** One line for screen readers and notices. */
export function messageLine(store, message) {
  const author = store.author(message);
  return `${author.real_name || author.name}: ${summary(store, message)}`;
}

function summary(store, message) {
  const text = flatText(message.text, store.names);
  return text.length > 140 ? `${text.slice(0, 140)}…` : text;
}
