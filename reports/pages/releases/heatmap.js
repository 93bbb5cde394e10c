// Differences of any two variants as a heat map: the arithmetic of reports/pages/releases/medians.py, the table of
// templates/heatmap.html. Words and units come from the data; what is computed here is put in their form.
"use strict";

(() => {
  const kp = window.knickpoint;
  const SPACE = "\u00a0";
  const BOUNDLESS = 1e4; // as in reports/wording/measures.py
  const STRONG = [1, 2, 4];

  // --- Changes as text, as in reports/wording/measures.py -----------------------------------------
  const changeWords = (share, words) => (Math.abs(share) <= BOUNDLESS ? kp.words.percent(share) : words.noBound);
  // Nothing falls by more than all of it.
  const span = (low, high, words) => `${changeWords(Math.max(low, -1), words)} ${words.to} ${changeWords(high, words)}`;

  // --- What may be said of two medians ---------------------------------------------------------
  const varianceOfMean = (points, persistence) => {
    const ratio = (1 + persistence) / (1 - persistence);
    const ends = (2 * persistence * (1 - persistence ** points)) / (points * (1 - persistence) ** 2);
    return (ratio - ends) / points;
  };
  const standardError = (one, index) => {
    const [, , deviation, persistence] = one.series;
    const cost = one.values > 2 ? index.medianCost : 1;
    return Math.max(deviation, one.deviation) * Math.sqrt(cost * varianceOfMean(one.values, persistence));
  };
  const compare = (before, after, column, index) => {
    const base = Math.abs(before.median);
    const moved = after.median - before.median;
    const change = moved === 0 ? 0 : base ? moved / base : Math.sign(moved) * Infinity;
    if (!base || before.series.length < 5 || after.series.length < 5) return { change, standing: "unknown" };
    const quantile = Math.max(before.series[4], after.series[4]);
    const reach = (quantile * Math.hypot(standardError(before, index), standardError(after, index))) / base;
    const [low, high] = [change - reach, change + reach];
    let standing = "unknown";
    if (low > 0 || high < 0) {
      if (Math.abs(change) < column.relevant) standing = "small";
      else standing = change > 0 === column.risesWell ? "better" : "worse";
    } else if (-column.relevant < low && high < column.relevant) standing = "same";
    if (["same", "small"].includes(standing) && (before.note || after.note)) standing = "changed";
    return { change, low, high, standing };
  };

  // --- The table -------------------------------------------------------------------------------
  const readCells = (data, index) =>
    new Map(
      data.cells
        .filter(([id]) => index.series[id])
        .map(([id, median, values, deviation, ends, note = ""]) => {
          const series = index.series[id];
          return [series[0], { series, median, values, deviation, ends: data.ends[ends], note, isEcho: index.echoes.includes(id) }];
        }),
    );

  const describe = (one, column, index) =>
    kp.words.quantity(one.median, column.unit) +
    ` (${one.values}${SPACE}${one.values === 1 ? index.words.trial : index.words.trials})`;

  // What the page of its series shows two by: from which trial to which.
  const pageOf = ({ before, after, isTurned }) => {
    const [one, other] = isTurned ? [after, before] : [before, after];
    const last = other ?? one;
    const first = one?.series === last.series ? one : last;
    return `${kp.root}${last.series[1]}#${new URLSearchParams({ zoom: `${first.ends[0]}..${last.ends[1]}` })}`;
  };

  const makeCell = (cell, column, index) => {
    const { before, after, found, notes } = cell;
    const badge = index.badges[cell.standing];
    const said = kp.element("span", { className: "said" });
    const symbol = kp.element("span", { textContent: badge.symbol });
    symbol.setAttribute("aria-hidden", "true");
    said.append(symbol, ` ${found ? changeWords(found.change, index.words) : badge.word}`);
    const link = kp.element("a", { href: pageOf(cell) }, said);
    link.title = [before, after].map((one) => (one ? describe(one, column, index) : "–")).join(" → ");
    if (found) link.append(kp.element("span", { className: "unseen", textContent: `, ${badge.word}` }));
    if (found?.low !== undefined) {
      const ends = span(found.low, found.high, index.words);
      link.append(kp.element("span", { className: "note", textContent: ends }));
    }
    link.append(...notes.map((note) => kp.element("span", { className: "note inside", textContent: note })));
    const dataset = { column: column.title, verdict: badge.word };
    if (found) Object.assign(dataset, { before: before.median, after: after.median, change: found.change });
    if (found?.low !== undefined) Object.assign(dataset, { low: found.low, high: found.high });
    if (notes.length) dataset.note = notes.join("; ");
    return kp.element("td", { className: `heat ${badge.kind} s${cell.strength}`, dataset }, link);
  };

  // What is said of each measure of two variants; `size` is in changes that matter, 0 if it did not move.
  const compareAll = (index, a, b) => {
    const [befores, afters] = [readCells(a, index), readCells(b, index)];
    const names = (cells) => new Set([...cells.keys()].map((place) => index.measures[place].loosely));
    const [inBefore, inAfter] = [names(befores), names(afters)];
    const order = Object.keys(index.variants);
    const isTurned = order.indexOf(a.id) > order.indexOf(b.id);
    const places = [...new Set([...befores.keys(), ...afters.keys()])].sort((one, other) => one - other);
    return places.map((place) => {
      const measure = index.measures[place];
      const column = index.columns[measure.column];
      const [before, after] = [befores.get(place), afters.get(place)];
      const found = before && after ? compare(before, after, column, index) : null;
      const isOnBoth = inBefore.has(measure.loosely) && inAfter.has(measure.loosely);
      const isEcho = [before, after].every((one) => one?.isEcho ?? true);
      const standing = isEcho && found ? "echo" : (found?.standing ?? (isOnBoth ? "alien" : "missing"));
      const isMoved = standing === "better" || standing === "worse";
      const size = isMoved ? Math.abs(found.change) / (column.relevant || 1) : 0;
      const strength = column.relevant ? STRONG.filter((times) => Math.abs(found?.change) >= column.relevant * times).length : 1;
      const notes = [before, after].map((one) => one?.note).filter(Boolean);
      return { measure, column, before, after, isTurned, found, standing, size, strength: isMoved ? strength : 0, notes, isEcho };
    });
  };

  // The table of what `compareAll` gives.
  const build = (index, cells, label) => {
    const columns = index.columns.filter((column) => cells.some((cell) => cell.column === column));
    const head = kp.element("tr", {}, kp.element("th", { scope: "col", textContent: index.words.operation }));
    for (const { title, direction } of columns) {
      const note = kp.element("span", { className: "note", textContent: direction });
      head.append(kp.element("th", { scope: "col", dataset: { column: title } }, `${title} `, note));
    }
    const table = kp.element(
      "table",
      { className: "heatmap" },
      kp.element("caption", { className: "unseen", textContent: label }),
      kp.element("thead", {}, head),
    );
    let body = null;
    let row = null;
    for (const cell of cells) {
      const { workload, group, row: title } = cell.measure;
      if (!body || body.dataset.group !== group) {
        const note = kp.element("span", { className: "note", textContent: group });
        const heading = kp.element("th", { scope: "rowgroup", colSpan: columns.length + 1 }, `${workload} `, note);
        body = kp.element("tbody", { dataset: { group, workload } }, kp.element("tr", { className: "group" }, heading));
        table.append(body);
        row = null;
      }
      if (!row || row.dataset.row !== title) {
        row = kp.element("tr", { dataset: { row: title } }, kp.element("th", { scope: "row", textContent: title }));
        for (const column of columns) {
          row.append(kp.element("td", { className: "heat empty", dataset: { column: column.title } }));
        }
        body.append(row);
      }
      row.children[columns.indexOf(cell.column) + 1].replaceWith(makeCell(cell, cell.column, index));
    }
    return table;
  };

  // --- How many say what, and what moved -----------------------------------------------------------
  const largestOf = (cells, words) => {
    const [first, ...others] = cells.filter(({ strength }) => strength).sort((x, y) => Math.abs(y.found.change) - Math.abs(x.found.change));
    if (!first) return "";
    return `${others.length ? `${words.largest} ` : ""}${first.column.title} ${changeWords(first.found.change, words)}`;
  };
  const counts = (index, all) => {
    const cells = all.filter(({ isEcho }) => !isEcho);
    const echoes = all.length - cells.length;
    const repeated = `${echoes.toLocaleString("en-US")} ${index.words.echoes[echoes === 1 ? 0 : 1]}`;
    return kp.element(
      "ul",
      { className: "counts" },
      ...Object.entries(index.badges).flatMap(([standing, { kind, symbol, word }]) => {
        const own = cells.filter((cell) => cell.standing === standing);
        if (!own.length) return [];
        const sign = kp.element("span", { textContent: symbol });
        sign.setAttribute("aria-hidden", "true");
        const many = kp.element("strong", {}, sign, ` ${own.length.toLocaleString("en-US")} ${word.toLowerCase()}`);
        const largest = largestOf(own, index.words);
        const note = largest ? [" ", kp.element("span", { className: "note", textContent: largest })] : [];
        return [kp.element("li", { className: `heat ${kind} s1` }, many, ...note)];
      }),
      ...(echoes ? [kp.element("li", { className: "note", textContent: repeated })] : []),
    );
  };

  // What moved, the largest first: a line for each measure. undefined where nothing did.
  const moved = (index, cells) => {
    const { words } = index;
    const lines = cells.filter(({ size, notes, isEcho }) => !isEcho && (size || notes.length)).sort((x, y) => y.size - x.size);
    if (!lines.length) return undefined;
    const text = (textContent, label) => kp.element("td", { className: "num", textContent, dataset: { label } });
    const [, verdict, levels, change, interval] = words.movedColumns;
    return kp.element(
      "table",
      { className: "stack" },
      kp.element("caption", { className: "unseen", textContent: words.moved }),
      kp.element("thead", {}, kp.element("tr", {}, ...words.movedColumns.map((textContent, at) =>
        kp.element("th", { scope: "col", textContent, className: at > 1 ? "num" : "" })))),
      kp.element("tbody", {}, ...lines.map((cell) => {
        const { measure, column, before, after, found, standing, notes } = cell;
        const { kind, symbol, word } = index.badges[standing];
        const sign = kp.element("span", { className: "symbol", textContent: symbol });
        sign.setAttribute("aria-hidden", "true");
        const title = `${column.title} ${words.since} ${measure.row[0].toLowerCase()}${measure.row.slice(1)}`;
        const link = kp.element("a", { href: pageOf(cell), textContent: title });
        const why = [measure.workload, column.direction, ...notes].join(", ");
        const note = kp.element("span", { className: "note", textContent: why });
        const ends = found?.low === undefined ? "–" : span(found.low, found.high, words);
        const both = [before, after].map((one) => (one ? kp.words.quantity(one.median, column.unit) : "–")).join(" → ");
        return kp.element("tr", {},
          kp.element("th", { scope: "row", dataset: { label: words.movedColumns[0] } }, link, " ", note),
          kp.element("td", { dataset: { label: verdict } }, kp.element("span", { className: `badge ${kind}` }, sign, word)),
          text(both, levels), text(found ? changeWords(found.change, words) : "–", change), text(ends, interval));
      })),
    );
  };

  // The measure that moved furthest, in changes that matter; undefined where none did.
  const findStrongest = (index, a, b) => {
    const [first] = compareAll(index, a, b).filter(({ size, isEcho }) => size && !isEcho).sort((x, y) => y.size - x.size);
    return first?.measure;
  };

  kp.heatmap = { compareAll, build, counts, moved, findStrongest, changeWords };
})();
