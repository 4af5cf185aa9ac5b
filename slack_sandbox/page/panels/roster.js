// The panel that says who is where, and changes it: user groups, the open channel, accounts.

import { explain, send } from "../api.js";
import { announce, fill, h, rememberFocus, restoreFocus } from "../dom.js";
import { avatar } from "../format.js";
import { notice } from "../notices.js";
import { Panel } from "./panel.js";

export class RosterPanel extends Panel {
  constructor(button, root) {
    super(button, root, { name: "roster", title: "People" });
    this.store = null;
    this.lists = h("div", {});
    this.fill([
      h("p", { class: "panel-note" }, "The bot checks who can approve on every click. Changes here apply to the next click."),
      this.lists,
    ]);
  }

  render(store) {
    this.store = store;
    if (this.isOpen) this.#draw();
  }

  opened() {
    this.#draw();
  }

  #draw() {
    const { store } = this;
    const channel = store.channels.get(store.channel);
    const focus = rememberFocus(this.lists);
    const lists = [...store.groups.values()].map((group) => this.#group(group));
    if (channel && channel.kind !== "im") lists.push(this.#channel(channel));
    fill(this.lists, lists, this.#guests(), this.#accounts());
    restoreFocus(this.lists, focus);
  }

  #group(group) {
    const sentence = (person, on) => `${person} is ${on ? "in" : "not in"} @${group.handle} now.`;
    return this.#list(group.id, `@${group.handle}`, `${group.name} (user group)`, this.store.humans.map((person) => ({
      person, on: group.members.includes(person.id),
      turn: (on) => this.#do("group", { group: group.id, user: person.id, member: on }, sentence(nameOf(person), on)),
    })));
  }

  #channel(channel) {
    const sentence = (person, on) => `${person} is ${on ? "in" : "not in"} #${channel.name} now.`;
    return this.#list(channel.id, `#${channel.name}`, "This channel", [...this.store.people.values()].map((person) => ({
      person, on: channel.members.includes(person.id),
      turn: (on) => this.#do("channel", { channel: channel.id, user: person.id, member: on }, sentence(nameOf(person), on)),
    })));
  }

  #guests() {
    const sentence = (person, on) => `${person} is ${on ? "a guest" : "a member"} now.`;
    return this.#list("guests", "Guests", "Guests can't approve", this.store.humans.map((person) => ({
      person, on: person.guest,
      turn: (on) => this.#do("person", { user: person.id, guest: on }, sentence(nameOf(person), on)),
    })));
  }

  #accounts() {
    const sentence = (person, on) => `The account of ${person} is ${on ? "open" : "closed"} now.`;
    return this.#list("accounts", "Accounts", "Clear a box to deactivate the account", this.store.humans.map((person) => ({
      person, on: !person.gone,
      turn: (on) => this.#do("person", { user: person.id, deactivated: !on }, sentence(nameOf(person), on)),
    })));
  }

  #list(id, title, note, rows) {
    const row = ({ person, on, turn }) => {
      const box = h("input", {
        type: "checkbox", data: { testid: `roster-${id}-${person.id}` }, on: { change: (event) => turn(event.target.checked) },
      });
      box.checked = on;
      return h("label", { class: "pick" }, box, avatar(person, "tiny"), h("span", {}, nameOf(person)));
    };
    return h("fieldset", { class: "picks", data: { testid: `roster-${id}` } },
      h("legend", {}, title, " ", h("span", { class: "picks-note" }, note)), h("div", { class: "picks-row" }, rows.map(row)));
  }

  async #do(path, body, told) {
    const answer = await send(path, body, "control");
    if (answer.ok) announce(told);
    else notice(explain(answer), "error");
    if (!answer.ok) this.#draw();
  }
}

function nameOf(person) {
  return person.real_name || person.name;
}
