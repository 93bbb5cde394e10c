// The chart of an incident: in place of the still picture, that of its series, zoomed to the change.
"use strict";

(() => {
  const kp = window.knickpoint;
  const figure = document.querySelector("figure[data-lead]");
  if (!figure) return;

  const HEIGHT = 300;

  const start = async () => {
    const model = kp.series;
    const own = await model.load(figure.dataset.lead);
    const box = figure.querySelector(".plot");
    const plot = model.addPlot(box);
    const show = async () => {
      model.hush();
      const view = { ...model.readView(own), by: own.isWatch ? "night" : "release" };
      if (!view.asked) view.zoom = figure.dataset.zoom;
      await plot.show(own, view, model.build([own], view, { height: HEIGHT, width: box.clientWidth }));
      figure.dataset.draws = String(Number(figure.dataset.draws ?? 0) + 1);
    };
    // Only what is seen has a width.
    figure.classList.add("live");
    try {
      await show();
    } catch (problem) {
      figure.classList.remove("live");
      throw problem;
    }
    kp.state.onChange(show);
    kp.theme.onChange(show);
    document.addEventListener("knickpoint:reset", () => kp.state.set({ zoom: "" }, true));
  };

  // Those of the series are joined behind this file. Without its data the still picture stays.
  queueMicrotask(() => start().catch(() => {}));
})();
