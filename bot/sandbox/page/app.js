// Joins the parts: address bar, live events, drawing, and what a person does.

import { explain, Live, read, send } from "./api.js";
import { Composer } from "./composer.js";
import { announce, drawIconSlots, fill, h, icon, keepFocusInside, memory } from "./dom.js";
import { avatar, count } from "./format.js";
import { hintItem, isHintOpen, setHintOpen } from "./hint.js";
import { messageLine, renderMessages, statusText } from "./messages.js";
import { Modals } from "./modal.js";
import { notice } from "./notices.js";
import { RosterPanel } from "./panels/roster.js";
import { TimePanel } from "./panels/time.js";
import { TroublePanel } from "./panels/trouble.js";
import { PersonSwitch } from "./people.js";
import { Scroller } from "./scroller.js";
import { renderSidebar } from "./sidebar.js";
import { isReply, Store } from "./store.js";

const byId = (id) => document.getElementById(id);
const store = new Store();
const drafts = new Map();
const narrow = window.matchMedia("(max-width: 899px)");
const parts = {};
let live = null;
let pending = new Set();

/* ---- address bar ------------------------------------------------------------------------ */

function wanted() {
  const query = new URLSearchParams(window.location.search);
  return { as: query.get("as") ?? "", channel: query.get("channel") ?? "", thread: query.get("thread") ?? "" };
}

function writeAddress(push) {
  const query = new URLSearchParams({ as: store.me, channel: store.channel });
  if (store.thread) query.set("thread", store.thread);
  const url = `${window.location.pathname}?${query}`;
  if (url === window.location.pathname + window.location.search) return;
  window.history[push ? "pushState" : "replaceState"](null, "", url);
}

/* ---- loading ---------------------------------------------------------------------------- */

async function loadState(person) {
  const state = await read("state", { as: person });
  if (!state.ok) return false;
  const wasIn = isIn(store.channels.get(store.channel));
  const before = store.ahead;
  store.applyState(state);
  if (store.ahead !== before) forget();
  const open = store.channels.get(store.channel);
  if (open) open.unread = 0;
  if (isIn(open) && !wasIn) loadMessages();
  redraw("all");
  return true;
}

function isIn(channel) {
  return channel !== undefined && channel.member !== false;
}

async function loadMessages() {
  const { channel, me } = store;
  if (!isIn(store.channels.get(channel))) return;
  store.beginLoad();
  const answer = await read("messages", { as: me, channel });
  if (me !== store.me) return;
  if (answer.ok) store.load(channel, answer.messages ?? []);
  else notice(explain(answer), "error");
  redraw("channel", "thread");
}

/** Become a person: forget everything of the one before, load, connect. */
async function become(person, { channel, thread } = {}, push = false) {
  live?.close();
  keepDrafts();
  parts.modals.clear();
  byId("notices").replaceChildren();
  const known = await read("state", { as: person });
  if (!known.ok) {
    // Somebody who does not exist, as in an old address: begin as the first person.
    if (person && known.error !== "network") return become("", { channel, thread });
    notice(explain(known), "error");
    setTimeout(() => become(person, { channel, thread }), 2000);
    return;
  }
  store.reset();
  store.applyState(known);
  memory.set("person", store.me);
  const mine = [...store.conversations("channel"), ...store.conversations("im")];
  const target = mine.find((one) => one.id === channel) ?? mine[0];
  store.channel = target?.id ?? "";
  store.thread = target?.id === channel ? thread ?? "" : "";
  restoreDrafts();
  parts.scroll.restart();
  parts.threadScroll.restart();
  writeAddress(push);
  redraw("all");
  connect();
}

function connect() {
  const me = store.me;
  live = new Live(me, {
    event: receive,
    up: () => {
      store.online = true;
      store.statuses.clear();
      loadState(me).then(() => loadMessages());
    },
    down: () => { store.online = false; redraw("top"); },
  });
}

/** Ask again what the others have: the page hears only what this person may see. */
async function lookForNews() {
  if (document.hidden || !store.online || !store.me) return;
  const others = store.humans.filter((person) => person.id !== store.me && typeof person.unread !== "number");
  await Promise.all(others.map(async (person) => {
    const state = await read("state", { as: person.id });
    if (!state.ok) return;
    const unread = (state.channels ?? []).reduce((sum, channel) => sum + (channel.unread ?? 0), 0);
    store.news.set(person.id, unread);
  }));
  redraw("top");
}

/* ---- live events ------------------------------------------------------------------------ */

const EVENTS = {
  message: onMessage,
  message_changed: ({ channel, message }) => { store.put(channel, message); redraw("channel", "thread"); },
  message_deleted: ({ channel, ts }) => { store.remove(channel, ts); redraw("channel", "thread"); },
  view: ({ view }) => parts.modals.show(view),
  view_closed: (event) => parts.modals.hide(event.view_id, event.all),
  view_errors: (event) => parts.modals.fail(event.view_id, event.errors),
  status: ({ channel, thread_ts: thread, text }) => {
    store.setStatus(channel, thread, text);
    if (text && thread === store.thread) announce(statusText(store, text));
    redraw("channel", "thread");
  },
  notice: ({ text, level }) => notice(text, level),
  state: () => loadState(store.me),
};

function receive(event) {
  const act = EVENTS[event.type];
  if (act) act(event);
  clearTimeout(parts.newsTimer);
  parts.newsTimer = setTimeout(lookForNews, 300);
}

function onMessage({ channel, message }) {
  store.put(channel, message);
  if (message.bot && message.thread_ts) store.setStatus(channel, message.thread_ts, "");
  const own = message.user === store.me;
  const seen = isSeen(channel, message);
  if (!own && !seen) markNew(channel, message);
  if (!own && !message.streaming && channel === store.channel) announce(messageLine(store, message));
  openOwnThread(channel, message);
  redraw("channel", "thread", "side");
}

function isSeen(channel, message) {
  if (channel !== store.channel) return false;
  if (isReply(message)) return message.thread_ts === store.thread;
  return !(narrow.matches && store.thread);
}

function markNew(channel, message) {
  const entry = store.channels.get(channel);
  if (entry && channel !== store.channel) entry.unread = (entry.unread ?? 0) + 1;
  if (isReply(message)) store.newReplies.set(message.thread_ts, (store.newReplies.get(message.thread_ts) ?? 0) + 1);
  if (message.ephemeral) {
    const where = { label: "Show", run: () => goTo(channel, isReply(message) ? message.thread_ts : "") };
    notice(`Only visible to you. ${messageLine(store, message)}`, "info", where);
  }
}

/** On a wide screen the thread opens by itself when the bot answers what this window just asked. */
function openOwnThread(channel, message) {
  if (!message.bot || !isReply(message) || message.thread_ts !== parts.asked || channel !== store.channel) return;
  parts.asked = "";
  if (!store.thread && !narrow.matches) openThread(message.thread_ts);
}

/* ---- going somewhere -------------------------------------------------------------------- */

function goTo(channel, thread = "") {
  if (channel !== store.channel) {
    keepDrafts();
    store.channel = channel;
    store.thread = thread;
    parts.scroll.restart();
    parts.threadScroll.restart();
    restoreDrafts();
    const entry = store.channels.get(channel);
    if (entry) entry.unread = 0;
    loadMessages();
  } else if (thread) {
    return openThread(thread);
  } else if (store.thread && narrow.matches) {
    closeThread();
  }
  toggleDrawer(false);
  writeAddress(true);
  redraw("all");
}

function openThread(ts, focus = false) {
  keepDrafts();
  store.thread = ts;
  store.newReplies.delete(ts);
  parts.threadScroll.restart();
  restoreDrafts();
  writeAddress(true);
  redraw("channel", "thread", "top");
  if (focus) setTimeout(() => parts.threadComposer.focus(), 0);
  else if (narrow.matches) setTimeout(() => parts.threadList.focus(), 0);
}

function closeThread() {
  const ts = store.thread;
  keepDrafts();
  store.thread = "";
  writeAddress(true);
  redraw("channel", "thread");
  setTimeout(() => {
    const opener = document.querySelector(`[data-testid="thread-open-${CSS.escape(ts)}"]`);
    (opener ?? parts.composer.area).focus();
  }, 0);
}

function keepDrafts() {
  if (!store.channel || !parts.composer) return;
  drafts.set(`${store.me}:${store.channel}:`, parts.composer.text);
  if (store.thread) drafts.set(`${store.me}:${store.channel}:${store.thread}`, parts.threadComposer.text);
}

function restoreDrafts() {
  parts.composer.write(drafts.get(`${store.me}:${store.channel}:`) ?? "");
  parts.threadComposer.write(store.thread ? drafts.get(`${store.me}:${store.channel}:${store.thread}`) ?? "" : "");
}

function toggleDrawer(open) {
  const was = document.body.classList.contains("drawer-open");
  document.body.classList.toggle("drawer-open", open);
  byId("menu-toggle").setAttribute("aria-expanded", String(open));
  if (open) setTimeout(() => byId("sidebar").querySelector(".side-row.current, .side-row")?.focus(), 0);
  else if (was) byId("menu-toggle").focus();
}

/* ---- what a person does ----------------------------------------------------------------- */

async function post(text, thread = "", broadcast = false) {
  const { me, channel } = store;
  const command = /^\/([\w-]+)(?:\s+([\s\S]*))?$/.exec(text.trim());
  const answer = command && !thread
    ? await send("command", { as: me, channel, command: `/${command[1]}`, text: command[2] ?? "" })
    : await send("post", { as: me, channel, text, ...(thread && { thread_ts: thread }), ...(broadcast && { broadcast }) });
  if (!answer.ok) notice(explain(answer), "error");
  else if (answer.ts && !thread) parts.asked = answer.ts;
  return answer.ok;
}

async function act(message, item, blockId, value) {
  const { channel, me } = store;
  const key = `${channel}:${message.ts}`;
  store.warnings.delete(key);
  const answer = await send("action", {
    as: me, channel, ts: message.ts, block_id: blockId, action_id: item.action_id, type: item.type, ...value,
    values: store.valuesOf(channel, message.ts),
  });
  if (!answer.ok) store.warnings.set(key, explain(answer));
  redraw("channel", "thread");
}

function candidates() {
  const bot = { id: store.bot.user_id, name: store.bot.name, real_name: store.bot.name, bot: true };
  return [bot, ...store.humans.filter((person) => person.id !== store.me)];
}

/* ---- drawing ---------------------------------------------------------------------------- */

function redraw(...what) {
  if (pending.size === 0) queueMicrotask(drawAll);
  what.forEach((one) => pending.add(one));
}

function drawAll() {
  const what = pending;
  pending = new Set();
  const due = (name) => what.has("all") || what.has(name);
  if (due("top")) drawTop();
  if (due("side") || due("top")) drawSide();
  if (due("channel")) drawChannel();
  if (due("thread")) drawThread();
}

function drawTop() {
  parts.people.render(store);
  parts.roster.render(store);
  parts.time.render(store);
  parts.trouble.render(store);
  byId("connection").textContent = store.online ? "" : "Connecting again…";
}

function drawSide() {
  const unread = [...store.channels.values()].some((channel) => channel.unread > 0);
  byId("menu-dot").hidden = !unread;
  renderSidebar(byId("sidebar"), store, { open: (id) => goTo(id), close: () => toggleDrawer(false) });
  const title = store.channel ? store.title(store.channels.get(store.channel)) : "";
  document.title = `${unread ? "* " : ""}${title ? `${title} - ` : ""}${store.team.name} (sandbox)`;
}

function view(place) {
  const isRoot = place === "thread" ? (message) => message.ts === store.thread : undefined;
  return { store, place, act, openThread, isRoot, redraw: () => { forget(); redraw("channel", "thread"); } };
}

/** Make the lists draw every message anew, as when a choice was taken back. */
function forget() {
  document.querySelectorAll("article.message").forEach((node) => { node.itemSign = ""; });
}

function drawChannel() {
  const channel = store.channels.get(store.channel);
  drawHeader(channel);
  const before = [introItem(channel), ...(isHintOpen() ? [hintItem(store, hints)] : [])];
  const messages = store.roots(store.channel);
  renderMessages(parts.list, messages, view("channel"), before);
  settle(parts.scroll, messages);
}

function drawHeader(channel) {
  const title = store.title(channel);
  const mark = channel?.kind === "im" ? avatar({ bot: true }, "small") : icon("hash");
  fill(parts.header, h("h1", {}, mark, title), channel?.topic && h("p", { class: "topic" }, channel.topic));
  parts.composer.label(`Message ${channel?.kind === "im" ? "" : "#"}${title}`);
  parts.composer.node.hidden = !isIn(channel) || channel.archived === true;
  fill(parts.banner, channel?.archived && "This channel is archived.", channel && !isIn(channel) && "You are not in this channel.",
    !channel?.archived && isIn(channel) && !store.bot.connected && `${store.bot.name} is not connected. It will answer when the bot runs.`);
  parts.banner.hidden = parts.banner.childNodes.length === 0;
}

function introItem(channel) {
  const name = store.title(channel);
  const text = channel?.kind === "im" ? `This is your conversation with ${name}.` : `This is the start of #${name}.`;
  return { key: "intro", sign: text, draw: () => h("div", { class: "intro" }, h("p", {}, text)) };
}

const hints = {
  try: (text) => { parts.composer.write(text); parts.composer.focus(); },
  act: (person) => become(person, { channel: store.channel, thread: store.thread }, true),
  open: (channel) => goTo(channel),
  close: () => { setHintOpen(false); redraw("channel"); parts.composer.focus(); },
};

function drawThread() {
  const pane = byId("thread");
  pane.hidden = !store.thread;
  byId("channel").inert = Boolean(store.thread) && narrow.matches;
  document.body.classList.toggle("thread-open", Boolean(store.thread));
  if (!store.thread) return;
  const root = store.get(store.channel, store.thread);
  const replies = store.replies(store.channel, store.thread);
  const channel = store.channels.get(store.channel);
  fill(parts.threadWhere, `${channel?.kind === "im" ? "" : "#"}${store.title(channel)}`);
  renderMessages(parts.threadRoot, root ? [root] : [], view("thread"));
  const visible = replies.filter((reply) => !reply.ephemeral).length;
  parts.threadCount.textContent = visible > 0 ? count(visible, "reply", "replies") : "";
  renderMessages(parts.threadReplies, replies, view("thread"));
  const status = store.status(store.channel, store.thread);
  fill(parts.threadStatus, status && [h("span", { class: "pulse", "aria-hidden": "true" }), statusText(store, status)]);
  parts.threadComposer.fit();
  settle(parts.threadScroll, replies);
}

function settle(scroll, messages) {
  const last = messages[messages.length - 1];
  if (!last && scroll === parts.scroll) scroll.list.scrollTop = 0;
  else scroll.settle(last?.ts, last?.user === store.me);
}

/* ---- building the page once ------------------------------------------------------------- */

function build() {
  drawIconSlots(document.body);
  parts.people = new PersonSwitch(byId("person"), byId("news"), (id) =>
    become(id, { channel: store.channel, thread: store.thread }, true));
  parts.roster = new RosterPanel(byId("roster-toggle"), byId("roster"));
  parts.time = new TimePanel(byId("time-toggle"), byId("time"));
  parts.trouble = new TroublePanel(byId("trouble-toggle"), byId("trouble"));
  parts.modals = new Modals(byId("layers"), store, () => parts.composer.focus());
  buildChannel();
  buildThread();
  byId("menu-toggle").addEventListener("click", () => toggleDrawer(!document.body.classList.contains("drawer-open")));
  byId("help").addEventListener("click", showHint);
  document.addEventListener("keydown", onKey);
  byId("sidebar").addEventListener("keydown", (event) => {
    if (document.body.classList.contains("drawer-open")) keepFocusInside(byId("sidebar"), event);
  });
  document.addEventListener("pointerdown", (event) => {
    const open = document.body.classList.contains("drawer-open");
    if (open && !event.target.closest("#sidebar, #menu-toggle")) toggleDrawer(false);
  });
  window.addEventListener("popstate", onAddress);
  narrow.addEventListener("change", () => redraw("thread"));
  document.addEventListener("visibilitychange", lookForNews);
  setInterval(lookForNews, 8000);
}

function buildChannel() {
  parts.header = h("header", { class: "pane-head" });
  parts.banner = h("p", { class: "banner", role: "status", hidden: true });
  parts.list = h("div", { class: "messages", role: "log", "aria-live": "off", "aria-label": "Messages", tabindex: "0", data: { testid: "messages" } });
  parts.composer = new Composer({ testid: "composer", id: "composer-input", label: "Message", send: (text) => post(text), candidates });
  parts.scroll = new Scroller(parts.list);
  byId("channel").append(parts.header, parts.banner, parts.list, parts.scroll.node, parts.composer.node);
}

function buildThread() {
  parts.threadWhere = h("span", { class: "thread-where" });
  parts.threadRoot = h("div", {});
  parts.threadReplies = h("div", {});
  parts.threadCount = h("span", {});
  parts.threadStatus = h("p", { class: "status-line", role: "status", data: { testid: "thread-status" } });
  const close = h("button", { type: "button", class: "icon-button", "aria-label": "Close thread", data: { testid: "thread-close" }, on: { click: closeThread } }, icon("close"));
  const head = h("header", { class: "pane-head" }, h("h1", {}, "Thread", parts.threadWhere), close);
  parts.threadList = h("div", { class: "messages", role: "log", "aria-live": "off", "aria-label": "Thread messages", tabindex: "0" },
    parts.threadRoot, h("div", { class: "reply-count" }, parts.threadCount), parts.threadReplies);
  parts.threadComposer = new Composer({
    testid: "thread-composer", label: "Reply…", candidates, broadcastLabel: "Also send to the channel",
    send: (text, broadcast) => post(text, store.thread, broadcast),
  });
  parts.threadScroll = new Scroller(parts.threadList);
  byId("thread").append(head, parts.threadList, parts.threadScroll.node, parts.threadStatus, parts.threadComposer.node);
}

function showHint() {
  const open = !isHintOpen() || !parts.list.querySelector("[data-testid='hint']");
  setHintOpen(true);
  if (open) redraw("channel");
  if (narrow.matches && store.thread) closeThread();
  setTimeout(() => { parts.scroll.toTop(); parts.list.querySelector(".example")?.focus(); }, 20);
}

function onKey(event) {
  if (event.key !== "Escape" || event.defaultPrevented || document.querySelector(".overlay")) return;
  if (document.body.classList.contains("drawer-open")) toggleDrawer(false);
  else if (store.thread) closeThread();
}

function onAddress() {
  const { as, channel, thread } = wanted();
  if (as && as !== store.me) become(as, { channel, thread });
  else if (channel && channel !== store.channel) goTo(channel, thread);
  else if (thread !== store.thread) (thread ? openThread(thread) : closeThread());
}

build();
const first = wanted();
become(first.as || memory.get("person") || "", first);
