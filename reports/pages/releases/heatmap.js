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
    return { change, low, high, standing };
  };

  // --- The table -------------------------------------------------------------------------------
  const readCells = (data, index) =>
    new Map(
      data.cells
        .filter(([id]) => index.series[id])
        .map(([id, median, values, deviation]) => {
          const series = index.series[id];
          return [series[0], { series, median, values, deviation }];
        }),
    );

  const tell = (one, column, index) =>
    kp.words.quantity(one.median, column.unit) +
    ` (${one.values}${SPACE}${one.values === 1 ? index.words.trial : index.words.trials})`;

  const makeCell = (before, after, column, index, isOnBoth) => {
    let standing = isOnBoth ? "alien" : "missing";
    let found = {};
    let strength = 0;
    if (before && after) {
      found = compare(before, after, column, index);
      standing = found.standing;
      const isTold = standing === "better" || standing === "worse";
      if (isTold) {
        strength = column.relevant
          ? STRONG.filter((times) => Math.abs(found.change) >= column.relevant * times).length
          : 1;
      }
    }
    const badge = index.badges[standing];
    const said = kp.element("span", { className: "said" });
    const symbol = kp.element("span", { textContent: badge.symbol });
    symbol.setAttribute("aria-hidden", "true");
    const hasChange = found.change !== undefined;
    said.append(symbol, ` ${hasChange ? changeWords(found.change, index.words) : badge.word}`);
    const link = kp.element("a", { href: kp.root + (after ?? before).series[1] }, said);
    link.title = [before, after].map((one) => (one ? tell(one, column, index) : "–")).join(" → ");
    if (hasChange) link.append(kp.element("span", { className: "unseen", textContent: `, ${badge.word}` }));
    if (found.low !== undefined) {
      const ends = span(found.low, found.high, index.words);
      link.append(kp.element("span", { className: "note", textContent: ends }));
    }
    return { standing, cell: kp.element("td", { className: `heat ${badge.kind} s${strength}` }, link) };
  };

  // Gives the table of two variants and how many cells say what: { table, counts }.
  const build = (index, a, b, label) => {
    const before = readCells(a, index);
    const after = readCells(b, index);
    const shown = [...new Set([...before.keys(), ...after.keys()])].sort((one, other) => one - other);
    const names = (cells) => new Set([...cells.keys()].map((place) => index.measures[place].loosely));
    const [inBefore, inAfter] = [names(before), names(after)];
    const columns = [...new Set(shown.map((place) => index.measures[place].column))].sort((x, y) => x - y);
    const head = kp.element("tr", {}, kp.element("th", { scope: "col", textContent: index.words.operation }));
    for (const column of columns) {
      const { title, direction } = index.columns[column];
      const note = kp.element("span", { className: "note", textContent: direction });
      head.append(kp.element("th", { scope: "col", dataset: { column: title } }, `${title} `, note));
    }
    const table = kp.element(
      "table",
      { className: "heatmap" },
      kp.element("caption", { className: "unseen", textContent: label }),
      kp.element("thead", {}, head),
    );
    const counts = {};
    let body = null;
    let row = null;
    for (const place of shown) {
      const { workload, group, row: title, column, loosely } = index.measures[place];
      if (!body || body.dataset.group !== group) {
        const note = kp.element("span", { className: "note", textContent: group });
        const heading = kp.element("th", { scope: "rowgroup", colSpan: columns.length + 1 }, `${workload} `, note);
        body = kp.element("tbody", { dataset: { group, workload } }, kp.element("tr", { className: "group" }, heading));
        table.append(body);
        row = null;
      }
      if (!row || row.dataset.row !== title) {
        row = kp.element("tr", { dataset: { row: title } }, kp.element("th", { scope: "row", textContent: title }));
        for (const one of columns) {
          row.append(kp.element("td", { className: "heat empty", dataset: { column: index.columns[one].title } }));
        }
        body.append(row);
      }
      const isOnBoth = inBefore.has(loosely) && inAfter.has(loosely);
      const { standing, cell } = makeCell(
        before.get(place), after.get(place), index.columns[column], index, isOnBoth,
      );
      cell.dataset.column = index.columns[column].title;
      row.children[columns.indexOf(column) + 1].replaceWith(cell);
      counts[standing] = (counts[standing] ?? 0) + 1;
    }
    return { table, counts };
  };

  // Gives the measure that moved furthest, in changes that matter; undefined where none did.
  const findStrongest = (index, a, b) => {
    const before = readCells(a, index);
    let strongest;
    let most = 0;
    for (const [place, after] of readCells(b, index)) {
      if (!before.has(place)) continue;
      const measure = index.measures[place];
      const column = index.columns[measure.column];
      const { change, standing } = compare(before.get(place), after, column, index);
      const weight = standing === "worse" || standing === "better" ? Math.abs(change) / (column.relevant || 1) : 0;
      if (weight > most) [strongest, most] = [measure, weight];
    }
    return strongest;
  };

  kp.heatmap = { build, findStrongest, changeWords };
})();
