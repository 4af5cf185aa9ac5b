// Buttons and overflow menus, with their confirmation dialog.

import { h, icon, moveWithArrows, onLeave } from "../dom.js";
import { isSafeUrl, textObject } from "./mrkdwn.js";
import { confirmDialog } from "../notices.js";

/** A Block Kit button; one with an address opens it and still tells the app. */
export function button(item, blockId, ctx) {
  const style = { primary: " primary", danger: " danger" }[item.style] ?? "";
  const url = item.url && isSafeUrl(item.url) ? item.url : null;
  const props = {
    class: `button${style}`,
    type: url ? null : "button",
    href: url, target: url ? "_blank" : null, rel: url ? "noopener noreferrer nofollow" : null,
    "aria-label": item.accessibility_label,
    data: { actionId: item.action_id },
  };
  const node = h(url ? "a" : "button", props, h("span", { class: "button-label" }, textObject(item.text, ctx.names)));
  node.addEventListener("click", async (event) => {
    if (node.getAttribute("aria-busy") === "true") {
      event.preventDefault();
      return;
    }
    if (item.confirm) {
      event.preventDefault();
      if (!await confirmDialog(item.confirm, ctx.names)) return;
      if (url) window.open(url, "_blank", "noopener,noreferrer");
    }
    await act(node, item, blockId, ctx, { value: item.value });
  });
  return node;
}

/** A small button that is only a drawing, with its text as a tool tip. */
export function iconButton(item, blockId, ctx, text, drawing) {
  const name = item.accessibility_label ?? text?.text ?? "";
  const node = h("button", {
    type: "button", class: "icon-button context-action", "aria-label": name, title: text?.text ?? "", data: { actionId: item.action_id },
  }, drawing);
  node.addEventListener("click", async () => {
    if (item.confirm && !await confirmDialog(item.confirm, ctx.names)) return;
    await act(node, item, blockId, ctx, { value: item.value });
  });
  return node;
}

async function act(node, item, blockId, ctx, value) {
  node.setAttribute("aria-busy", "true");
  try {
    await ctx.act(item, blockId, value);
  } finally {
    node.removeAttribute("aria-busy");
  }
}

/** Whether a menu below `root` would be cut off, and one above it would not. */
function isBetterUp(menu, root) {
  const seen = root.closest(".messages, .modal-body, .home")?.getBoundingClientRect() ?? { top: 0, bottom: window.innerHeight };
  const { bottom, height } = menu.getBoundingClientRect();
  return bottom > seen.bottom && root.getBoundingClientRect().top - height > seen.top;
}

/** The three dots with a short list of choices. */
export function overflow(item, blockId, ctx) {
  const root = h("div", { class: "overflow" });
  const opener = h("button", {
    type: "button", class: "button overflow-button", "aria-label": "More actions", "aria-haspopup": "menu",
    "aria-expanded": "false", data: { actionId: item.action_id },
  }, icon("more"));
  root.append(opener);
  let stop = null;

  const close = (refocus) => {
    root.querySelector(".menu")?.remove();
    opener.setAttribute("aria-expanded", "false");
    stop?.();
    stop = null;
    if (refocus) opener.focus();
  };
  const choose = async (option) => {
    close(true);
    if (item.confirm && !await confirmDialog(item.confirm, ctx.names)) return;
    if (option.url && isSafeUrl(option.url)) window.open(option.url, "_blank", "noopener,noreferrer");
    await act(opener, item, blockId, ctx, { selected_option: option });
  };
  const open = () => {
    const entries = (item.options ?? []).map((option) =>
      h("button", { type: "button", class: "menu-item", role: "menuitem", value: option.value, on: { click: () => choose(option) } },
        textObject(option.text, ctx.names)));
    const toLeft = root.getBoundingClientRect().left + 280 > window.innerWidth;
    const menu = h("div", { class: toLeft ? "menu to-left" : "menu", role: "menu" }, entries);
    root.append(menu);
    menu.classList.toggle("up", isBetterUp(menu, root));
    opener.setAttribute("aria-expanded", "true");
    stop = onLeave(root, () => close(false));
    entries[0]?.focus();
  };
  opener.addEventListener("click", () => (stop ? close(false) : open()));
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && stop) {
      event.stopPropagation();
      close(true);
    } else if (stop) {
      moveWithArrows([...root.querySelectorAll(".menu-item")], event);
    }
  });
  return root;
}
