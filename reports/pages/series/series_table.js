// The table of a series: the page lists its newest points; all of them on demand, and as CSV, JSON or Markdown.
"use strict";

(() => {
  const kp = window.knickpoint;
  const HREF = /^#point-(\d+)$/u;

  const cell = (name, text, properties = {}) => Object.assign(document.createElement(name), { textContent: text, ...properties });

  const rowOf = (series, at) => {
    const { words } = kp;
    const { track } = series;
    const slot = series.at[at];
    const row = Object.assign(document.createElement("tr"), { id: `point-${at + 1}` });
    const value = cell("td", words.quantity(series.value[at], series.unit), { className: "num" });
    if (track.imported.has(slot)) value.append(" ", cell("span", "imported", { className: "note" }));
    const started = cell("td", "", { className: "nowrap" });
    started.append(cell("time", words.moment(track.started[slot]), { dateTime: words.iso(track.started[slot]).replace(".000Z", "+00:00") }));
    const trial = cell("td", "", { className: "trial" });
    trial.append(cell("a", track.trial[slot], { href: track.pageOf(slot) }));
    row.append(
      cell("th", String(at + 1), { scope: "row", className: "num" }),
      cell("td", track.releaseOf(slot)),
      cell("td", track.nightOf(slot), { className: "nowrap" }),
      started,
      value,
      cell("td", words.spread(series.iterations[at], series.endsOf(at)), { className: "num" }),
      trial,
    );
    return row;
  };

  // All points with their values in full: what is copied is meant for further work.
  const tableOf = (series) => ({
    columns: ["point", "release", "night", "started", `value${series.unit ? ` (${series.unit})` : ""}`, "lowest", "highest", "iterations", "trial", "origin"],
    rows: series.at.map((slot, at) => [
      at + 1,
      series.track.releaseOf(slot),
      series.track.nightOf(slot),
      kp.words.iso(series.track.started[slot]).replace(".000Z", "Z"),
      series.value[at],
      series.low[at],
      series.high[at],
      series.iterations[at].length,
      series.track.trial[slot],
      series.track.imported.has(slot) ? "imported" : "measured",
    ]),
  });

  const fillTable = (series) => {
    const tools = document.getElementById("points-tools");
    const body = document.querySelector("#points-table tbody");
    if (!body) return;
    tools.append(kp.tables.copyButtons(() => tableOf(series), "all points"));
    const showAll = () => {
      const missing = series.at.length - body.rows.length;
      const rows = document.createDocumentFragment();
      for (let at = missing - 1; at >= 0; at -= 1) rows.append(rowOf(series, at));
      body.append(rows);
      document.getElementById("show-all")?.remove();
      document.getElementById("shown-points").textContent = "";
    };
    const asked = document.getElementById("show-all");
    if (asked) {
      asked.hidden = false;
      asked.addEventListener("click", () => {
        showAll();
        body.rows[0].querySelector("a").focus({ preventScroll: true });
      });
    }
    // A link to a point that is not among the newest.
    const named = HREF.exec(location.hash);
    if (named && !document.getElementById(`point-${named[1]}`)) {
      showAll();
      document.getElementById(`point-${named[1]}`)?.scrollIntoView();
    }
  };

  Object.assign(kp.series, { fillTable, rowOf });
})();
