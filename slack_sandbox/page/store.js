// What the page knows: people, conversations, messages. No drawing here.

import { compareTs, setAhead, setZone } from "./format.js";

/** What a person filled in: block_id → action_id → value, in the shape of Slack's view state. */
export class Values {
  constructor() {
    this.map = new Map();
  }

  get(blockId, actionId) {
    return this.map.get(blockId)?.get(actionId);
  }

  set(blockId, actionId, value) {
    if (!this.map.has(blockId)) this.map.set(blockId, new Map());
    this.map.get(blockId).set(actionId, value);
  }

  /** Forget what is not asked for any more; what has the same ids stays as it was typed. */
  keepOnly(blocks) {
    const asked = new Set();
    for (const block of blocks ?? []) {
      for (const item of [block.element, block.accessory, ...(block.elements ?? [])]) {
        if (item?.action_id) asked.add(JSON.stringify([block.block_id, item.action_id]));
      }
    }
    for (const [blockId, actions] of this.map) {
      for (const actionId of actions.keys()) {
        if (!asked.has(JSON.stringify([blockId, actionId]))) actions.delete(actionId);
      }
    }
  }

  toJSON() {
    const entries = [...this.map].filter(([, actions]) => actions.size > 0);
    return Object.fromEntries(entries.map(([blockId, actions]) => [blockId, Object.fromEntries(actions)]));
  }
}

/** The state of one window: who it acts as and what that person sees. */
export class Store {
  constructor() {
    this.people = new Map();
    this.channels = new Map();
    this.groups = new Map();
    this.team = { id: "", name: "Sandbox" };
    this.bot = { user_id: "", name: "countersign", connected: true };
    this.surfaces = { commands: [], shortcuts: [], has_home: false };
    this.examples = [];
    this.guide = null;
    this.troubles = 0;
    this.ahead = null;
    this.me = "";
    this.channel = "";
    this.thread = "";
    this.tab = "messages";
    this.online = true;
    this.news = new Map();
    this.reset();
  }

  /** Forget what belongs to one person. */
  reset() {
    this.messages = new Map();
    this.threads = new Map();
    this.statuses = new Map();
    this.sessions = new Map();
    this.prompts = new Map();
    this.newReplies = new Map();
    this.warnings = new Map();
    this.typed = new Map();
    this.touched = null;
    this.home = null;
    this.homeValues = new Values();
    this.notified = 0;
  }

  /** Whether the open conversation is the one with the app, and the app has a Home tab. */
  get hasTabs() {
    const channel = this.channels.get(this.channel);
    return this.surfaces.has_home && channel?.kind === "im" && (channel.with ?? this.bot.user_id) === this.bot.user_id;
  }

  get isHome() {
    return this.hasTabs && this.tab === "home";
  }

  applyState(state) {
    this.team = state.team ?? this.team;
    this.bot = state.bot ?? this.bot;
    this.surfaces = state.surfaces ?? this.surfaces;
    this.examples = state.examples ?? [];
    this.guide = state.guide ?? null;
    this.troubles = state.troubles ?? 0;
    this.ahead = state.ahead ?? null;
    setAhead(this.ahead);
    this.me = state.me ?? this.me;
    setZone((state.people ?? []).find((person) => person.id === this.me)?.tz);
    this.people = new Map((state.people ?? []).map((person) => [person.id, person]));
    this.channels = new Map((state.channels ?? []).map((channel) => [channel.id, channel]));
    this.groups = new Map((state.groups ?? []).map((group) => [group.id, group]));
    for (const person of this.people.values()) {
      if (typeof person.unread === "number") this.news.set(person.id, person.unread);
    }
    this.news.set(this.me, 0);
  }

  /** The people one can act as. */
  get humans() {
    return [...this.people.values()].filter((person) => !person.bot);
  }

  /** Conversations of this person, channels first. */
  conversations(kind) {
    return [...this.channels.values()].filter((c) => c.member !== false && (c.kind === "im") === (kind === "im"));
  }

  /** The name to show for a conversation. */
  title(channel) {
    if (!channel) return "";
    if (channel.kind !== "im") return channel.name;
    const other = this.people.get(channel.with ?? this.bot.user_id);
    return other ? other.real_name || other.name : this.bot.name;
  }

  /** Who wrote a message; the bot may not be among the people. */
  author(message) {
    const person = this.people.get(message.user);
    if (person) return message.bot ? { ...person, bot: true } : person;
    if (message.bot) return { id: message.user, name: this.bot.name, real_name: this.bot.name, bot: true };
    return { id: message.user, name: message.user, real_name: message.user };
  }

  /** Look-ups for the drawing functions. */
  get names() {
    return {
      me: this.me,
      person: (id) => this.people.get(id) ?? (id === this.bot.user_id ? { id, real_name: this.bot.name, bot: true } : undefined),
      channel: (id) => this.channels.get(id),
      group: (id) => this.groups.get(id),
      people: () => [...this.people.values()],
      channels: () => this.conversations("channel"),
    };
  }

  /* ---- messages ------------------------------------------------------------------------ */

  #of(channel) {
    if (!this.messages.has(channel)) this.messages.set(channel, new Map());
    return this.messages.get(channel);
  }

  /** Call before asking for messages, so that events in between are not overwritten. */
  beginLoad() {
    this.touched = new Set();
  }

  load(channel, messages) {
    const touched = this.touched ?? new Set();
    const before = this.#of(channel);
    const next = new Map(messages.filter((m) => !touched.has(m.ts)).map((m) => [m.ts, m]));
    for (const ts of touched) if (before.has(ts)) next.set(ts, before.get(ts));
    this.messages.set(channel, next);
    this.threads.delete(channel);
    this.touched = null;
  }

  put(channel, message) {
    this.touched?.add(message.ts);
    this.threads.delete(channel);
    this.#of(channel).set(message.ts, message);
  }

  remove(channel, ts) {
    this.touched?.add(ts);
    const hasReplies = this.replies(channel, ts).length > 0;
    this.threads.delete(channel);
    const old = this.get(channel, ts);
    if (hasReplies && old) this.#of(channel).set(ts, { ...old, deleted: true, blocks: null, text: "" });
    else this.#of(channel).delete(ts);
  }

  get(channel, ts) {
    return this.messages.get(channel)?.get(ts);
  }

  #sorted(channel, test) {
    const all = [...(this.messages.get(channel)?.values() ?? [])];
    return all.filter(test).sort((a, b) => compareTs(a.ts, b.ts));
  }

  /** What the channel itself shows: no replies, except those also sent to the channel. */
  roots(channel) {
    return this.#sorted(channel, (m) => !isReply(m) || isBroadcast(m));
  }

  /** The replies below a message, oldest first. */
  replies(channel, root) {
    if (!this.threads.has(channel)) {
      const threads = new Map();
      for (const reply of this.#sorted(channel, isReply)) {
        if (!threads.has(reply.thread_ts)) threads.set(reply.thread_ts, []);
        threads.get(reply.thread_ts).push(reply);
      }
      this.threads.set(channel, threads);
    }
    return this.threads.get(channel).get(root) ?? [];
  }

  /** The status line of a thread, such as "is thinking…", or "". */
  status(channel, thread) {
    return this.statuses.get(`${channel}:${thread}`) ?? "";
  }

  /** The thread as a session of the agent: its title, and whether it can be stopped. */
  session(channel, thread) {
    return this.sessions.get(`${channel}:${thread}`) ?? { status: "", title: "" };
  }

  setSession({ channel, thread_ts: thread, status, title }) {
    this.sessions.set(`${channel}:${thread}`, { status, title });
  }

  setStatus(channel, thread, text) {
    const key = `${channel}:${thread}`;
    if (text) this.statuses.set(key, text);
    else this.statuses.delete(key);
  }

  /** What was typed or chosen inside one message. */
  valuesOf(channel, ts) {
    const key = `${channel}:${ts}`;
    if (!this.typed.has(key)) this.typed.set(key, new Values());
    return this.typed.get(key);
  }
}

/** Whether a message stands in a thread below another one. */
export function isReply(message) {
  return Boolean(message.thread_ts) && message.thread_ts !== message.ts;
}

/** Whether a reply was also sent to the channel. */
export function isBroadcast(message) {
  return message.broadcast === true || message.subtype === "thread_broadcast";
}
