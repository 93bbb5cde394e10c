// Pointing at charts of series: a cursor that all charts of a page share, the words of the nearest
// point, dragging to zoom, and all of it by keyboard. A finger that taps a point gets its words with a
// link, since it cannot point without a tap.
"use strict";

(() => {
  const kp = window.knickpoint;
  const { series: model, element } = kp;
  const CLICK_PX = 4; // a pointer that moved less has not dragged
  const NEAR_PX = 30;
  const BOTTOM_PX = 34; // the strip of symbols

  const plots = new Set();

  // --- Words of a point -------------------------------------------------------------------------
  const tip = element("div", { className: "tip", hidden: true });
  const spoken = element("p", { className: "unseen", ariaLive: "polite" });
  document.body.append(tip, spoken);

  const pointRows = (series, at, view) => {
    const { words } = kp;
    const { track } = series;
    const slot = series.at[at];
    const value = series.value[at];
    const runs = series.iterations[at];
    const before = at ? series.value[at - 1] : 0;
    const rows = [
      ["Value", words.quantity(value, series.unit)],
      ["Against the one before", at && before ? words.percent((value - before) / Math.abs(before)) : ""],
      ["Against the first", at && view.y === "first" ? words.percent(value / series.value[0] - 1) : ""],
      ["Release", `${track.releaseOf(slot)}, ${words.moment(track.started[slot])}`],
      [series.endsOf(at) ? "Uncertainty" : "Iterations", words.spread(runs, series.endsOf(at))],
      ["Median of iterations", runs.length > 1 ? words.quantity(words.median(runs), series.unit) : ""],
      ["Night", track.nightOf(slot)],
      ["Trial", track.trial[slot]],
      ["Origin", track.imported.has(slot) ? "imported" : ""],
    ];
    for (const change of series.changes.filter((one) => one.index - 1 === at)) {
      rows.push([`${change.outcome.symbol} ${change.outcome.word}`, `${change.change}, ${change.between} (${change.state.word.toLowerCase()}, ${change.p_value})`]);
      if (change.cause) rows.push(["Attributed to", change.cause.word]);
      if (change.triage) rows.push(["✎ Triage", change.triage]);
    }
    for (const one of series.scatter.filter((one) => one.index - 1 === at)) rows.push([one.badge.word, one.text]);
    return rows;
  };

  const slotRows = (series, slot) => {
    const one = series.track.unusable.get(slot);
    if (!one) return [];
    return [
      [`${one.symbol} ${one.word}`, one.why],
      ["Release", series.track.releaseOf(slot)],
      ["Night", series.track.nightOf(slot)],
      ["Trial", series.track.trial[slot]],
    ];
  };

  const moveRows = (series, slot, view) =>
    (view.by === "night" ? series.track.movesInTime : series.track.moves)
      .filter((move) => move[0] === slot)
      .map(([, name, before, after]) => [`▲ ${name}`, `${before} → ${after}`]);

  // `isHeld` if it stays until something else is tapped, with a link to the trial.
  const describe = (plot, slot, clientX, isHeld = false) => {
    const { series, view } = plot;
    const at = series.pointAt.get(slot);
    const rows = [...(at === undefined ? slotRows(series, slot) : pointRows(series, at, view)), ...moveRows(series, slot, view)].filter(([, text]) => text !== "");
    tip.replaceChildren(element("dl", {}, ...rows.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)])));
    // The page says what its own chart shows; that of another line or measure is named.
    if (plot.box.id !== "chart" || series.colour) tip.prepend(element("p", { className: "note" }, series.colour ? `Line ${series.line}` : series.title));
    const page = isHeld && series.track.pageOf(slot);
    if (page) {
      const link = element("a", { href: page }, "Open the trial");
      tip.append(element("p", {}, link));
    }
    tip.classList.toggle("held", isHeld);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const box = plot.box.getBoundingClientRect();
    // Under the chart or over it: inside it would hide the neighbours.
    const hasRoom = box.bottom + height + 8 < window.innerHeight;
    const place = (wanted, most) => `${Math.max(8, Math.min(wanted, most - 8))}px`;
    tip.style.left = place(clientX - width / 2, window.innerWidth - width);
    tip.style.top = place(hasRoom ? box.bottom : box.top - height, window.innerHeight - height);
    return rows;
  };

  const isHeld = () => !tip.hidden && tip.classList.contains("held");

  const hush = () => {
    tip.hidden = true;
    for (const plot of plots) plot.cursor.hidden = true;
  };

  // --- Where things are -------------------------------------------------------------------------
  // Offset of the plot's data area from the corner of its box, in pixels.
  const originOf = (plot) => {
    const padding = plot.drawing.padding();
    const [left, top] = plot.drawing.origin();
    return [padding.left + left, padding.top + top];
  };
  const scale = (plot, name) => plot.drawing.scale(name);
  const toX = (plot, slot) => scale(plot, "x")(model.xOf(plot.series.track, plot.view, slot));
  const insideOf = (plot, event) => {
    const box = plot.canvas.getBoundingClientRect();
    const [left, top] = originOf(plot);
    return [event.clientX - box.left - left, event.clientY - box.top - top];
  };

  // The nearest thing: { series, slot, far } in pixels; a symbol on the bottom, or a point of any line.
  const nearest = (plot, [px, py]) => {
    let best = null;
    const [x, y] = [scale(plot, "x"), scale(plot, "y")];
    if (py > plot.drawing.height() - BOTTOM_PX && !plot.isSmall) {
      for (const one of [...plot.bottom.unusable, ...plot.bottom.moves]) {
        const far = Math.abs(x(one.x) - px);
        if (far < 12 && (!best || far < best.far)) best = { series: plot.series, slot: one.slot, far };
      }
      if (best) return best;
    }
    for (const { series, rows } of plot.shown) {
      for (const row of rows) {
        // Along the axis counts more: a cursor is vertical.
        const far = Math.hypot(x(row.x) - px, (y(row.y) - py) / 4);
        if (!best || far < best.far) best = { series, slot: series.at[row.at], far, exactly: Math.hypot(x(row.x) - px, y(row.y) - py) };
      }
    }
    return best;
  };

  // --- The cursor of all charts -----------------------------------------------------------------
  const point = (stem, slot) => {
    for (const plot of plots) {
      const isThere = plot.drawing && plot.series.track.stem === stem && plot.box.isConnected;
      const left = isThere ? toX(plot, slot) : NaN;
      plot.cursor.hidden = !(left >= 0 && left <= plot.drawing?.width());
      if (plot.cursor.hidden) continue;
      const [from, top] = originOf(plot);
      Object.assign(plot.cursor.style, { left: `${from + left}px`, top: `${top}px`, height: `${plot.drawing.height()}px` });
    }
  };

  // --- Dragging ---------------------------------------------------------------------------------
  const zoomTo = (plot, from, to) => {
    const { track } = plot.series;
    const x = scale(plot, "x");
    const [low, high] = [x.invert(Math.min(from, to)), x.invert(Math.max(from, to))].map(Number);
    const inside = track.orders[plot.view.by].filter((slot) => {
      const place = model.xOf(track, plot.view, slot);
      return place >= low && place <= high;
    });
    if (!inside.length) return;
    kp.state.set({ zoom: `${track.trial[inside[0]]}..${track.trial[inside[inside.length - 1]]}` }, true);
  };

  const listen = (plot) => {
    const { box, brush } = plot;
    let start = null;
    const follow = (event) => {
      if (!plot.drawing) return;
      const inside = insideOf(plot, event);
      if (start) {
        const [from, top] = originOf(plot);
        const end = Math.min(Math.max(inside[0], 0), plot.drawing.width());
        Object.assign(brush.style, { left: `${from + Math.min(start[0], end)}px`, width: `${Math.abs(end - start[0])}px`, top: `${top}px`, height: `${plot.drawing.height()}px` });
        brush.hidden = Math.abs(end - start[0]) < CLICK_PX;
        start.end = end;
        return;
      }
      const near = nearest(plot, inside);
      plot.near = near;
      if (!near || inside[0] < -8) return;
      box.classList.toggle("on-point", isHit(near) && Boolean(near.series.track.pageOf(near.slot)));
      plot.slot = near.slot;
      point(near.series.track.stem, near.slot);
      describe({ ...plot, series: near.series }, near.slot, event.clientX);
    };
    box.addEventListener("pointermove", follow);
    // A finger that is lifted leaves, too.
    box.addEventListener("pointerleave", () => start || isHeld() || hush());
    box.addEventListener("pointerdown", (event) => {
      if (event.button || !plot.drawing) return;
      const inside = insideOf(plot, event);
      follow(event);
      start = Object.assign([...inside], { end: inside[0] });
      box.setPointerCapture(event.pointerId);
      hush();
    });
    box.addEventListener("pointercancel", () => {
      start = null;
      brush.hidden = true;
    });
    box.addEventListener("pointerup", (event) => {
      if (!start) return;
      const [from, to] = [start[0], start.end];
      start = null;
      brush.hidden = true;
      if (Math.abs(from - to) >= CLICK_PX) zoomTo(plot, from, to);
      else if (event.pointerType === "touch") hold(plot, event);
      else if (plot.near && isHit(plot.near)) open(plot.near, event.ctrlKey || event.metaKey);
    });
    box.addEventListener("dblclick", () => kp.state.set({ zoom: "" }, true));
    box.addEventListener("keydown", (event) => step(plot, event));
    // A tap on the link of what is held takes the focus away before it is a click.
    box.addEventListener("blur", () => isHeld() || hush());
  };

  document.addEventListener("pointerdown", (event) => {
    if (isHeld() && !event.target.closest(".tip, .plot")) hush();
  });
  window.addEventListener("scroll", () => isHeld() && hush(), { passive: true });

  const isHit = (near) => (near.exactly ?? near.far) < NEAR_PX / 2;

  // A finger is wider than a mouse's arrow.
  const hold = (plot, event) => {
    const { near } = plot;
    if (!near || (near.exactly ?? near.far) >= NEAR_PX) return;
    point(near.series.track.stem, near.slot);
    describe({ ...plot, series: near.series }, near.slot, event.clientX, true);
  };

  const open = ({ series, slot }, isAside) => {
    const page = series.track.pageOf(slot);
    if (!page) return;
    if (isAside) window.open(page, "_blank", "noopener");
    else kp.go(page);
  };

  // --- By keyboard ------------------------------------------------------------------------------
  const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  const step = (plot, event) => {
    if (!plot.drawing || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = plot.shown[0].rows;
    const now = rows.findIndex((row) => plot.series.at[row.at] === plot.slot);
    if (event.key === "Enter" && now >= 0) {
      open({ series: plot.series, slot: plot.slot }, false);
    } else if (event.key === "Escape") {
      hush();
    } else if (event.key in STEPS && rows.length) {
      event.preventDefault();
      // From nowhere, the newest point.
      const next = now < 0 ? rows.length - 1 : Math.min(rows.length - 1, Math.max(0, now + STEPS[event.key]));
      plot.slot = plot.series.at[rows[next].at];
      point(plot.series.track.stem, plot.slot);
      const box = plot.canvas.getBoundingClientRect();
      const [left] = originOf(plot);
      const described = describe(plot, plot.slot, box.left + left + toX(plot, plot.slot));
      spoken.textContent = described.map(([name, text]) => `${name}: ${text}`).join("; ");
    }
  };

  // --- A chart that can be pointed at -----------------------------------------------------------
  // `box` is the element that holds it. `show` draws what `build` gave; the view is what it was given.
  const add = (box) => {
    const canvas = element("div", { className: "chart" });
    const cursor = element("div", { className: "cursor", hidden: true });
    const brush = element("div", { className: "brush", hidden: true });
    box.replaceChildren(canvas, cursor, brush);
    const plot = { box, canvas, cursor, brush, drawing: null };
    listen(plot);
    plots.add(plot);
    plot.show = async (series, view, built, isSmall = false) => {
      const result = await kp.draw(canvas, built.spec, built.renderer);
      if (!result) return;
      Object.assign(plot, { series, view, shown: built.shown, bottom: built.bottom, drawing: result.view, isSmall });
      cursor.hidden = true;
    };
    plot.remove = () => {
      plots.delete(plot);
      box.remove();
    };
    return plot;
  };

  Object.assign(model, { addPlot: add, hush });
})();
