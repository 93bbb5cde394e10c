// The curves of a trial's page, from the data that the page Compare shows of it, too.
"use strict";

(() => {
  const kp = window.knickpoint;
  const section = document.querySelector("[data-curves]");
  if (!section) return;
  const choice = section.querySelector("select");

  // Beside the trial stands the one before it: a curve alone says little.
  const draw = ([charts, { times }, before]) => {
    const isChosen = ({ title }) => title === choice.value;
    const [chosen, other] = [times.find(isChosen), before?.times.find(isChosen)];
    const sides = [
      { side: "A", name: "before it", one: other },
      { side: "B", name: "this one", one: chosen },
    ].filter(({ one }) => one && !one.problem && !chosen.problem);
    const rows = { spectrum: sides.flatMap(({ side, name, one }) => kp.spectra.spectrumRows(side, name, one)), p99: kp.spectra.courseRows(sides) };
    rows.rate = rows.p99;
    const noCourse = chosen.course?.length ? "" : "The history keeps one histogram for each iteration of it: no course by the second.";
    section.querySelector("[role=status]").textContent = chosen.problem || (rows.p99.length ? "" : noCourse);
    for (const [name, spec] of Object.entries(charts)) {
      const chart = section.querySelector(`[data-chart="${name}"]`);
      chart.closest("figure").hidden = !rows[name].length;
      // A side without rows has no layer either.
      const layer = spec.layer.filter(({ transform: [{ filter }] }) => rows[name].some(({ side }) => side === filter.equal));
      if (layer.length) kp.draw(chart, { ...spec, layer, data: { values: rows[name] } });
    }
  };

  const start = async () => {
    const { charts, curves, before } = section.dataset;
    // That of the trial before may be gone.
    const other = before && kp.load(before).catch(() => undefined);
    const data = await Promise.all([kp.load(charts), kp.load(curves), other]);
    const titles = data[1].times.map((one) => one.title);
    choice.append(...titles.map((title) => kp.element("option", { value: title }, title)));
    const wanted = () => (titles.includes(kp.state.get("operation")) ? kp.state.get("operation") : titles[0]);
    const show = () => {
      choice.value = wanted();
      draw(data);
    };
    choice.addEventListener("change", () => kp.state.set({ operation: choice.value }));
    choice.closest("label").hidden = titles.length < 2;
    choice.closest("div").hidden = false;
    kp.state.onChange(show);
    section.refresh = () => draw(data);
    show();
  };

  start().catch((problem) => (section.querySelector("[role=status]").textContent = problem.message));
})();
