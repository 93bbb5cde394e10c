// Draws the chart of a series or trial page in the colours of its theme, and lets the front page notice its
// own age. All words and numbers come from the page; without this script nothing but these is lost.
"use strict";

(() => {
  const theme = () => {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const font = getComputedStyle(document.body).fontFamily;
    const styles = {
      "kp-band": { color: colour("band"), opacity: 1 },
      "kp-level": { color: colour("quiet"), strokeWidth: 1.5 },
      "kp-noise": { color: colour("quiet"), opacity: 0.14 },
      "kp-drift": { color: colour("unsure"), strokeWidth: 2.5 },
      "kp-spread": { color: colour("mark"), strokeWidth: 1.5, opacity: 0.5 },
      "kp-point": { color: colour("mark"), opacity: 1, cursor: "pointer" },
    };
    for (const kind of ["good", "bad", "calm", "unsure"]) {
      styles[`kp-change-${kind}`] = { color: colour(kind), strokeWidth: 1.5 };
      styles[`kp-place-${kind}`] = { color: colour(kind), opacity: 0.16 };
      styles[`kp-step-${kind}`] = { color: colour(kind), fontSize: 18, fontWeight: 700 };
      styles[`kp-label-${kind}`] = { color: colour(kind), fontSize: 12, fontWeight: 600 };
    }
    return {
      background: "transparent",
      font,
      style: styles,
      view: { stroke: colour("line") },
      axis: {
        domainColor: colour("line"),
        gridColor: colour("line"),
        gridOpacity: 0.7,
        tickColor: colour("line"),
        labelColor: colour("quiet"),
        labelFontSize: 12,
        labelPadding: 6,
        titleColor: colour("quiet"),
        titleFontSize: 12,
        titleFontWeight: 400,
      },
    };
  };

  const options = () => ({
    ast: true, // the page's policy forbids compiling expressions
    actions: false,
    defaultStyle: false, // no inline style sheets either
    tooltip: { disableDefaultStyle: true },
    renderer: "svg",
    config: theme(),
  });

  const chart = document.getElementById("chart");
  if (chart) {
    let drawn = Promise.resolve(null);
    const draw = () => {
      drawn = drawn
        .then((before) => {
          if (before) before.finalize();
          return window.vegaEmbed(chart, window.knickpointChart, options());
        })
        .catch((problem) => {
          chart.textContent = `The chart could not be drawn (${problem.message}). The table below holds the same numbers.`;
          return null;
        });
    };
    draw();
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }

  const age = document.getElementById("age");
  if (age) {
    const seconds = (Date.now() - Date.parse(age.dataset.built)) / 1000;
    if (seconds > Number(age.dataset.staleAfterS)) {
      const days = Math.floor(seconds / 86400);
      age.querySelector("span").textContent = `${days} ${days === 1 ? "day" : "days"}`;
      age.hidden = false;
    }
  }
})();
