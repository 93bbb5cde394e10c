// The search on top of every page: a combobox over all that has a page (the ARIA Authoring Practices'
// "editable combobox with list autocomplete"). The index comes with the first focus.
"use strict";

(() => {
  const input = document.getElementById("search");
  if (!input) return;
  const list = document.getElementById("found");
  const count = document.getElementById("found-count");
  const MOST = 12;

  // --- Finding --------------------------------------------------------------------------------
  // The index is [[kind, [[title, detail, path], …]], …], with the kinds in the order of their weight.
  const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const index = (groups) =>
    groups.flatMap(([kind, entries], weight) =>
      entries.map(([title, detail, path]) => {
        const name = fold(title);
        return { kind, title, detail, path, weight, name, text: `${name} ${fold(`${kind} ${detail}`)}` };
      }),
    );

  const isStart = (text, at) => at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]);
  const startsIn = (text, word) => {
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) if (isStart(text, at)) return true;
    return false;
  };
  // How badly an entry fits a word: 0 as the beginning of its name … 4 somewhere; -1 not at all.
  const misfit = (entry, word) => {
    if (!entry.text.includes(word)) return -1;
    if (entry.name.startsWith(word)) return 0;
    if (startsIn(entry.name, word)) return 1;
    if (entry.name.includes(word)) return 2;
    return startsIn(entry.text, word) ? 3 : 4;
  };
  // All entries that every word of the query fits, the best first.
  const find = (entries, query) => {
    const wanted = fold(query).split(/\s+/u).filter(Boolean);
    if (!wanted.length) return [];
    const fits = [];
    for (const entry of entries) {
      let misfits = 0;
      for (const word of wanted) {
        const one = misfit(entry, word);
        misfits = one < 0 ? -1 : misfits + one;
        if (one < 0) break;
      }
      if (misfits >= 0) fits.push({ entry, misfits });
    }
    // Of equal fits, the one that the index has first: it has what matters most first.
    const order = (a, b) => a.misfits - b.misfits || a.entry.weight - b.entry.weight;
    return fits.sort(order).map(({ entry }) => entry);
  };

  // --- Showing --------------------------------------------------------------------------------
  let entries = null;
  let chosen = -1;

  const close = () => {
    list.hidden = true;
    chosen = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const choose = (place) => {
    const options = [...list.querySelectorAll("[role=option]")];
    if (!options.length) return;
    chosen = (place + options.length) % options.length;
    options.forEach((option, at) => option.setAttribute("aria-selected", String(at === chosen)));
    input.setAttribute("aria-activedescendant", options[chosen].id);
    options[chosen].scrollIntoView({ block: "nearest" });
  };
  const follow = (option) => {
    location.href = window.knickpoint.root + option.dataset.path;
    close();
  };
  const { element } = window.knickpoint;
  const span = (className, text) => element("span", { className }, text);

  const show = () => {
    const query = input.value.trim();
    if (!query || !entries) {
      count.textContent = "";
      close();
      return;
    }
    const found = find(entries, query);
    const shown = found.slice(0, MOST).map((entry, place) => {
      const parts = [span("kind", entry.kind), " ", span("title", entry.title), " ", span("note", entry.detail)];
      const option = element("li", { id: `found-${place}`, role: "option", ariaSelected: "false" }, ...parts);
      option.dataset.path = entry.path;
      return option;
    });
    const more = found.length - shown.length;
    const said = !found.length
      ? `Nothing found for “${query}”.`
      : `${found.length} found${more > 0 ? `, the best ${MOST} shown; more words narrow it down` : ""}.`;
    const last = element("li", { className: "said", role: "presentation" }, said);
    list.replaceChildren(...shown, ...(more > 0 || !found.length ? [last] : []));
    count.textContent = said;
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    chosen = -1;
    input.removeAttribute("aria-activedescendant");
  };

  // --- Listening ------------------------------------------------------------------------------
  input.addEventListener("focus", () => {
    window.knickpoint.load("search").then(
      (groups) => {
        entries ??= index(groups);
        if (document.activeElement === input) show();
      },
      () => {
        count.textContent = "The search index is missing.";
      },
    );
  });
  input.addEventListener("input", show);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      if (list.hidden) show();
      choose(chosen < 0 && by < 0 ? -1 : chosen + by);
    } else if (event.key === "Enter") {
      const option = list.querySelectorAll("[role=option]")[Math.max(0, chosen)];
      if (option && !list.hidden) follow(option);
    } else if (event.key === "Escape") {
      if (list.hidden) input.value = "";
      close();
    } else return;
    event.preventDefault();
  });
  // The field keeps the focus while the list is clicked, or it would close before the click.
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) follow(option);
  });

  window.knickpoint.search = { index, find };
})();
