// The page of a series: its chart with what can be chosen, those of other lines and measures, its table.
// The parts are in series_*.js, which are joined behind this file: nothing here runs before the data are there.
"use strict";

(() => {
  const kp = window.knickpoint;
  const { element } = kp;
  const figure = document.querySelector("[data-series]");
  if (!figure) return;

  const MOST_LINES = 5; // as many as there are colours and symbols
  const SYMBOLS = "●■▲✚▼";
  const TRACK_HEIGHT = 200;
  const SMALL_HEIGHT = 130;
  const by = (id) => document.getElementById(id);
  // A wall screen has room.
  const height = () => Math.round(Math.min(520, Math.max(340, 0.38 * window.innerHeight)));
  const symbolOf = (at) => element("span", { className: `symbol line-${at}`, ariaHidden: "true" }, SYMBOLS[at]);

  const start = async () => {
    const model = kp.series;
    const own = await model.load(figure.dataset.series);
    const main = model.addPlot(by("chart"));
    const lines = own.lines.slice(0, MOST_LINES - 1).map(([line, stem], at) => ({ line, stem, at: at + 1, plot: null }));
    const others = addOthers(own);

    const view = () => model.readView(own);
    const shownLines = () => [own, ...lines.filter((one) => one.series && !view().hidden.has(one.line)).map((one) => one.series)];

    const showTracks = (now, span) => {
      for (const one of lines) {
        const isShown = one.series && now.by === "release" && !now.hidden.has(one.line);
        if (!isShown) {
          one.plot?.remove();
          one.name?.remove();
          one.plot = null;
          continue;
        }
        if (!one.plot) {
          const box = element("div", { className: "plot track", tabIndex: 0, role: "group", ariaLabel: `Line ${one.line}: ${one.series.inWords}` });
          one.name = element("p", { className: "note line-name" }, symbolOf(one.at), ` Line ${one.line}`);
          by("tracks").append(one.name, box);
          one.plot = model.addPlot(box);
        }
        const whole = { ...now, zoom: "" };
        one.plot.show(one.series, whole, model.build([one.series], whole, { height: TRACK_HEIGHT, width: by("chart").clientWidth, span }));
      }
    };

    const show = async () => {
      model.hush();
      const now = view();
      const all = shownLines();
      // Beside each other, the lines are drawn by one scale; on one calendar they share the chart.
      const inTracks = now.by === "release";
      const spans = inTracks ? all.slice(1).map((one) => model.build([one], { ...now, zoom: "" }, { height: TRACK_HEIGHT }).span) : [];
      const built = model.build(inTracks ? [own] : all, now, { height: height(), width: by("chart").clientWidth, span: spans.flat().length ? spans.flat() : null });
      writeControls(own, now, lines);
      by("chart-note").textContent = noteOf(own, now, built, lines.length > 0);
      const drawn = main.show(own, now, built);
      showTracks(now, built.span);
      others.show(now);
      await drawn;
      figure.dataset.draws = String(Number(figure.dataset.draws ?? 0) + 1);
    };

    connectControls(own, view, lines, show);
    kp.state.onChange(show);
    kp.theme.onChange(show);
    document.addEventListener("knickpoint:reset", () => kp.state.set({ zoom: "" }, true));
    await show();
    kp.series.fillTable(own);
    fillNotes(own);
    await Promise.all(
      lines.map(async (one) => {
        one.series = Object.assign(await model.load(one.stem), { colour: one.at });
      }),
    );
    if (lines.length) await show();
  };

  // --- What can be chosen -----------------------------------------------------------------------
  const connectControls = (own, view, lines, show) => {
    const { track } = own;
    const measure = by("measure");
    const groups = new Map();
    for (const [title, stem, group] of track.series) {
      if (!groups.has(group)) groups.set(group, element("optgroup", { label: group }));
      groups.get(group).append(element("option", { value: stem, selected: stem === figure.dataset.series }, title));
    }
    measure.append(...groups.values());
    measure.addEventListener("change", () => kp.go(`${kp.root}series/${encodeURIComponent(measure.value)}.html${location.hash}`));
    by("axis").addEventListener("change", (event) => kp.state.set({ by: event.target.value }));
    by("values").addEventListener("change", (event) => kp.state.set({ y: event.target.value }));
    by("logarithmic").addEventListener("change", (event) => kp.state.set({ scale: event.target.checked ? "log" : "" }));
    for (const one of lines) {
      const box = element("input", { type: "checkbox", id: `line-${one.at}`, value: one.line });
      box.addEventListener("change", () => {
        const hidden = view().hidden;
        if (box.checked) hidden.delete(one.line);
        else hidden.add(one.line);
        kp.state.set({ hide: [...hidden].join(",") });
      });
      by("lines").append(element("label", {}, box, " ", symbolOf(one.at), ` ${one.line}`));
    }
    by("lines").hidden = !lines.length;
    const order = () => track.orders[view().by];
    const zoom = (change) => () => {
      const last = order().length - 1;
      const [from, to] = change(...(kp.series.rangeOf(track, view()) ?? [0, last]), last).map(Math.round);
      const isAll = from <= 0 && to >= last;
      const ends = [Math.max(0, from), Math.min(last, to)].map((place) => track.trial[order()[place]]);
      kp.state.set({ zoom: isAll ? "all" : ends.join("..") }, true);
    };
    const shift = (share) => (from, to, last) => {
      const by = Math.max(-from, Math.min(last - to, Math.sign(share) * Math.ceil(Math.abs(share) * (to - from + 1))));
      return [from + by, to + by];
    };
    by("closer").addEventListener("click", zoom((from, to) => [from + Math.floor((to - from) / 4), to - Math.floor((to - from) / 4)]));
    by("farther").addEventListener("click", zoom((from, to) => [from - Math.ceil((to - from + 1) / 2), to + Math.ceil((to - from + 1) / 2)]));
    by("earlier").addEventListener("click", zoom(shift(-0.5)));
    by("later").addEventListener("click", zoom(shift(0.5)));
    by("reset").addEventListener("click", () => kp.state.set({ zoom: "" }, true));
    for (const range of by("ranges").querySelectorAll("button")) {
      range.addEventListener("click", () => kp.state.set({ zoom: range.value }, true));
      range.hidden = Number(range.value) >= track.trial.length;
    }
    by("ranges").hidden = track.trial.length <= Number(by("ranges").querySelector("button").value);
    for (const box of figure.querySelectorAll(".controls")) box.hidden = false;
  };

  const writeControls = (own, now, lines) => {
    by("axis").value = now.by === "night" ? "night" : "";
    by("axis").disabled = own.isWatch;
    by("values").value = now.y;
    by("logarithmic").checked = now.isLog;
    for (const one of lines) by(`line-${one.at}`).checked = !now.hidden.has(one.line);
    by("reset").disabled = !now.asked;
    by("farther").disabled = !now.zoom;
    for (const range of by("ranges").querySelectorAll("button")) {
      range.setAttribute("aria-pressed", range.value === now.asked || (range.value === "all" && !now.zoom));
    }
  };

  // --- What is to be known of what is drawn -----------------------------------------------------
  const noteOf = (own, now, built, hasLines) => {
    const { words, series: model } = kp;
    const said = [];
    const range = model.rangeOf(own.track, now);
    if (range) said.push(`Zoomed in: ${words.count(built.shown[0].rows.length, "point")} of ${own.at.length.toLocaleString("en-US")}.`);
    else if (now.zoom) said.push("The zoom of this address names trials that are not here: all is shown.");
    if (!built.withIterations) said.push(`Single iterations are drawn where at most ${model.MOST_WITH_ITERATIONS} points are in view; ${words.count(built.many, "point")} are: zoom in.`);
    if (!built.withIntervals) said.push(`So are their ranges, up to ${model.MOST_WITH_INTERVALS.toLocaleString("en-US")} points.`);
    if (now.y === "previous") said.push("Levels, noise and published figures have no place among values that are related to the point before.");
    if (now.isLog && own.value.some((value) => value <= 0)) said.push("Values that are not above zero have no place on a logarithmic axis.");
    if (now.y === "first" && !own.value[0]) said.push("The first value is zero: no other is a share of it.");
    else if (now.y === "first") said.push(`100 % is the first point, ${words.quantity(own.value[0], own.unit)}.`);
    if (own.isWatch) said.push("What watches the testbed is read in the order of time.");
    if (built.hasHiddenGaps) said.push("Its change points lie between releases, which take turns on the calendar: see them by release.");
    if (hasLines && now.by === "release" && now.zoom) said.push("The zoom is of this line alone.");
    if (built.farReferences) said.push("A published figure lies outside of the chart: it is listed below.");
    return said.join(" ");
  };

  // Lists what the symbols on the bottom of the chart mean, for those who do not point at them.
  const fillNotes = (own) => {
    const { track } = own;
    const list = (id, rows) => {
      const box = by(id);
      if (!rows.length) return;
      box.querySelector(".count").textContent = rows.length.toLocaleString("en-US");
      box.querySelector("ul").append(...rows);
      box.hidden = false;
    };
    const name = (slot) => `${track.releaseOf(slot)}, ${track.nightOf(slot) || kp.words.moment(track.started[slot])}`;
    list(
      "unusable",
      [...track.unusable].map(([slot, one]) => {
        const badge = element("span", { className: `badge ${one.kind}` }, element("span", { className: "symbol", ariaHidden: "true" }, one.symbol), one.word);
        const page = track.pageOf(slot);
        const subject = page ? element("a", { href: page }, name(slot)) : name(slot);
        return element("li", {}, badge, " ", subject, `: ${one.why}`);
      }),
    );
    list(
      "moves",
      track.movesInTime.map(([slot, what, before, after]) => element("li", {}, `${name(slot)}: ${what}, ${before} → ${after}`)),
    );
  };

  // --- Other measures of the experiment ---------------------------------------------------------
  // Loaded and drawn when they come near the window; with the cursor and the zoom of the page.
  const addOthers = (own) => {
    const model = kp.series;
    const section = by("others");
    const rest = own.track.series.filter(([, stem]) => stem !== figure.dataset.series);
    let now = null;
    const draw = async (one) => {
      one.series ??= await model.load(one.stem);
      one.plot ??= model.addPlot(one.box);
      const view = { ...model.readView(one.series), ...now, by: one.series.isWatch ? "night" : now.by };
      await one.plot.show(one.series, view, model.build([one.series], view, { height: SMALL_HEIGHT, isSmall: true }), true);
      one.box.setAttribute("aria-label", `${one.series.title}: ${one.series.inWords}`);
      one.note.textContent = [one.series.unit, one.series.direction].filter(Boolean).join(", ");
    };
    const all = rest.map(([title, stem]) => {
      const box = element("div", { className: "plot small", role: "group", ariaLabel: title });
      const link = element("a", { href: `${kp.root}series/${encodeURIComponent(stem)}.html` }, title);
      link.addEventListener("click", () => (link.hash = location.hash));
      const note = element("span", { className: "note" });
      by("measures").append(element("div", { className: "measure" }, element("h3", {}, link, " ", note), box));
      return { stem, box, note, isNear: false };
    });
    section.hidden = !all.length;
    const watcher = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          const one = all.find(({ box }) => box === entry.target);
          const cameNear = entry.isIntersecting && !one.isNear;
          one.isNear = entry.isIntersecting;
          if (cameNear && now) draw(one);
        }
      },
      { rootMargin: "200px" },
    );
    all.forEach((one) => watcher.observe(one.box));
    return {
      show: (view) => {
        now = view;
        all.filter((one) => one.isNear).forEach(draw);
      },
    };
  };

  // The other files are joined behind this one.
  queueMicrotask(() =>
    start().catch((problem) => {
      by("chart").textContent = `The chart could not be drawn (${problem.message}). The table holds the same numbers.`;
    }),
  );
})();
