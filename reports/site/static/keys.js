// The keyboard: one table of keys, used and listed. No key is taken from the browser or from typing, and
// since a single letter is easily said to a speech interface by mistake, all can be turned off (WCAG 2.1.4).
"use strict";

(() => {
  const GOING_MS = 1500; // how long a "g" waits for its second key

  // --- Rows -----------------------------------------------------------------------------------
  // What comes next to an incident is a table row, but no row of its own.
  const ROWS = "main .attention > li, main tbody > tr:not(.next)";
  const rows = () => [...document.querySelectorAll(ROWS)].filter((row) => row.checkVisibility());

  const move = (by) => {
    const all = rows();
    const now = all.findIndex((row) => row.contains(document.activeElement));
    // From nowhere, the first row that can be seen.
    const from = all.findIndex((row) => row.getBoundingClientRect().bottom > 0);
    const next = all[now < 0 ? from : Math.min(all.length - 1, Math.max(0, now + by))];
    if (!next) return;
    next.tabIndex = -1;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  };

  // --- The table of keys ----------------------------------------------------------------------
  const focusSearch = () => document.getElementById("search")?.focus();
  const follow = (rel) => document.querySelector(`a[rel="${rel}"]`)?.click();
  const reset = () => document.dispatchEvent(new CustomEvent("knickpoint:reset"));
  const KEYS = [
    { key: "j", does: "Next row of a table or list", act: () => move(1) },
    { key: "k", does: "Row before", act: () => move(-1) },
    { key: "Enter", does: "Open the row, or the point of a chart" },
    { key: "[", does: "Incident before (on the page of one)", act: () => follow("prev") },
    { key: "]", does: "Next incident", act: () => follow("next") },
    { key: "/", does: "Search", act: focusSearch },
    { key: "z", does: "Reset the zoom of all charts", act: reset },
    { key: "?", does: "This help", act: () => show() },
    { key: "Esc", does: "Close what is open" },
    // In a chart that has the focus (series_pointer.js).
    { key: "← →", does: "In a chart: the point before or after" },
    { key: "PgUp PgDn", does: "In a chart: ten points on" },
    { key: "Home End", does: "In a chart: first or last point" },
  ];
  const pages = new Map(
    [...document.querySelectorAll("[data-key]")].map((link) => [link.dataset.key, link]),
  );

  // --- The help -------------------------------------------------------------------------------
  const { element } = window.knickpoint;
  const line = (keys, does) => [
    element("dt", {}, ...keys.flatMap((key, place) => [place ? " then " : "", element("kbd", {}, key)])),
    element("dd", {}, does),
  ];
  const build = () => {
    const isOn = element("input", { type: "checkbox", checked: enabled() });
    isOn.addEventListener("change", () => window.knickpoint.memory.set("keys", isOn.checked ? "" : "off"));
    const close = element("button", { type: "button" }, "Close");
    const dialog = element(
      "dialog",
      { className: "help" },
      element("h2", { id: "help-title" }, "Keyboard"),
      element(
        "dl",
        {},
        ...KEYS.flatMap(({ key, does }) => line([key], does)),
        ...[...pages].flatMap(([key, link]) => line(["g", key], link.textContent)),
      ),
      element("p", {}, element("label", {}, isOn, " Use these keys (kept for all pages)")),
      close,
    );
    dialog.setAttribute("aria-labelledby", "help-title");
    close.addEventListener("click", () => dialog.close());
    document.body.append(dialog);
    return dialog;
  };
  let help = null;
  const show = () => {
    help ??= build();
    if (!help.open) help.showModal();
  };
  document.getElementById("help")?.addEventListener("click", show);

  // --- Listening ------------------------------------------------------------------------------
  const enabled = () => window.knickpoint.memory.get("keys") !== "off";
  const isTyping = (target) =>
    target.isContentEditable || target.closest?.("input, textarea, select, dialog, [role=slider]");
  let going = 0;

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isTyping(event.target)) return;
    if (event.key === "Enter" && event.target.matches(ROWS)) {
      const next = event.target.nextElementSibling;
      const own = next?.matches(".next") ? next.querySelector(".links a") : null;
      (own ?? event.target.querySelector("a[href]"))?.click();
      return;
    }
    if (!enabled()) return;
    const isGoing = performance.now() < going;
    going = 0;
    const page = isGoing && pages.get(event.key);
    const found = KEYS.find(({ key, act }) => act && key === event.key);
    if (page) page.click();
    else if (event.key === "g") going = performance.now() + GOING_MS;
    else if (found) found.act();
    else return;
    event.preventDefault();
  });
})();
