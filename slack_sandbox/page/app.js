// Joins the parts: address bar, live events, drawing, and what a person does.

import { makeActions } from "./actions.js";
import { explain, Live, read, send } from "./api.js";
import { Composer } from "./frame/composer.js";
import {
  announce, drawIconSlots, fill, h, icon, keepFocusInside, memory, rememberFocus, restoreFocus,
} from "./dom.js";
import { avatar, count } from "./format.js";
import { drawPrompts, sessionTitle, stopButton } from "./frame/agentview.js";
import { Guide, isGuideOpen } from "./frame/guide.js";
import { drawHint, setHintOpen } from "./frame/hint.js";
import { bannerOf, introItem, tabs } from "./frame/header.js";
import { HomeTab } from "./frame/home.js";
import { HoverCard } from "./frame/hovercard.js";
import { watchPhone, watchTheme, watchTools } from "./frame/look.js";
import { messageLine, renderMessages, statusText } from "./messages.js";
import { Modals } from "./modal.js";
import { notice } from "./notices.js";
import { BellPanel } from "./panels/bell.js";
import { HelpPanel } from "./panels/help.js";
import { RosterPanel } from "./panels/roster.js";
import { TimePanel } from "./panels/time.js";
import { TroublePanel } from "./panels/trouble.js";
import { PersonSwitch } from "./frame/people.js";
import { Scroller } from "./scroller.js";
import { renderSidebar } from "./frame/sidebar.js";
import { isReply, Store } from "./store.js";

const byId = (id) => document.getElementById(id);
const store = new Store();
const drafts = new Map(JSON.parse(memory.session("drafts") ?? "[]"));
const narrow = window.matchMedia("(max-width: 899px)");
const parts = {};
const actions = makeActions(store, { asked: (ts) => { parts.asked = ts; store.replies(store.channel, ts).forEach(openOwnThread); }, changed: () => redraw("channel", "thread") });
let live = null;
let pending = new Set();

/* ---- address bar ------------------------------------------------------------------------ */

function wanted() {
  const query = new URLSearchParams(window.location.search);
  return { as: query.get("as") ?? "", channel: query.get("channel") ?? "", thread: query.get("thread") ?? "", tab: query.get("tab") ?? "" };
}

function writeAddress(push) {
  const query = new URLSearchParams({ as: store.me, channel: store.channel });
  if (store.thread) query.set("thread", store.thread);
  if (store.isHome) query.set("tab", "home");
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

/**
 * Become a person: forget everything of the one before, load, connect.
 *
 * @param {string} person @param {{channel?: string, thread?: string, tab?: string}} [where] @param {boolean} [push]
 */
async function become(person, { channel, thread, tab } = {}, push = false) {
  live?.close();
  keepDrafts();
  parts.modals.clear();
  byId("notices").replaceChildren();
  const known = await read("state", { as: person });
  if (!known.ok) {
    // Somebody who does not exist, as in an old address: begin as the first person.
    if (person && known.error !== "network") return become("", { channel, thread, tab });
    notice(explain(known), "error");
    setTimeout(() => become(person, { channel, thread, tab }), 2000);
    return;
  }
  store.reset();
  parts.asked = "";
  store.applyState(known);
  memory.set("person", store.me);
  const mine = [...store.conversations("channel"), ...store.conversations("im")];
  const target = mine.find((conversation) => conversation.id === channel) ?? mine[0];
  store.channel = target?.id ?? "";
  store.thread = target?.id === channel ? thread ?? "" : "";
  store.tab = tab === "home" ? "home" : "messages";
  restoreDrafts();
  parts.scroll.restart();
  parts.threadScroll.restart();
  writeAddress(push);
  redraw("all");
  connect();
  tellTab();
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
  view: ({ view }) => (view.type === "home" ? onHome(view) : parts.modals.show(view)),
  view_closed: (event) => parts.modals.hide(event.view_id, event.all),
  notification: () => { store.notified += 1; redraw("top"); },
  status: ({ channel, thread_ts: thread, text }) => {
    store.setStatus(channel, thread, text);
    if (text && thread === store.thread) announce(statusText(store, text));
    redraw("channel", "thread");
  },
  session: (event) => { store.setSession(event); redraw("thread"); },
  prompts: ({ channel, title, prompts }) => { store.prompts.set(channel, { title, prompts }); redraw("channel"); },
  notice: ({ text, level }) => notice(text, level),
  state: () => loadState(store.me),
};

function onHome(view) {
  store.home = view;
  if (store.isHome) redraw("channel");
}

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
  if (channel === store.channel) openOwnThread(message);
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

/** On a wide screen the thread opens when the bot answers what this window asked, perhaps before the sandbox does. */
function openOwnThread(message) {
  if (!message.bot || !isReply(message) || message.thread_ts !== parts.asked) return;
  parts.asked = "";
  if (!store.thread && !narrow.matches) openThread(message.thread_ts);
}

/* ---- going somewhere -------------------------------------------------------------------- */

function goTo(channel, thread = "") {
  if (channel !== store.channel) {
    keepDrafts();
    store.channel = channel;
    store.thread = thread;
    store.tab = "messages";
    parts.scroll.restart();
    parts.threadScroll.restart();
    restoreDrafts();
    const entry = store.channels.get(channel);
    if (entry) entry.unread = 0;
    loadMessages();
    tellTab();
  } else if (thread) {
    return openThread(thread);
  } else if (store.thread && narrow.matches) {
    closeThread();
  }
  toggleDrawer(false);
  writeAddress(true);
  redraw("all");
}

/** Tell the app which of its tabs is open, as Slack does each time. */
function tellTab() {
  if (store.hasTabs) send("home", { as: store.me, tab: store.tab });
}

function openTab(tab) {
  if (store.tab === tab) return;
  if (tab === "home" && store.thread) closeThread();
  store.tab = tab;
  writeAddress(true);
  tellTab();
  redraw("channel");
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
  memory.setSession("drafts", JSON.stringify([...drafts].filter(([, text]) => text)));
}

function restoreDrafts() {
  parts.composer.write(drafts.get(`${store.me}:${store.channel}:`) ?? "");
  parts.threadComposer.write(store.thread ? drafts.get(`${store.me}:${store.channel}:${store.thread}`) ?? "" : "");
}

function toggleDrawer(open) {
  const was = document.body.classList.contains("drawer-open");
  document.body.classList.toggle("drawer-open", open);
  byId("menu-toggle").setAttribute("aria-expanded", String(open));
  /** @type {HTMLElement | null} */
  const row = byId("sidebar").querySelector(".side-row.current, .side-row");
  if (open) setTimeout(() => row?.focus(), 0);
  else if (was) byId("menu-toggle").focus();
}

/* ---- drawing ---------------------------------------------------------------------------- */

function redraw(...what) {
  if (pending.size === 0) queueMicrotask(drawAll);
  what.forEach((part) => pending.add(part));
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
  parts.bell.render(store);
  parts.help.render(store);
  parts.guide.render();
  byId("tools-dot").hidden = store.troubles === 0 && store.notified === 0;
  byId("connection").textContent = store.online ? "" : "Reconnecting…";
}

function drawSide() {
  const unread = [...store.channels.values()].some((channel) => channel.unread > 0);
  byId("menu-dot").hidden = !unread;
  renderSidebar(byId("sidebar"), store, { open: (id) => goTo(id), close: () => toggleDrawer(false), changed: () => redraw("side") });
  const title = store.channel ? store.title(store.channels.get(store.channel)) : "";
  document.title = `${unread ? "* " : ""}${title ? `${title} - ` : ""}${store.team.name} (sandbox)`;
}

function view(place) {
  const isRoot = place === "thread" ? (message) => message.ts === store.thread : undefined;
  return { store, place, ...actions, openThread, isRoot, redraw: () => { forget(); redraw("channel", "thread"); } };
}

/** Make the lists draw every message anew, as when a choice was taken back. */
function forget() {
  document.querySelectorAll("article.message").forEach((node) => { /** @type {any} */ (node).itemSign = ""; });
}

function drawChannel() {
  const channel = store.channels.get(store.channel);
  drawHeader(channel);
  const messages = store.roots(store.channel);
  const { isHome } = store;
  parts.home.hidden = !isHome;
  parts.list.hidden = isHome;
  parts.scroll.node.classList.toggle("covered", isHome);
  if (isHome) parts.homeTab.render();
  drawHint(parts.hint, store, hints);
  drawPrompts(parts.prompts, store, hints);
  parts.hint.hidden ||= isHome || parts.guide.isFor(store.channel);
  renderMessages(parts.list, messages, view("channel"), [introItem(store, channel)]);
  settle(parts.scroll, messages);
}

function drawHeader(channel) {
  const title = store.title(channel);
  const mark = channel?.kind === "im" ? avatar({ bot: true }, "small") : icon("hash");
  const focus = rememberFocus(parts.header);
  fill(parts.header, h("h1", {}, mark, title), store.hasTabs ? tabs(store, openTab, parts.header) : channel?.topic && h("p", { class: "topic", title: channel.topic }, channel.topic));
  restoreFocus(parts.header, focus);
  parts.composer.label(`Message ${channel?.kind === "im" ? "" : "#"}${title}`);
  parts.composer.node.hidden = !isIn(channel) || channel.archived === true || store.isHome;
  fill(parts.banner, bannerOf(store, channel, actions.addBot));
  parts.banner.hidden = parts.banner.childNodes.length === 0;
}

const hints = {
  begin: (text) => { store.prompts.delete(store.channel); actions.post(text); redraw("channel"); },
  stop: async () => {
    const answer = await send("stop", { as: store.me, channel: store.channel, thread_ts: store.thread });
    if (!answer.ok) notice(explain(answer), "error");
  },
  try: (text) => { parts.composer.write(text); parts.composer.focus(); },
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
  const session = store.session(store.channel, store.thread);
  fill(parts.threadWhere, `${channel?.kind === "im" ? "" : "#"}${store.title(channel)}`, sessionTitle(session));
  renderMessages(parts.threadRoot, root ? [root] : [], view("thread"));
  const visible = replies.filter((reply) => !reply.ephemeral).length;
  parts.threadCount.textContent = visible > 0 ? count(visible, "reply", "replies") : "";
  renderMessages(parts.threadReplies, replies, view("thread"));
  const status = store.status(store.channel, store.thread);
  fill(parts.threadStatus, status && [h("span", { class: "pulse", "aria-hidden": "true" }), statusText(store, status)], stopButton(session, hints.stop));
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
  parts.bell = new BellPanel(byId("bell-toggle"), byId("bell"), (channel, thread) => goTo(channel, thread));
  parts.help = new HelpPanel(byId("help-toggle"), byId("help"), { examples: showHint, guide: () => parts.guide.open() });
  parts.guide = new Guide(byId("guide"), store, {
    go: (person, channel, thread) => become(person, { channel, thread }, true), changed: () => redraw("all"),
  });
  parts.cards = new HoverCard(byId("layers"), store);
  watchTheme(byId("theme"));
  watchPhone(byId("phone"), byId("columns"));
  parts.modals = new Modals(byId("layers"), store, () => parts.composer.focus());
  buildChannel();
  buildThread();
  byId("menu-toggle").addEventListener("click", () => toggleDrawer(!document.body.classList.contains("drawer-open")));
  watchTools(byId("tools-toggle"), byId("tools"));
  document.addEventListener("keydown", onKey);
  byId("sidebar").addEventListener("keydown", (event) => {
    if (document.body.classList.contains("drawer-open")) keepFocusInside(byId("sidebar"), event);
  });
  document.addEventListener("pointerdown", (event) => {
    const open = document.body.classList.contains("drawer-open");
    if (open && !/** @type {Element} */ (event.target).closest("#sidebar, #menu-toggle")) toggleDrawer(false);
  });
  window.addEventListener("popstate", onAddress);
  window.addEventListener("pagehide", keepDrafts);
  narrow.addEventListener("change", () => redraw("thread"));
  document.addEventListener("visibilitychange", lookForNews);
  setInterval(lookForNews, 8000);
}

function buildChannel() {
  parts.header = h("header", { class: "pane-head" });
  parts.banner = h("p", { class: "banner", role: "status", hidden: true });
  parts.list = h("div", { class: "messages", role: "log", "aria-live": "off", "aria-label": "Messages", tabindex: "0", data: { testid: "messages" } });
  parts.composer = new Composer({
    testid: "composer", id: "composer-input", label: "Message", send: (text) => actions.post(text),
    candidates: actions.candidates, commands: actions.commands, more: actions.shortcuts,
  });
  parts.home = h("div", { class: "home", tabindex: "0", role: "tabpanel", "aria-label": "Home", hidden: true, data: { testid: "home" } });
  parts.homeTab = new HomeTab(parts.home, store);
  parts.hint = h("div", { class: "hint", role: "group", "aria-label": "Examples", hidden: true, data: { testid: "hint" } });
  parts.prompts = h("div", { class: "hint prompts", role: "group", hidden: true, data: { testid: "prompts" } });
  parts.scroll = new Scroller(parts.list);
  byId("channel").append(parts.header, parts.banner, parts.home, parts.list, parts.scroll.node, parts.hint, parts.prompts, parts.composer.node);
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
    testid: "thread-composer", label: "Reply…", candidates: actions.candidates, broadcastLabel: "Also send to the channel",
    send: (text, broadcast) => actions.post(text, store.thread, broadcast),
  });
  parts.threadScroll = new Scroller(parts.threadList);
  byId("thread").append(head, parts.threadList, parts.threadScroll.node, parts.threadStatus, parts.threadComposer.node);
}

function showHint() {
  setHintOpen(true);
  if (narrow.matches && store.thread) closeThread();
  redraw("channel");
  setTimeout(() => parts.hint.querySelector("button")?.focus(), 20);
}

function onKey(event) {
  if (event.key !== "Escape" || event.defaultPrevented) return;
  if (document.querySelector(".overlay")) parts.modals.leave();
  else if (document.body.classList.contains("drawer-open")) toggleDrawer(false);
  else if (store.thread) closeThread();
}

function onAddress() {
  const { as, channel, thread, tab } = wanted();
  if (as && as !== store.me) become(as, { channel, thread, tab });
  else if (channel && channel !== store.channel) goTo(channel, thread);
  else if (thread !== store.thread) (thread ? openThread(thread) : closeThread());
  else openTab(tab || "messages");
}

/** Begin as the address says; else where the guide begins; else as the person of last time. */
async function begin() {
  const address = wanted();
  if (address.as) return become(address.as, address);
  const guide = isGuideOpen() ? (await read("state", {})).guide : null;
  return become(guide?.person ?? memory.get("person") ?? "", { ...address, channel: address.channel || guide?.channel });
}

build();
begin();
