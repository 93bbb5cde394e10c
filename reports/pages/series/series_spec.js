// A series as a Vega-Lite specification, from its data and what of it is to be shown.
"use strict";

(() => {
  const kp = window.knickpoint;
  const { series: model } = kp;

  // Beyond so many, single iterations are a grey cloud: they are drawn once fewer points are in view.
  const MOST_WITH_ITERATIONS = 400;
  const MANY_MARKS = 800;
  const MOST_WITH_INTERVALS = 1500;
  // Areas of dots in square pixels; a dot takes a share of the width that its point has.
  const SMALL_DOT = 12;
  const LARGE_DOT = 55;
  const DOT_SHARE = 0.8;
  const LABEL_LINES = 3;
  const LABEL_LINE = 16;
  const SHAPES = ["circle", "square", "triangle-up", "cross", "triangle-down"];
  const TWO_LINES = 34;
  // What lies on the bottom of the chart: trials without a point, and above them what else changed.
  const UNUSABLE_DY = -8;
  const MOVES_DY = -24;
  // A published figure farther away than this would press the points flat.
  const FAR_AWAY = 2;

  // Not one by one to assistive technology: the sentence under the chart and the table are for it.
  const layer = (values, mark, encoding) => (values.length ? [{ data: { values }, mark: { clip: true, aria: false, ...mark }, encoding }] : []);
  // Names are data, also inside of an expression.
  const quote = (value) =>
    JSON.stringify(value).replace(/[^\x20-\x7e]/gu, (sign) =>
      [...Array(sign.length).keys()].map((at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
    );

  // --- The horizontal axis ----------------------------------------------------------------------
  // Neighbouring slots of one release, or of one night, within the axis.
  const bandsOf = (track, domain, nameOf) => {
    const bands = [];
    for (let slot = Math.ceil(domain[0]); slot <= domain[1]; slot += 1) {
      const name = nameOf(slot);
      const last = bands[bands.length - 1];
      if (last && last.name === name) last.to = slot;
      else bands.push({ name, from: slot, to: slot });
    }
    return bands;
  };

  const xAxis = (series, view, domain, isSmall) => {
    if (view.by === "night") return axisOf(domain, ticksOf(domain), null, isSmall);
    const { track } = series;
    const byRelease = bandsOf(track, domain, track.releaseOf);
    const isOne = byRelease.length === 1;
    const bands = isOne ? bandsOf(track, domain, (slot) => track.nightOf(slot) || kp.words.iso(track.started[slot]).slice(0, 10)) : byRelease;
    const title = isOne ? `night, all of ${byRelease[0].name.slice(0, 80)}` : null;
    return axisOf(domain, bands.map((band) => [(band.from + band.to) / 2, band.name]), title, isSmall);
  };

  const axisOf = (domain, labels, title, isSmall) => ({
    type: "quantitative",
    title: isSmall ? null : title,
    scale: { domain, nice: false, zero: false },
    axis: {
      values: labels.map(([at]) => at),
      labelExpr: `${quote(Object.fromEntries(labels))}[datum.value]`,
      labelOverlap: "greedy",
      labelSeparation: 12,
      labelLimit: 120,
      labels: !isSmall,
      grid: false,
      ticks: false,
      aria: false,
    },
  });

  // Vega-Lite's own axis of time does not bear a given domain together with marks that have two ends.
  const MINUTE = 60_000;
  const HOUR = 60 * MINUTE;
  const DAY = 24 * HOUR;
  const STEPS = [MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
  const MONTHS = [1, 3, 6, 12, 24, 60];
  const MOST_TICKS = 9;
  const ticksOf = ([low, high]) => {
    const step = STEPS.find((one) => (high - low) / one <= MOST_TICKS);
    const text = (time) => kp.words.iso(time / 1000);
    const ticks = [];
    if (step) {
      const label = step < DAY ? (time) => text(time).slice(5, 16).replace("T", " ") : (time) => text(time).slice(0, 10);
      for (let time = Math.ceil(low / step) * step; time <= high; time += step) ticks.push([time, label(time)]);
      return ticks;
    }
    const months = MONTHS.find((one) => (high - low) / (one * 30 * DAY) <= MOST_TICKS) ?? 120;
    const first = new Date(low);
    for (let month = Math.ceil((first.getUTCMonth() + 1) / months) * months; ; month += months) {
      const time = Date.UTC(first.getUTCFullYear(), month, 1);
      if (time > high) return ticks;
      ticks.push([time, text(time).slice(0, 7)]);
    }
  };

  // --- The vertical axis ------------------------------------------------------------------------
  const isRelative = (view) => view.y === "previous";

  const spanOf = (shown, levels, lines) => {
    const values = [...levels.flatMap((one) => [one.low, one.high]), ...lines];
    let low = Math.min(...values.filter(Number.isFinite), Infinity);
    let high = Math.max(...values.filter(Number.isFinite), -Infinity);
    for (const { rows } of shown) {
      for (const row of rows) {
        low = Math.min(low, row.y, row.low);
        high = Math.max(high, row.y, row.high);
      }
    }
    return [low, high];
  };

  // Leaves room for labels on top and for the symbols on the bottom.
  const yDomain = ([low, high], view, height, topPx, bottomPx) => {
    if (!Number.isFinite(low) || (view.isLog && high <= 0)) return view.isLog ? [1, 10] : [0, 1];
    const into = view.isLog ? Math.log : (value) => value;
    const back = view.isLog ? Math.exp : (value) => value;
    const least = view.isLog && low <= 0 ? high / 1000 || 1e-6 : low;
    let [from, to] = [into(least), into(Math.max(high, least))];
    if (from === to) [from, to] = view.isLog ? [from - 0.1, to + 0.1] : [from - (Math.abs(from) * 0.05 || 1), to + (Math.abs(to) * 0.05 || 1)];
    const perPx = (to - from) / Math.max(40, height - topPx - bottomPx);
    return [back(from - bottomPx * perPx), back(to + topPx * perPx)];
  };

  const yTitle = (series, view) => {
    const what = view.y === "first" ? "% of the first point" : view.y === "previous" ? "% of the point before" : series.unit;
    return [`${series.metric}${what ? ` (${what})` : ""}`, series.direction];
  };

  // --- Levels and what surrounds them -----------------------------------------------------------
  // From where to where a stretch of points reaches; points are counted from 1 in what Python writes.
  const reach = (series, view, first, last) => {
    const places = [series.at[first - 1], series.at[last - 1]].map((slot) => model.xOf(series.track, view, slot));
    if (view.by === "release") return { from: places[0] - 0.5, to: places[1] + 0.5 };
    if (series.isChronological) return { from: places[0], to: places[1] };
    const all = series.at.slice(first - 1, last).map((slot) => model.xOf(series.track, view, slot));
    return { from: Math.min(...all), to: Math.max(...all) };
  };

  const isWithin = (one, domain) => one.from <= domain[1] && one.to >= domain[0];

  const levelsOf = (series, view, domain) => {
    if (isRelative(view)) return [];
    const show = model.scaleOf(series, view);
    return series.segments
      .map((one) => ({ ...reach(series, view, one.first, one.last), mean: show(one.mean), low: show(one.low), high: show(one.high), last: one.last, text: one.text }))
      .filter((one) => isWithin(one, domain) && one.mean !== null && !(view.isLog && one.low <= 0));
  };

  // The smallest visible change around the newest level.
  const visibleOf = (series, levels) => {
    const newest = levels.find((one) => one.last === series.at.length);
    if (!newest || !series.visible) return [];
    return [1 + series.visible, 1 - series.visible].map((factor) => ({ from: newest.from, to: newest.to, at: newest.mean * factor }));
  };

  const gapsOf = (series, view, domain) => {
    if (view.by === "night" && !series.isChronological) return [];
    const edge = view.by === "release" ? 0.5 : 0;
    const place = (number) => model.xOf(series.track, view, series.at[number - 1]);
    // Trials without a point may lie between both: then the change may lie at each of them.
    const middle = (index) => (place(index - 1) + place(index)) / 2;
    const steps = series.changes.map((one) => ({
      at: middle(one.index),
      from: place(one.earliest - 1) + edge,
      to: place(one.latest) - edge,
      label: `${one.label}${one.triage ? " ✎" : ""}${one.incident ? " ◆" : ""}`,
      kind: one.outcome.kind,
      dash: [5, 4],
    }));
    const scatters = series.scatter.map((one) => ({ at: middle(one.index), label: `${one.badge.symbol} ${one.label}`, kind: one.badge.kind, dash: [1, 3] }));
    return [...steps, ...scatters].filter((one) => one.at >= domain[0] && one.at <= domain[1]).map((one, place) => ({ ...one, row: place % LABEL_LINES }));
  };

  const gapLayers = (gaps, x, domain, isSmall) => {
    const middle = (domain[0] + domain[1]) / 2;
    return gaps.flatMap((gap) => {
      const colour = kp.colour(gap.kind);
      const isLeft = gap.at <= middle;
      const parts = [
        ...(gap.from < gap.to ? layer([gap], { type: "rect", color: colour, opacity: 0.16 }, { x: x("from"), x2: { field: "to" } }) : []),
        ...layer([gap], { type: "rule", color: colour, strokeWidth: 1.5, strokeDash: gap.dash }, { x: x("at") }),
      ];
      const text = { type: "text", color: colour, fontSize: 12, fontWeight: 600, y: 2 + LABEL_LINE * gap.row, dx: isLeft ? 6 : -6, align: isLeft ? "left" : "right", baseline: "top" };
      return isSmall ? parts : [...parts, ...layer([gap], text, { x: x("at"), text: { field: "label" } })];
    });
  };

  // --- The points of a line ---------------------------------------------------------------------
  const pointLayers = ({ series, rows, place }, view, x, y, { isSmall, withIterations, width }) => {
    const colour = kp.colour(place ? `line-${place}` : "mark");
    const dots = withIterations
      ? rows.flatMap((row) => series.iterations[row.at].map((value) => ({ x: row.x, value: model.scaleOf(series, view)(value, row.at) })))
      : [];
    const size = isSmall ? SMALL_DOT : Math.max(SMALL_DOT, Math.min(LARGE_DOT, (DOT_SHARE * width) ** 2 / rows.length ** 2));
    const plain = rows.filter((row) => !row.imported);
    const imported = rows.filter((row) => row.imported);
    const mark = (shape) => ({ type: "point", shape, filled: true, color: colour, opacity: 1, size });
    const spans = rows.length <= MOST_WITH_INTERVALS && !isSmall ? rows.filter((row) => row.low < row.high) : [];
    return [
      ...layer(dots, { type: "circle", color: colour, opacity: 0.45, size: Math.min(18, size) }, { x: x("x"), y: y("value") }),
      ...layer(spans, { type: "rule", color: colour, opacity: 0.5, strokeWidth: 1.5 }, { x: x("x"), y: y("low"), y2: { field: "high" } }),
      ...layer(plain, mark(SHAPES[place % SHAPES.length]), { x: x("x"), y: y("y") }),
      ...layer(imported, mark("diamond"), { x: x("x"), y: y("y") }),
    ];
  };

  // --- The symbols on the bottom ----------------------------------------------------------------
  const bottomOf = (series, view, domain) => {
    const { track } = series;
    const place = (slot) => model.xOf(track, view, slot);
    const isShown = (one) => one.x >= domain[0] && one.x <= domain[1];
    const unusable = [...track.unusable].map(([slot, one]) => ({ x: place(slot), slot, ...one })).filter(isShown);
    const moves = new Map();
    for (const [slot, name, before, after] of view.by === "night" ? track.movesInTime : track.moves) {
      if (!moves.has(slot)) moves.set(slot, { x: place(slot), slot, lines: [] });
      moves.get(slot).lines.push([name, before, after]);
    }
    return { unusable, moves: [...moves.values()].filter(isShown) };
  };

  const bottomLayers = ({ unusable, moves }, x) => [
    ...[...new Set(unusable.map((one) => one.kind))].flatMap((kind) =>
      layer(unusable.filter((one) => one.kind === kind), { type: "text", color: kp.colour(kind), fontSize: 13, fontWeight: 700, y: "height", dy: UNUSABLE_DY }, { x: x("x"), text: { field: "symbol" } }),
    ),
    ...layer(moves, { type: "text", text: "▲", color: kp.colour("unsure"), fontSize: 11, y: "height", dy: MOVES_DY }, { x: x("x") }),
  ];

  // --- All of it --------------------------------------------------------------------------------
  const referencesOf = (series, view, span) => {
    if (isRelative(view)) return [];
    const show = model.scaleOf(series, view);
    return series.references
      .map((one) => ({ at: show(one.value), label: `published: ${one.text}, ${one.about}` }))
      .filter((one) => one.at !== null && one.at >= span[0] / FAR_AWAY && one.at <= span[1] * FAR_AWAY);
  };

  // Gives { spec, renderer, rows, bottom, isThinned, references } of a chart of `lines`: the series of
  // the page first, then those of other lines that share the axes. `span` widens the vertical axis.
  const build = (lines, view, { height, width = 1000, isSmall = false, span: atLeast = null }) => {
    const [own] = lines;
    const domain = model.domainOf(own.track, view, lines.slice(1).map((one) => one.track));
    const shown = lines.map((series, at) => ({ series, place: series.colour ?? at, rows: model.pointsOf(series, view, domain) }));
    const many = shown.reduce((sum, one) => sum + one.rows.length, 0);
    const withIterations = !isSmall && many <= MOST_WITH_ITERATIONS;
    const levels = shown.map(({ series, place }) => levelsOf(series, view, domain).map((one) => ({ ...one, place })));
    const visible = isSmall ? [] : visibleOf(own, levels[0]);
    const gaps = gapsOf(own, view, domain);
    const bottom = bottomOf(own, view, domain);
    const seen = spanOf(shown, levels.flat(), [...visible.map((one) => one.at), ...(atLeast ?? [])]);
    const references = isSmall ? [] : referencesOf(own, view, seen);
    const span = references.reduce(([low, high], one) => [Math.min(low, one.at), Math.max(high, one.at)], seen);
    const labels = isSmall ? 0 : Math.min(LABEL_LINES, gaps.length);
    const limits = yDomain(span, view, height, 10 + LABEL_LINE * (labels + (references.length ? 1 : 0)), isSmall ? 8 : 8 + (bottom.unusable.length ? 16 : 0) + (bottom.moves.length ? 16 : 0));
    const axis = xAxis(own, view, domain, isSmall);
    const x = (field) => ({ field, ...axis });
    const yShared = {
      type: "quantitative",
      title: isSmall ? null : yTitle(own, view),
      scale: { domain: limits, nice: false, ...(view.isLog ? { type: "log" } : { zero: false }) },
      axis: { aria: false, tickCount: isSmall || height < 240 ? 4 : 6, minExtent: isSmall ? 48 : TWO_LINES },
    };
    const y = (field) => ({ field, ...yShared });
    const isBanded = view.by === "release";
    const bands = isBanded ? bandsOf(own.track, domain, own.track.releaseOf).filter((_, at) => at % 2).map((one) => ({ from: one.from - 0.5, to: one.to + 0.5 })) : [];
    const over = { x: x("from"), x2: { field: "to" } };
    const quiet = kp.colour("quiet");
    const layers = [
      ...layer(bands, { type: "rect", color: kp.colour("band") }, over),
      ...layer(levels[0].filter((one) => one.low < one.high), { type: "rect", color: quiet, opacity: 0.14 }, { ...over, y: y("low"), y2: { field: "high" } }),
      ...levels.flatMap((some, at) => layer(some, { type: "rule", color: at ? kp.colour(`line-${shown[at].place}`) : quiet, strokeWidth: 1.5 }, { ...over, y: y("mean") })),
      ...layer(visible, { type: "rule", color: quiet, strokeDash: [2, 4] }, { ...over, y: y("at") }),
      ...layer(slopesOf(own, view, domain), { type: "rule", color: kp.colour("unsure"), strokeWidth: 2.5 }, { ...over, y: y("low"), y2: { field: "high" } }),
      ...layer(references, { type: "rule", color: kp.colour("calm"), strokeDash: [8, 3, 2, 3] }, { y: y("at") }),
      ...layer(references, { type: "text", color: kp.colour("calm"), align: "left", x: 4, dy: -6, fontSize: 11, limit: 320 }, { y: y("at"), text: { field: "label" } }),
      ...gapLayers(gaps, x, domain, isSmall),
      ...shown.flatMap((one) => pointLayers(one, view, x, y, { isSmall, withIterations, width })),
      ...(isSmall ? [] : bottomLayers(bottom, x)),
    ];
    // Without a single mark there would be no axes either.
    const empty = { data: { values: [{ x: domain[0], y: limits[0] }] }, mark: { type: "point", opacity: 0, aria: false }, encoding: { x: x("x"), y: y("y") } };
    return {
      spec: {
        $schema: "https://vega.github.io/schema/vega-lite/v6.json",
        description: `${own.title}: ${own.inWords}`.slice(0, 1000),
        width: "container",
        height,
        padding: 5,
        autosize: { type: "fit", contains: "padding" },
        layer: [empty, ...layers],
      },
      renderer: many > MANY_MARKS || (withIterations && 4 * many > MANY_MARKS) ? "canvas" : "svg",
      shown,
      bottom,
      span,
      many,
      withIterations,
      withIntervals: many <= MOST_WITH_INTERVALS,
      farReferences: isRelative(view) ? 0 : own.references.length - references.length,
      hasHiddenGaps: view.by === "night" && !own.isChronological && own.changes.length > 0,
    };
  };

  const slopesOf = (series, view, domain) => {
    if (isRelative(view) || (view.by === "night" && !series.isChronological)) return [];
    const show = model.scaleOf(series, view);
    return series.slopes
      .map((one) => ({ ...reach(series, view, one.first, one.last), low: show(one.low), high: show(one.high) }))
      .filter((one) => isWithin(one, domain));
  };

  Object.assign(model, { build, MOST_WITH_ITERATIONS, MOST_WITH_INTERVALS });
})();
