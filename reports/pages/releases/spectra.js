// Response times of two trials over each other: <div class="spectra" data-a="…" data-b="…">, where a and b
// are variants. Draws the newest trial of each; the lists and tables come from their data.
"use strict";

(() => {
  const kp = window.knickpoint;
  const { changeWords } = kp.heatmap;
  const NAMED = [50, 90, 95, 99, 99.9, 99.99, 100];
  const LEAST_SECONDS = 10; // a course of fewer is a stub that shows nothing

  // --- Rows of the charts ----------------------------------------------------------------------
  const spectrumRows = (side, name, one) => {
    let beyond = 1;
    return one.levels.map(([percentile, ms]) => {
      // The slowest of all stands at the number of operations; the levels before it may end a bit further.
      beyond = percentile < 100 ? 100 / (100 - percentile) : Math.max(one.count, beyond);
      return { side, name, percentile, beyond, ms: Math.max(ms, 0.001) }; // no logarithm of zero
    });
  };

  // Iterations are laid behind each other; those of both sides begin at the same place.
  const placeIterations = (sides) => {
    const lengths = new Map();
    for (const { one } of sides) {
      for (const [iteration, at] of one.course) {
        lengths.set(iteration, Math.max(lengths.get(iteration) ?? 0, at + 1));
      }
    }
    const begins = new Map();
    let begin = 0;
    for (const iteration of [...lengths.keys()].sort((x, y) => x - y)) {
      begins.set(iteration, begin);
      begin += lengths.get(iteration) + 1;
    }
    return begins;
  };

  const courseRows = (sides) => {
    if (sides.every(({ one }) => one.course.length < LEAST_SECONDS)) return [];
    const begins = placeIterations(sides);
    return sides.flatMap(({ side, name, one }) => {
      let run = 0;
      return one.course.map(([iteration, at, rate, p50, p99, max], place) => {
        const [lastIteration, lastAt] = one.course[place - 1] ?? [iteration, at];
        // A second without an answer has no row: a line over it would look like one.
        if (iteration !== lastIteration || at - lastAt > 1.5) run += 1;
        return {
          side,
          name,
          iteration,
          run,
          at: begins.get(iteration) + at,
          rate,
          p50: Math.max(p50, 0.001),
          p99: Math.max(p99, 0.001),
          max,
        };
      });
    });
  };

  // --- Tables ----------------------------------------------------------------------------------
  // A column is one of numbers if all of its cells are, or have nothing.
  const isNumeric = (rows, at) => at > 0 && rows.every((row) => /^([+−±]?\d|–?$)/u.test(row[at]));
  const makeTable = (caption, columns, rows) => {
    const kinds = columns.map((_, at) => (isNumeric(rows, at) ? "num" : ""));
    const table = kp.element(
      "table",
      {},
      kp.element("caption", { textContent: caption }),
      kp.element("thead", {}, kp.element("tr", {}, ...columns.map((text, at) => kp.element("th", { scope: "col", textContent: text, className: kinds[at] })))),
      kp.element("tbody", {}, ...rows.map(([first, ...others]) =>
        kp.element(
          "tr",
          {},
          kp.element("th", { scope: "row", textContent: first }),
          ...others.map((text, at) => kp.element("td", { textContent: text, className: kinds[at + 1] })),
        ),
      )),
    );
    const scroll = kp.element("div", { className: "scroll", tabIndex: 0 }, table);
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", caption);
    const tools = kp.element("div", { className: "table-tools" }, kp.tables.copyButtons(table, caption));
    return kp.element("div", {}, tools, scroll);
  };

  const levelRows = (a, b, words) => {
    const at = (one) => new Map(one.levels);
    const [before, after] = [at(a), at(b)];
    return NAMED.filter((percentile) => before.has(percentile) && after.has(percentile)).map((percentile) => {
      const [x, y] = [before.get(percentile), after.get(percentile)];
      const title = percentile === 100 ? words.slowest : `p${percentile}`;
      return [title, kp.words.number(x), kp.words.number(y), x ? changeWords(y / x - 1, words) : "–"];
    });
  };

  // Rows of both sides by all but their last column, which is the value.
  const pair = (a, b) => {
    const rows = new Map();
    [a, b].forEach((side, place) => {
      for (const row of side) {
        const identity = JSON.stringify(row.slice(0, -1));
        if (!rows.has(identity)) rows.set(identity, ["–", "–"]);
        rows.get(identity)[place] = row[row.length - 1];
      }
    });
    return [...rows].map(([identity, values]) => [...JSON.parse(identity), ...values]);
  };

  // --- One section -----------------------------------------------------------------------------
  // Trials are put beside each other by experiment; of two systems, by their workload and its content.
  const match = (a, b) =>
    b.trials
      .map((after) => {
        const before =
          a.trials.find((one) => one.experiment === after.experiment) ??
          a.trials.find((one) => one.workload === after.workload);
        return { before, after };
      })
      .filter(({ before }) => before);

  const fill = (select, texts, chosen) => {
    select.replaceChildren(...texts.map((text) => kp.element("option", { value: text, textContent: text })));
    select.value = texts.includes(chosen) ? chosen : texts[0] ?? "";
    select.disabled = texts.length < 2;
    select.closest("label").hidden = !texts.length;
  };

  const find = (element) => ({
    what: element.querySelector("[data-what]"),
    operation: element.querySelector("[data-operation]"),
    summary: element.querySelector("[data-summary]"),
    shown: element.querySelector("[data-shown]"),
    chart: (name) => element.querySelector(`[data-chart="${name}"]`),
    table: (name) => element.querySelector(`[data-table="${name}"]`),
  });

  const say = (parts, text) => {
    parts.summary.textContent = text;
    parts.shown.hidden = true;
  };

  const drawAll = (parts, index, names, a, b) => {
    const sides = [
      { side: "A", name: names[0], one: a },
      { side: "B", name: names[1], one: b },
    ];
    const rows = {
      spectrum: sides.flatMap(({ side, name, one }) => spectrumRows(side, name, one)),
      p99: courseRows(sides),
    };
    rows.rate = rows.p99;
    for (const [name, spec] of Object.entries(index.charts)) {
      const filled = structuredClone(spec);
      filled.data.values = rows[name];
      parts.chart(name).closest("figure").hidden = !rows[name].length;
      if (rows[name].length) kp.draw(parts.chart(name), filled);
    }
  };

  const showTrials = (element, parts, index, { before, after }, [a, b], first) => {
    const { words } = index;
    const titles = b.times.map((one) => one.title).filter((title) => a.times.some((one) => one.title === title));
    fill(parts.operation, titles, parts.operation.value || kp.state.get("operation") || first);
    const chosen = parts.operation.value;
    const [x, y] = [a, b].map((one) => one.times.find((time) => time.title === chosen));
    const names = [before, after].map((trial) => `${trial.experiment}, ${trial.finished}`);
    element.querySelectorAll("[data-trial]").forEach((link, place) => {
      const trial = [before, after][place];
      link.replaceChildren(kp.element("a", { href: kp.root + trial.page, textContent: trial.id }), ` (${trial.finished})`);
    });
    parts.table("diagnostics").replaceChildren(
      makeTable(
        words.diagnostics,
        words.diagnosticColumns,
        pair(a.diagnostics, b.diagnostics).filter(([phase]) => !titles.includes(phase) || phase === chosen),
      ),
    );
    const facts = pair(a.facts, b.facts).filter(([, , one, other]) => one !== other);
    parts.table("facts").replaceChildren(
      facts.length
        ? makeTable(words.facts, words.factColumns, facts.map(([host, name, ...values]) => [name, host, ...values]))
        : kp.element("p", { textContent: words.noFacts }),
    );
    parts.shown.hidden = false;
    const problem = x?.problem || y?.problem;
    parts.summary.textContent = !x || !y ? words.noTimes : problem;
    parts.shown.querySelector("[data-charts]").hidden = Boolean(!x || !y || problem);
    if (!x || !y || problem) return;
    parts.table("levels").replaceChildren(
      makeTable(words.levels, words.levelColumns, [
        [words.operations, x.count.toLocaleString("en-US"), y.count.toLocaleString("en-US"), ""],
        ...levelRows(x, y, words),
      ]),
    );
    if (!x.course.length || !y.course.length) parts.summary.textContent = words.noCourse;
    drawAll(parts, index, names, x, y);
  };

  // Shows two variants in an element; the newest call wins.
  const latest = new WeakMap();
  const show = async (element, index, a, b) => {
    const parts = find(element);
    const token = {};
    latest.set(element, token);
    const isStale = () => latest.get(element) !== token;
    try {
      const variants = await Promise.all([a, b].map((id) => kp.load(`variant-${id}`)));
      if (isStale()) return;
      const pairs = match(...variants);
      // What moved furthest is shown first.
      const strongest = kp.heatmap.findStrongest(index, ...variants);
      const first = pairs.find(({ after }) => after.workload === strongest?.identity)?.after.experiment;
      const experiments = pairs.map(({ after }) => after.experiment);
      fill(parts.what, experiments, parts.what.value || kp.state.get("experiment") || first);
      const refresh = async () => {
        const chosen = pairs.find(({ after }) => after.experiment === parts.what.value);
        if (!chosen) return say(parts, index.words.noTrials);
        if (!chosen.before.data || !chosen.after.data) return say(parts, index.words.tooOld);
        const trials = await Promise.all([chosen.before, chosen.after].map((one) => kp.load(one.data)));
        if (isStale() || chosen.after.experiment !== parts.what.value) return undefined;
        return showTrials(element, parts, index, chosen, trials, strongest?.row);
      };
      parts.what.onchange = () => {
        if ("state" in element.dataset) kp.state.set({ experiment: parts.what.value });
        refresh();
      };
      parts.operation.onchange = () => {
        if ("state" in element.dataset) kp.state.set({ operation: parts.operation.value });
        refresh();
      };
      element.refresh = refresh;
      await refresh();
    } catch (problem) {
      say(parts, problem.message);
    }
  };

  kp.spectra = { show, spectrumRows, courseRows, placeIterations };

  // On the page of a release both sides are known; what is far down waits until it comes near, the page has
  // nothing else to do, or it goes to paper.
  const fixed = [...document.querySelectorAll(".spectra[data-a][data-b]")];
  if (fixed.length) {
    const waiting = new Set(fixed);
    const start = (element) => {
      if (!waiting.delete(element)) return;
      kp.load("compare").then((index) => show(element, index, element.dataset.a, element.dataset.b));
    };
    const startAll = () => fixed.forEach(start);
    const observer = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) start(target);
    }, { rootMargin: "400px" });
    fixed.forEach((element) => observer.observe(element));
    window.addEventListener("load", () => (window.requestIdleCallback ?? setTimeout)(startAll));
    window.addEventListener("beforeprint", startAll);
  }
  kp.theme.onChange(() => document.querySelectorAll(".spectra").forEach((one) => one.refresh?.()));
})();
