// What a person does in the open conversation: writing, clicking, commands, shortcuts, reactions.

import { explain, send } from "./api.js";
import { emoji, isEmoji } from "./blocks/emoji.js";
import { avatar } from "./format.js";
import { openMenu } from "./frame/menus.js";
import { editDialog, notice } from "./notices.js";

const REACTIONS = ["+1", "eyes", "white_check_mark", "tada", "heart", "raised_hands", "pray", "question", "x"];
const INVITE = { name: "/invite", usage_hint: "@name", description: "Add somebody, or an app, to this channel" };

/**
 * The doings of one window.
 *
 * `store` says who acts and where; `asked(ts)` hears of a message of this person that begins a thread, `changed()` of what to draw anew.
 */
export function makeActions(store, { asked, changed }) {
  async function post(text, thread = "", broadcast = false) {
    const { me, channel } = store;
    const command = /^\/([\w-]+)(?:\s+([\s\S]*))?$/.exec(text.trim());
    if (command) return runCommand(`/${command[1]}`, command[2] ?? "", thread);
    const answer = await send("post", { as: me, channel, text, ...(thread && { thread_ts: thread }), ...(broadcast && { broadcast }) });
    if (!answer.ok) notice(explain(answer), "error");
    else if (answer.ts && !thread && store.me === me) asked(answer.ts);
    return answer.ok;
  }

  async function runCommand(command, text, thread) {
    const { me, channel } = store;
    const answer = thread ? { ok: false, error: "not_in_thread" } : await send("command", { as: me, channel, command, text });
    if (!answer.ok) notice(explain(answer), "error");
    const names = (answer.invited ?? []).map((id) => store.names.person(id)).map((person) => person?.real_name || person?.name);
    if (names.length > 0) notice(`${names.join(", ")} can read and write in #${store.title(store.channels.get(channel))} now.`, "success");
    return answer.ok;
  }

  async function react(message, name) {
    const answer = await send("react", { as: store.me, channel: store.channel, ts: message.ts, name });
    if (!answer.ok) notice(explain(answer), "error");
  }

  function suggest(message, item, blockId, typed) {
    const where = { channel: store.channel, ts: message.ts, block_id: blockId, action_id: item.action_id };
    return send("suggest", { as: store.me, ...where, value: typed });
  }

  async function runShortcut(shortcut, message) {
    const where = message ? { channel: store.channel, ts: message.ts } : {};
    const answer = await send("shortcut", { as: store.me, callback_id: shortcut.callback_id, ...where });
    if (!answer.ok) notice(explain(answer), "error");
  }

  function shortcuts(type, message) {
    const fitting = store.surfaces.shortcuts.filter((shortcut) => shortcut.type === type);
    return fitting.map((shortcut) => ({
      label: shortcut.name, note: shortcut.description || store.bot.name, sign: avatar({ bot: true }, "tiny"), testid: `shortcut-${shortcut.callback_id}`,
      run: () => runShortcut(shortcut, message),
    }));
  }

  /** The menu of the composer's +. */
  function moreOf(anchor) {
    const items = shortcuts("global");
    openMenu(anchor, [{ heading: items.length > 0 ? "Shortcuts" : "No app has a shortcut here" }, ...items], { label: "Shortcuts" });
  }

  /** The menu of a message. */
  function moreOfMessage(message, anchor) {
    const own = message.user === store.me && !message.bot;
    const link = `${window.location.origin}/archives/${store.channel}/p${message.ts.replace(".", "")}`;
    openMenu(anchor, [
      ...shortcuts("message", message),
      { label: "Copy link", run: () => navigator.clipboard?.writeText(link).then(() => notice("The link is copied.")) },
      ...(own ? [{ label: "Edit message", run: () => editMessage(message) }, { label: "Delete message", run: () => deleteMessage(message) }] : []),
    ], { label: "Message" });
  }

  async function editMessage(message) {
    const text = await editDialog(message.typed ?? "");
    if (text === null) return;
    const answer = await send("edit", { as: store.me, channel: store.channel, ts: message.ts, text });
    if (!answer.ok) notice(explain(answer), "error");
  }

  async function deleteMessage(message) {
    const answer = await send("delete", { as: store.me, channel: store.channel, ts: message.ts });
    if (!answer.ok) notice(explain(answer), "error");
  }

  function pickReaction(message, anchor) {
    const names = REACTIONS.filter(isEmoji);
    openMenu(anchor, names.map((name) => ({ label: emoji(name), run: () => react(message, name), testid: `pick-${name}` })), { label: "Reactions", look: "picker" });
  }

  async function addBot() {
    await runCommand(INVITE.name, `@${store.bot.name}`, "");
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
    changed();
  }

  function commands() {
    return [...store.surfaces.commands, INVITE];
  }

  function candidates() {
    const bot = { id: store.bot.user_id, name: store.bot.name, real_name: store.bot.name, bot: true };
    return [bot, ...store.humans.filter((person) => person.id !== store.me)];
  }

  return { post, act, suggest, react, pick: pickReaction, more: moreOfMessage, shortcuts: moreOf, commands, candidates, addBot };
}
