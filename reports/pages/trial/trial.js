// The curves of a trial's page, from the data that the page Compare shows of it, too.
"use strict";

(() => {
  const kp = window.knickpoint;
  const section = document.querySelector("[data-curves]");
  if (!section) return;
  const choice = section.querySelector("select");

  // Beside the trial stands the one before it: a curve alone says little.
  // Of this trial alone: two trials of several servers over each other would show neither.
  const serverRows = ({ servers = [] }, begins) => {
    const last = new Map();
    let run = 0;
    return servers.map(([iteration, at, server, cores, written, read, memory]) => {
      const [lastIteration, lastAt, lastRun] = last.get(server) ?? [];
      const isJoined = iteration === lastIteration && at - lastAt < 2;
      if (!isJoined) run += 1;
      last.set(server, [iteration, at, isJoined ? lastRun : run]);
      return { side: "B", server, iteration, run: last.get(server)[2], at: begins.get(iteration) + at, cores, written, read, memory };
    });
  };

  // One cursor for all charts by the second: what servers did while the rate fell is above each other.
  const shareCursor = (drawn) => {
    const charts = drawn.filter((one) => one?.view).map(({ view }) => {
      const host = view.container().closest(".chart");
      const line = host.querySelector(".cursor") ?? kp.element("div", { className: "cursor", hidden: true });
      host.append(line);
      return { view, host, line };
    });
    for (const { view, host } of charts) {
      host.onpointermove = ({ clientX }) => {
        const second = view.scale("x").invert(clientX - host.getBoundingClientRect().left - view.origin()[0]);
        for (const other of charts) {
          const x = other.view.scale("x")(second);
          other.line.hidden = !(x >= 0 && x <= other.view.width());
          other.line.style.left = `${other.view.origin()[0] + x}px`;
        }
      };
      host.onpointerleave = () => charts.forEach(({ line }) => (line.hidden = true));
    }
  };

  const draw = async ([charts, { times }, before]) => {
    const isChosen = ({ title }) => title === choice.value;
    const [chosen, other] = [times.find(isChosen), before?.times.find(isChosen)];
    const sides = [
      { side: "A", name: "before it", one: other },
      { side: "B", name: "this one", one: chosen },
    ].filter(({ one }) => one && !one.problem && !chosen.problem);
    const rows = { spectrum: sides.flatMap(({ side, name, one }) => kp.spectra.spectrumRows(side, name, one)), p99: kp.spectra.courseRows(sides) };
    rows.rate = rows.p99;
    rows.cores = rows.written = rows.p99.length ? serverRows(chosen, kp.spectra.placeIterations(sides)) : [];
    const bySecond = [];
    const domain = [0, Math.max(...[...rows.p99, ...rows.cores].map(({ at }) => at))];
    const noCourse = chosen.course?.length ? "" : "The history keeps one histogram for each iteration of it: no course by the second.";
    section.querySelector("[role=status]").textContent = chosen.problem || (rows.p99.length ? "" : noCourse);
    for (const [name, spec] of Object.entries(charts)) {
      const chart = section.querySelector(`[data-chart="${name}"]`);
      chart.closest("figure").hidden = !rows[name].length;
      // A side without rows has no layer either.
      const layer = spec.layer.filter(({ transform: [{ filter }] }) => rows[name].some(({ side }) => side === filter.equal));
      if (!layer.length) continue;
      const filled = { ...structuredClone(spec), layer, data: { values: rows[name] } };
      if (name !== "spectrum") filled.encoding.x.scale.domain = domain;
      const drawing = kp.draw(chart, filled);
      if (name !== "spectrum") bySecond.push(drawing);
    }
    shareCursor(await Promise.all(bySecond));
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
