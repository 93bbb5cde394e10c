// A series with its track, ready to be drawn: where each trial lies, what each point's values are.
// Data are as reports/pages/series/page.py and track.py write them.
"use strict";

(() => {
  const kp = window.knickpoint;

  // The slots of a track are its trials by release and then time, whether they gave a point or not.
  const readTrack = (track, stem) => {
    const slots = track.trial.map((_, slot) => slot);
    const byTime = [...slots].sort((a, b) => track.started[a] - track.started[b] || a - b);
    const unusable = new Map(track.unusable.map(([slot, kind, symbol, word, why]) => [slot, { kind, symbol, word, why }]));
    return {
      ...track,
      stem,
      orders: { release: slots, night: byTime },
      places: { release: slots, night: rankOf(byTime) },
      slotOf: new Map(track.trial.map((trial, slot) => [trial, slot])),
      imported: new Set(track.imported),
      unusable,
      releaseOf: (slot) => track.releases[track.release[slot]],
      nightOf: (slot) => track.nightNames[track.night[slot]],
      nightIdOf: (slot) => track.nights[track.night[slot]],
      pageOf: (slot) => {
        const trial = track.trial[slot];
        const night = track.nights[track.night[slot]];
        // A night that is not whole tells of its own trials; what another program measured has a page.
        const isOld = track.whole && !track.whole.includes(track.night[slot]) && trial.startsWith(`${night}.`);
        const [page, place] = (track.pages[slot] ?? (isOld ? `night/${night}.html#${trial}` : `trials/${trial}.html`)).split("#");
        const path = page && kp.root + page.split("/").map(encodeURIComponent).join("/");
        return place ? `${path}#${encodeURIComponent(place)}` : path;
      },
    };
  };

  const rankOf = (order) => {
    const places = new Array(order.length);
    order.forEach((slot, place) => (places[slot] = place));
    return places;
  };

  const readSeries = (data, track) => {
    // Old points have no iterations, and runs are unfolded: a slot or a count, and how many.
    const at = data.at.flatMap(([first, many]) => Array.from({ length: many }, (_, place) => first + place));
    const counts = data.counts.flatMap(([count, many]) => new Array(many).fill(count));
    let from = 0;
    const iterations = counts.map((many) => data.iterations.slice(from, (from += many)));
    const ends = (place) => data.ends[place] ?? null;
    const spanOf = (place, value) => ends(place) ?? (iterations[place].length ? iterations[place] : [value]);
    const started = at.map((slot) => track.started[slot]);
    return {
      ...data,
      at,
      track,
      iterations,
      endsOf: ends,
      low: data.value.map((value, place) => Math.min(...spanOf(place, value))),
      high: data.value.map((value, place) => Math.max(...spanOf(place, value))),
      pointAt: new Map(at.map((slot, place) => [slot, place])),
      // Only then has a change between two points a place on the axis of time.
      isChronological: started.every((time, at) => !at || started[at - 1] <= time),
    };
  };

  const load = async (stem) => {
    const data = await kp.load(stem);
    return readSeries(data, readTrack(await kp.load(data.track), data.track));
  };

  // --- What is shown ----------------------------------------------------------------------------
  // The view lives in the fragment of the URL:
  //   by=night         along the calendar; otherwise by release
  //   y=first          in % of the first point; y=previous: of the point before
  //   scale=log        logarithmic; otherwise linear
  //   zoom=A..B        from trial A to trial B (ids, so that a link stays good as nights are added)
  //   zoom=30          the newest 30; zoom=all: all; otherwise the newest change and what follows
  //   hide=4.0,4.1     lines that are not shown
  const readView = (series) => {
    const by = series.isWatch || kp.state.get("by") === "night" ? "night" : "release";
    const asked = kp.state.get("zoom");
    return {
      by,
      y: ["first", "previous"].includes(kp.state.get("y")) ? kp.state.get("y") : "",
      isLog: kp.state.get("scale") === "log",
      asked,
      zoom: asked.includes("..") ? asked : newestOf(series, by, asked),
      hidden: new Set(kp.state.get("hide").split(",").filter(Boolean)),
    };
  };

  const CROWDED = 150; // up to so many trials, one can be told from the next
  const USUAL = 90;
  const LEAST = 30;
  // The newest trials as a zoom, empty where that is all of them: so many, or from before the newest change on.
  const newestOf = ({ track, at, changes }, by, asked) => {
    const order = track.orders[by];
    let many = asked === "all" ? order.length : Number(asked);
    if (!(many >= 1) && order.length > CROWDED) {
      const change = changes[changes.length - 1];
      const after = change ? order.length - track.places[by][at[change.index - 1]] : 0;
      many = change ? after + Math.max(LEAST, after) : USUAL;
    }
    if (!(many >= 1) || many >= order.length) return "";
    return [order[order.length - many], order[order.length - 1]].map((slot) => track.trial[slot]).join("..");
  };

  // First and last place in the order of the axis; null where all is shown.
  const rangeOf = (track, view) => {
    const ends = view.zoom.split("..").map((trial) => track.slotOf.get(trial));
    if (ends.length !== 2 || ends.includes(undefined)) return null;
    const places = ends.map((slot) => track.places[view.by][slot]);
    return [Math.min(...places), Math.max(...places)];
  };

  const HALF_DAY_MS = 43_200_000;
  // The ends of the horizontal axis: slots, or milliseconds.
  const domainOf = (track, view, others = []) => {
    const range = rangeOf(track, view);
    const order = track.orders[view.by];
    const [first, last] = range ?? [0, order.length - 1];
    if (view.by === "release") return [first - 0.5, last + 0.5];
    const times = [order[first], order[last]].map((slot) => track.started[slot] * 1000);
    if (!range) for (const other of others) times.push(...other.started.map((time) => time * 1000));
    const low = times.reduce((a, b) => Math.min(a, b));
    const high = times.reduce((a, b) => Math.max(a, b));
    const edge = high > low ? 0.02 * (high - low) : HALF_DAY_MS;
    return [low - edge, high + edge];
  };

  const xOf = (track, view, slot) => (view.by === "release" ? slot : track.started[slot] * 1000);

  // How a value of the point at place `at` is shown; null where there is nothing to relate it to.
  const scaleOf = (series, view) => {
    const values = series.value;
    if (view.y === "first") return (value) => (values[0] ? (100 * value) / values[0] : null);
    if (view.y === "previous") return (value, at) => (at && values[at - 1] ? (100 * value) / values[at - 1] : null);
    return (value) => value;
  };

  // The points within the horizontal axis, each with its place and its values as shown.
  const pointsOf = (series, view, domain) => {
    const show = scaleOf(series, view);
    const rows = [];
    series.at.forEach((slot, at) => {
      const x = xOf(series.track, view, slot);
      const y = show(series.value[at], at);
      if (x < domain[0] || x > domain[1] || y === null || (view.isLog && y <= 0)) return;
      rows.push({ x, y, at, low: show(series.low[at], at), high: show(series.high[at], at), imported: series.track.imported.has(slot) });
    });
    return rows;
  };

  kp.series = { load, readView, rangeOf, domainOf, xOf, scaleOf, pointsOf };
})();
