// The curves of a trial's page, from the data that the page Compare shows of it, too.
"use strict";

(() => {
  const kp = window.knickpoint;
  const section = document.querySelector("[data-curves]");
  if (!section) return;
  const choice = section.querySelector("select");

  const draw = ([charts, { times }]) => {
    const chosen = times.find((one) => one.title === choice.value);
    const rows = { spectrum: [], p99: [] };
    if (!chosen.problem) {
      rows.spectrum = kp.spectra.spectrumRows("B", "", chosen);
      rows.p99 = kp.spectra.courseRows([{ side: "B", name: "", one: chosen }]);
    }
    rows.rate = rows.p99;
    const noCourse = chosen.course?.length ? "Too few seconds were measured to draw a course." : "The history keeps one histogram for each iteration of it: no course by the second.";
    section.querySelector("[role=status]").textContent = chosen.problem || (rows.p99.length ? "" : noCourse);
    for (const [name, spec] of Object.entries(charts)) {
      const chart = section.querySelector(`[data-chart="${name}"]`);
      chart.closest("figure").hidden = !rows[name].length;
      if (rows[name].length) kp.draw(chart, { ...spec, data: { values: rows[name] } });
    }
  };

  const start = async () => {
    const data = await Promise.all([kp.load(section.dataset.charts), kp.load(section.dataset.curves)]);
    const titles = data[1].times.map((one) => one.title);
    choice.append(...titles.map((title) => kp.element("option", { value: title }, title)));
    const wanted = () => (titles.includes(kp.state.get("operation")) ? kp.state.get("operation") : titles[0]);
    const show = () => {
      choice.value = wanted();
      draw(data);
    };
    choice.addEventListener("change", () => kp.state.set({ operation: choice.value }));
    choice.closest("div").hidden = titles.length < 2;
    kp.state.onChange(show);
    section.refresh = () => draw(data);
    show();
  };

  start().catch((problem) => (section.querySelector("[role=status]").textContent = problem.message));
})();
