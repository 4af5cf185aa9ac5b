// The app's Home tab: the view that the app published for this person.

import { explain, send } from "../api.js";
import { renderBlocks } from "../blocks/blocks.js";
import { fill, h, rememberFocus, restoreFocus } from "../dom.js";
import { notice } from "../notices.js";

/** Draws the Home tab into `root`. */
export class HomeTab {
  constructor(root, store) {
    this.root = root;
    this.store = store;
    this.drawn = null;
  }

  /** Draw it when it has changed, or when asked to; half-made choices stay. */
  render(again = false) {
    const { store } = this;
    const sign = JSON.stringify([store.me, store.home, store.people.size]);
    if (sign === this.drawn && !again) return;
    this.drawn = sign;
    const focus = rememberFocus(this.root);
    fill(this.root, store.home ? this.#view(store.home) : this.#empty());
    restoreFocus(this.root, focus);
  }

  #view(view) {
    const { store } = this;
    store.homeValues.keepOnly(view.blocks);
    const ctx = {
      names: store.names, values: store.homeValues, redraw: () => this.render(true),
      act: (item, blockId, value) => this.#act(view, item, blockId, value),
      suggest: (item, blockId, typed) => send("suggest", {
        as: store.me, view_id: view.id, block_id: blockId, action_id: item.action_id, value: typed,
      }),
    };
    return h("div", { class: "home-view", data: { testid: "home-view" } }, renderBlocks(view.blocks, ctx));
  }

  #empty() {
    const { bot } = this.store;
    return h("p", { class: "home-empty" }, bot.connected
      ? `${bot.name} has not published its Home for you yet.`
      : `${bot.name} is not connected. Its Home appears when it runs.`);
  }

  async #act(view, item, blockId, value) {
    const answer = await send("action", {
      as: this.store.me, view_id: view.id, block_id: blockId, action_id: item.action_id, type: item.type, ...value, values: this.store.homeValues,
    });
    if (!answer.ok) notice(explain(answer), "error");
  }
}
