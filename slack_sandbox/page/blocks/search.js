// A list that is searched: its options come from the app while one types.

import { fill, h, icon, uniqueId } from "../dom.js";

const WAIT_MS = 200;

/** Draw an `external_select`. */
export function searchField(item, use) {
  const value = use.start({ selected_option: item.initial_option ?? null });
  const id = uniqueId("options");
  const least = item.min_query_length ?? 3;
  const box = h("input", {
    ...use.props, class: "field", type: "text", role: "combobox", autocomplete: "off", "aria-autocomplete": "list",
    "aria-expanded": "false", "aria-controls": id, value: nameOf(value.selected_option),
    placeholder: item.placeholder?.text ?? "Choose an option",
  });
  const list = h("div", { class: "search-list", role: "listbox", id, hidden: true, "aria-label": item.placeholder?.text ?? "Options" });
  let chosen = value.selected_option;
  let rows = [];
  let at = -1;
  let timer = 0;
  let asked = 0;

  const close = () => {
    list.hidden = true;
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  };
  const choose = (option) => {
    chosen = option;
    box.value = nameOf(option);
    close();
    use.save({ selected_option: option });
  };
  const mark = (next) => {
    at = next;
    rows.forEach(({ node }, index) => node.setAttribute("aria-selected", String(index === at)));
    box.setAttribute("aria-activedescendant", rows[at]?.node.id ?? "");
    rows[at]?.node.scrollIntoView({ block: "nearest" });
  };
  const show = (answer) => {
    const groups = answer.option_groups ?? [{ options: answer.options ?? [] }];
    rows = [];
    fill(list, groups.map((group) => [group.label && h("p", { class: "menu-title" }, group.label.text), group.options.map(row)]));
    if (rows.length === 0) fill(list, h("p", { class: "search-note" }, answer.ok ? "No matching options" : "The app gave no options."));
    list.hidden = false;
    box.setAttribute("aria-expanded", "true");
    if (rows.length > 0) mark(0);
  };
  const row = (option) => {
    const node = h("div", {
      class: "search-row", role: "option", id: `${id}-${rows.length}`, "aria-selected": "false",
      on: { pointerdown: (event) => { event.preventDefault(); choose(option); } },
    }, nameOf(option), option.description && h("span", { class: "choice-note" }, option.description.text));
    rows.push({ node, option });
    return node;
  };
  const ask = async () => {
    const typed = box.value === nameOf(chosen) ? "" : box.value.trim();
    if (typed.length < least) {
      fill(list, h("p", { class: "search-note" }, `Type ${least} or more letters`));
      list.hidden = false;
      return;
    }
    const turn = (asked += 1);
    const answer = await use.ctx.suggest(item, use.blockId, typed);
    if (turn === asked && document.activeElement === box) show(answer);
  };
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT_MS);
    if (box.value === "" && chosen) {
      chosen = null;
      use.save({ selected_option: null });
    }
  });
  box.addEventListener("click", ask);
  box.addEventListener("blur", () => { close(); box.value = nameOf(chosen); });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && list.hidden) ask();
    else if (step && rows.length > 0) mark((at + step + rows.length) % rows.length);
    else if (event.key === "Enter" && !list.hidden && rows[at]) choose(rows[at].option);
    else if (event.key === "Escape" && !list.hidden) close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return h("div", { class: "search" }, h("span", { class: "select" }, box, icon("down")), list);
}

function nameOf(option) {
  return option?.text?.text ?? "";
}
