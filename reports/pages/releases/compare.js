// The page Compare: any two variants, chosen and filtered; all of it in the URL:
// #a=…&b=…&system=…&workload=…&metric=…&moved=1. Without a choice, the newest against the one before.
"use strict";

// The other files of this folder, of which it needs two, may stand behind this one.
document.addEventListener("DOMContentLoaded", () => {
  const kp = window.knickpoint;
  const form = document.getElementById("compare");
  if (!form) return;
  const field = (name) => form.elements.namedItem(name);
  const place = (name) => document.getElementById(name);
  const [heat, compared, spectra] = [place("heat"), place("compared"), place("times")];
  const [newest, newestCounts] = [heat, place("counts")].map((one) => [...one.childNodes]);
  const [heading, site] = [place("title").textContent, document.title];
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
        const movedHere = cells.filter((cell) => cell.matches(".good, .bad, [data-note]"));
        row.hidden = !isWanted || !cells.length || (onlyMoved && !movedHere.length);
        if (!row.hidden) movedHere.forEach((cell) => moved.add(cell.dataset.column));
        shown += !row.hidden;
      }
      body.querySelector(".group").hidden = !shown;
      body.hidden = !shown;
    }
    if (onlyMoved) hideColumnsWithout(moved);
    const bodies = [...heat.querySelectorAll("tbody")];
    place("nothing").hidden = !bodies.length || bodies.some((body) => !body.hidden);
  };

  // --- Two variants ----------------------------------------------------------------------------
  const badge = ({ kind, symbol, word }) => {
    const sign = kp.element("span", { className: "symbol", textContent: symbol });
    sign.setAttribute("aria-hidden", "true");
    return kp.element("span", { className: `badge ${kind}` }, sign, word);
  };

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
    const isSameName = before.side === after.side;
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
    place("commands").hidden = Boolean(why);
    place("sides").hidden = false;
  };

  const describe = (one, index) =>
    `${one.name} (${one.trials} ${one.trials === 1 ? index.words.trial : index.words.trials}, ` +
    `${one.days[0] === one.days[1] ? one.days[0] : one.days.join(` ${index.words.to} `)})`;

  // The shortest that names both.
  const titleOf = (a, b, { words }) => {
    if (a.system !== b.system) return `${words.title} ${a.system} ${a.release} → ${b.system} ${b.release}`;
    if (a.release !== b.release) return `${words.title} ${a.system} ${a.release} → ${b.release}`;
    if (b.before === a.id) return `${words.title} ${a.system} ${a.release} ${words.configChange} ${b.config}`;
    return `${words.title} ${a.system} ${a.release}, ${a.content} → ${b.content}`;
  };

  // Both sides, where one or none was chosen too, and which of those that were is not known.
  const choose = (index) => {
    const wanted = ["a", "b"].map((name) => kp.state.get(name));
    const unknown = [...new Set(wanted.filter((id) => id && !Object.hasOwn(index.variants, id)))];
    const [a, b] = unknown.length ? ["", ""] : wanted;
    if (!a && !b) return { a: form.dataset.a ?? "", b: form.dataset.b ?? "", unknown };
    return { a: a || index.variants[b].before, b, unknown };
  };

  const bold = (textContent) => kp.element("strong", { textContent });
  const tellBoth = (index, a, b, unknown) => {
    const problem = unknown.length ? `${index.words.unknown} ${unknown.join(", ")}. ${index.words.instead} ` : "";
    const { before, changed } = index.variants[b];
    place("settings").replaceChildren(...(before === a && changed ? [bold(index.words.settings), ` ${changed}`] : []));
    compared.replaceChildren(
      problem, bold("A"), ` ${describe(index.variants[a], index)} → `, bold("B"), ` ${describe(index.variants[b], index)}`,
    );
  };
  const scrolling = (table, label) => {
    const scroll = kp.element("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: label }, table);
    return [kp.element("div", { className: "table-tools" }, kp.tables.copyButtons(table, label)), scroll];
  };
  const groupsOf = (data, index) => {
    const known = data.cells.filter(([id]) => index.series[id]);
    return [...new Set(known.map(([id]) => index.measures[index.series[id][0]].group))].join("; ");
  };

  const showTables = (index, all, label) => {
    const moved = kp.heatmap.moved(index, all);
    place("counts").replaceChildren(kp.heatmap.counts(index, all));
    place("moved").replaceChildren(...(moved ? [kp.element("h2", { textContent: index.words.moved }), ...scrolling(moved, index.words.moved)] : []));
    heat.replaceChildren(...scrolling(kp.heatmap.build(index, all, label), label));
    place("all").hidden = false;
  };
  // Why there is no table.
  const explain = (text) => {
    compared.append(" ", text);
    place("all").hidden = true;
    spectra.hidden = true;
  };

  let shown = "";
  const show = async () => {
    const index = await kp.load(form.dataset.index);
    const { a, b, unknown } = choose(index);
    field("a").value = a;
    field("b").value = b;
    if (shown === `${a} ${b} ${unknown}`) return filter();
    shown = `${a} ${b} ${unknown}`;
    const isChosen = Boolean(a && b);
    spectra.hidden = place("sides").hidden = !isChosen;
    place("newest").hidden = isChosen;
    place("all").hidden = false;
    place("counts").replaceChildren(...(isChosen ? [] : newestCounts));
    place("moved").replaceChildren();
    heat.replaceChildren(...(isChosen ? [] : newest));
    const title = isChosen ? titleOf({ id: a, ...index.variants[a] }, index.variants[b], index) : heading;
    place("title").textContent = title;
    document.title = isChosen ? `${title} · Knickpoint` : site;
    if (!isChosen) {
      const problem = unknown.length ? `${index.words.unknown} ${unknown.join(", ")}. ` : "";
      compared.textContent = problem + (a || b ? form.dataset.both : "");
      place("settings").replaceChildren();
    } else {
      tellBoth(index, a, b, unknown);
      if (a === b) {
        explain(index.words.same);
        place("sides").hidden = true;
        return undefined;
      }
      const cells = await Promise.all([a, b].map((id) => kp.load(`variant-${id}`)));
      if (shown !== `${a} ${b} ${unknown}`) return undefined;
      const all = kp.heatmap.compareAll(index, ...cells);
      showTurns(index, a, b, cells);
      if (all.some((cell) => cell.found)) {
        showTables(index, all, `${index.variants[a].name} → ${index.variants[b].name}`);
        kp.spectra.show(spectra, index, a, b);
      } else {
        const [ofA, ofB] = cells.map((data) => groupsOf(data, index));
        explain(`${index.words.disjoint} A ${index.words.measured} ${ofA}. B ${index.words.measured} ${ofB}.`);
      }
    }
    offer();
    return filter();
  };
  const showOrSay = () => show().catch((problem) => (compared.textContent = problem.message));

  // --- Events ----------------------------------------------------------------------------------
  form.hidden = place("filters").hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  // The filters stand beside the table, outside of the form that they belong to.
  document.addEventListener("change", ({ target }) => {
    if (target.form !== form) return;
    const isSide = ["a", "b"].includes(target.name);
    kp.state.set({
      // What was shown without a choice stays out of the URL until a side is chosen.
      ...(isSide ? { a: field("a").value, b: field("b").value } : {}),
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
    showOrSay();
  });
  showOrSay();
});
