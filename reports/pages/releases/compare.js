// The page Compare: any two variants, chosen and filtered; all of it in the URL:
// #a=…&b=…&system=…&workload=…&metric=…&moved=1.
"use strict";

// The other files of this folder, of which it needs two, may stand behind this one.
document.addEventListener("DOMContentLoaded", () => {
  const kp = window.knickpoint;
  const form = document.getElementById("compare");
  if (!form) return;
  const { build } = kp.heatmap;
  const field = (name) => form.elements.namedItem(name);
  const place = (name) => document.getElementById(name);
  const [heat, told, spectra] = [place("heat"), place("compared"), place("times")];
  const newest = [...heat.childNodes];
  const FILTERS = ["system", "workload", "metric"];

  // --- Filters ---------------------------------------------------------------------------------
  const offer = () => {
    const bodies = [...heat.querySelectorAll("tbody")];
    const found = {
      system: bodies.map((body) => body.dataset.system),
      workload: bodies.map((body) => body.dataset.workload),
      metric: [...heat.querySelectorAll("thead th[data-column]")].map((cell) => cell.dataset.column),
    };
    for (const name of FILTERS) {
      const select = field(name);
      const texts = [...new Set(found[name].filter(Boolean))];
      const options = texts.map((text) => kp.element("option", { value: text, textContent: text }));
      select.replaceChildren(select.options[0], ...options);
      const wanted = kp.state.get(name);
      select.value = texts.includes(wanted) ? wanted : "";
      select.closest("label").hidden = texts.length < 2;
    }
    field("moved").checked = kp.state.get("moved") === "1";
  };

  const hideColumnsWithout = (columns) => {
    for (const cell of heat.querySelectorAll("[data-column]")) {
      if (!columns.has(cell.dataset.column)) cell.hidden = true;
    }
  };

  const filter = () => {
    const [system, workload, metric] = FILTERS.map((name) => field(name).value);
    const onlyMoved = field("moved").checked;
    const moved = new Set();
    for (const cell of heat.querySelectorAll("[data-column]")) {
      cell.hidden = metric !== "" && cell.dataset.column !== metric;
    }
    for (const body of heat.querySelectorAll("tbody")) {
      const isWanted =
        (!system || body.dataset.system === system) && (!workload || body.dataset.workload === workload);
      let shown = 0;
      for (const row of body.rows) {
        if (row.className === "group") continue;
        const cells = [...row.querySelectorAll("td.heat:not(.empty)")].filter((cell) => !cell.hidden);
        const movedHere = cells.filter((cell) => cell.classList.contains("good") || cell.classList.contains("bad"));
        row.hidden = !isWanted || !cells.length || (onlyMoved && !movedHere.length);
        if (!row.hidden) movedHere.forEach((cell) => moved.add(cell.dataset.column));
        shown += !row.hidden;
      }
      body.querySelector(".group").hidden = !shown;
      body.hidden = !shown;
    }
    if (onlyMoved) hideColumnsWithout(moved);
    const isEmpty = ![...heat.querySelectorAll("tbody")].some((body) => !body.hidden);
    place("nothing").hidden = !isEmpty;
  };

  // --- Two variants ----------------------------------------------------------------------------
  const badge = ({ kind, symbol, word }) => {
    const sign = kp.element("span", { className: "symbol", textContent: symbol });
    sign.setAttribute("aria-hidden", "true");
    return kp.element("span", { className: `badge ${kind}` }, sign, word);
  };

  const summarize = (index, counts) =>
    Object.entries(index.badges)
      .filter(([name]) => counts[name])
      .map(([name, { word }]) => `${counts[name]} ${word.toLowerCase()}`)
      .join(", ");

  const showTurns = (index, a, b, cells) => {
    const isPair = (sides) => sides.includes(a) && sides.includes(b) && a !== b;
    const turns = index.comparisons.filter(({ sides }) => isPair(sides));
    place("turns").replaceChildren(
      ...turns.map((one) =>
        kp.element("li", {}, badge(one.badge), " ", kp.element("a", { href: kp.root + one.page, textContent: one.title }),
          ` ${one.day}: ${one.sentence}`)),
    );
    place("measured").hidden = !turns.length;
    const [before, after] = [index.variants[a], index.variants[b]];
    // What only one side measures cannot take turns.
    const isShared = ({ experiment }) => cells[0].trials.some((one) => one.experiment === experiment);
    const experiments = cells[1].trials.filter(isShared).map(({ experiment }) => experiment).filter((name) => index.commands[name]);
    const isSameName = before.release === after.release && before.config === after.config;
    let why = "";
    if (before.system !== after.system) why = index.words.otherSystem;
    else if (isSameName) why = index.words.sameName;
    else if (!experiments.length) why = index.words.noTurns;
    place("command-why").textContent = why || index.words.command;
    place("command").textContent = why
      ? ""
      : experiments
        .map((name) => `${index.commands[name]} --baseline ${before.side} --candidate ${after.side}`)
        .join("\n");
    place("command").hidden = Boolean(why);
    place("sides").hidden = false;
  };

  const describe = (one, index) =>
    `${one.name} (${one.trials} ${one.trials === 1 ? index.words.trial : index.words.trials}, ` +
    `${one.days[0] === one.days[1] ? one.days[0] : one.days.join(` ${index.words.to} `)})`;

  let shown = "";
  const show = async () => {
    const [a, b] = ["a", "b"].map((name) => kp.state.get(name));
    field("a").value = a;
    field("b").value = b;
    if (shown === `${a} ${b}`) return filter();
    shown = `${a} ${b}`;
    const isChosen = a && b;
    spectra.hidden = !isChosen;
    place("sides").hidden = !isChosen;
    place("newest").hidden = Boolean(isChosen);
    if (!isChosen) {
      heat.replaceChildren(...newest);
      told.textContent = a || b ? form.dataset.both : "";
    } else {
      try {
        const index = await kp.load(form.dataset.index);
        if (!index.variants[a] || !index.variants[b]) throw new Error(index.words.unknown);
        const cells = await Promise.all([a, b].map((id) => kp.load(`variant-${id}`)));
        if (shown !== `${a} ${b}`) return undefined;
        const label = `${index.variants[a].name} → ${index.variants[b].name}`;
        const { table, counts } = build(index, ...cells, label);
        const scroll = kp.element("div", { className: "scroll", tabIndex: 0 }, table);
        scroll.setAttribute("role", "region");
        scroll.setAttribute("aria-label", label);
        const copy = kp.tables.copyButtons(() => kp.tables.read(table), label);
        heat.replaceChildren(kp.element("div", { className: "table-tools" }, copy), scroll);
        told.replaceChildren(
          kp.element("strong", { textContent: "A" }), ` ${describe(index.variants[a], index)} → `,
          kp.element("strong", { textContent: "B" }), ` ${describe(index.variants[b], index)}: `,
          `${summarize(index, counts) || index.words.nothing}.`,
        );
        showTurns(index, a, b, cells);
        kp.spectra.show(spectra, index, a, b);
      } catch (problem) {
        heat.replaceChildren();
        told.textContent = problem.message;
      }
    }
    offer();
    return filter();
  };

  // --- Events ----------------------------------------------------------------------------------
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => {
    kp.state.set({
      a: field("a").value,
      b: field("b").value,
      ...Object.fromEntries(FILTERS.map((name) => [name, field(name).value])),
      moved: field("moved").checked ? "1" : "",
    });
  });
  field("swap").addEventListener("click", () => {
    kp.state.set({ a: field("b").value, b: field("a").value });
  });
  kp.state.onChange(() => {
    for (const name of FILTERS) field(name).value = kp.state.get(name);
    field("moved").checked = kp.state.get("moved") === "1";
    show();
  });
  show();
});
