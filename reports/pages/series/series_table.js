// The table of a series: the page lists its newest points; all of them on demand, and as CSV, JSON or Markdown.
"use strict";

(() => {
  const kp = window.knickpoint;
  const { element } = kp;
  const HREF = /^#point-(\d+)$/u;

  const rowOf = (series, at) => {
    const { words } = kp;
    const { track } = series;
    const slot = series.at[at];
    const started = track.started[slot];
    const imported = track.imported.has(slot) ? [" ", element("span", { className: "note" }, "imported")] : [];
    return element(
      "tr",
      { id: `point-${at + 1}` },
      element("th", { scope: "row", className: "num" }, String(at + 1)),
      element("td", {}, track.releaseOf(slot)),
      element("td", { className: "nowrap" }, track.nightOf(slot)),
      element("td", { className: "nowrap" }, element("time", { dateTime: words.iso(started).replace(".000Z", "+00:00") }, words.moment(started))),
      element("td", { className: "num" }, words.quantity(series.value[at], series.unit), ...imported),
      element("td", { className: "num" }, words.spread(series.iterations[at], series.endsOf(at))),
      element("td", { className: "trial" }, element("a", { href: track.pageOf(slot) }, track.trial[slot])),
    );
  };

  // All points, the newest with their values in full: what is copied is meant for further work. Of old
  // points without ends nothing is known of their iterations, and these places stay empty.
  const tableOf = (series) => ({
    columns: ["point", "release", "night", "started", `value${series.unit ? ` (${series.unit})` : ""}`, "lowest", "highest", "iterations", "trial", "origin"],
    rows: series.at.map((slot, at) => [
      at + 1,
      series.track.releaseOf(slot),
      series.track.nightIdOf(slot),
      kp.words.iso(series.track.started[slot]).replace(".000Z", "Z"),
      series.value[at],
      ...(series.iterations[at].length || series.endsOf(at)
        ? [series.low[at], series.high[at], series.iterations[at].length || ""]
        : ["", "", ""]),
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
