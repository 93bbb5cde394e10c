// Flame graphs of a difference: where it is drawn, what is found in it, and how keys move through it.
"use strict";

(() => {
  const kp = window.knickpoint;
  const ROW_REM = 1.25;
  const THIN = 0.001; // of the width: too thin to see or to hit

  const words = (value) => (Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(2)));
  const short = (name) => name.replace(/\(\)$/, "").split(".").slice(-2).join(".");

  // Nodes know their caller; they come behind it.
  const grow = ({ names, nodes }) => {
    const tree = nodes.map(([caller, name, before, after], place) => ({ place, name: place ? names[name] : "all", before, after, caller: null, callees: [], depth: 0, at: caller }));
    for (const node of tree.slice(1)) {
      node.caller = tree[node.at];
      node.depth = node.caller.depth + 1;
      node.caller.callees.push(node);
    }
    return tree;
  };

  const start = (figure, data) => {
    const tree = grow(data);
    const graph = figure.querySelector(".flame-graph");
    const status = figure.querySelector("[role=status]");
    const find = figure.querySelector("input[type=search]");
    const most = Math.max(...tree.slice(1).map(({ before, after }) => Math.abs(after - before)), 1e-9);
    let [zoomed, current] = [tree[0], tree[0]];
    const side = () => (figure.querySelector("input[type=radio]:checked").value === "3" ? "after" : "before");
    const costOf = (node) => node[side()];

    const tell = () => {
      const { name, before, after } = current;
      const difference = after - before;
      status.textContent = `${name}: ${words(before)} → ${words(after)} (${difference > 0 ? "+" : ""}${words(difference)})`;
      graph.setAttribute("aria-activedescendant", `${figure.dataset.flame}-${current.place}`);
      for (const box of graph.children) box.classList.toggle("current", box.dataset.place === String(current.place));
    };

    const draw = () => {
      const sought = find.value.trim().toLowerCase();
      const boxes = [];
      const place = (node, left, width) => {
        if (width < THIN) return;
        const share = (node.after - node.before) / most;
        const box = kp.element("div", { role: "treeitem", id: `${figure.dataset.flame}-${node.place}`, ariaLabel: node.name, ariaLevel: node.depth + 1, title: node.name, dataset: { place: node.place } }, short(node.name));
        const strength = Math.round(100 * Math.min(1, Math.abs(share)) ** 0.6);
        box.style.cssText = `left:${100 * left}%;width:${100 * width}%;top:${ROW_REM * (node.depth - zoomed.depth)}rem`;
        if (node.place && strength > 4) box.style.background = `color-mix(in srgb, var(--flame-${share > 0 ? "more" : "less"}) ${strength}%, var(--flame))`;
        if (sought) box.classList.add(node.name.toLowerCase().includes(sought) ? "found" : "unfound");
        boxes.push(box);
        let from = left;
        for (const callee of node.callees) {
          const wide = costOf(node) ? (width * costOf(callee)) / costOf(node) : 0;
          place(callee, from, wide);
          from += wide;
        }
      };
      place(zoomed, 0, 1);
      graph.replaceChildren(...boxes);
      const deepest = Math.max(...boxes.map(({ dataset }) => tree[dataset.place].depth));
      graph.style.height = `${ROW_REM * (deepest - zoomed.depth + 1)}rem`;
      tell();
    };

    const go = (node) => {
      if (node) current = node;
      tell();
      graph.querySelector(".current")?.scrollIntoView({ block: "nearest" });
    };
    const zoom = (node) => {
      [zoomed, current] = [node, node];
      draw();
    };
    const widest = (nodes) => [...nodes].sort((one, other) => costOf(other) - costOf(one))[0];
    const beside = (step) => {
      const shown = (current.caller?.callees ?? []).filter((one) => graph.querySelector(`[data-place="${one.place}"]`));
      return shown[shown.indexOf(current) + step];
    };
    const keys = {
      ArrowDown: () => go(widest(current.callees)),
      ArrowUp: () => current !== zoomed && go(current.caller),
      ArrowLeft: () => go(beside(-1)),
      ArrowRight: () => go(beside(1)),
      Enter: () => zoom(current),
      Escape: () => zoom(zoomed.caller ?? zoomed),
      Home: () => zoom(tree[0]),
    };
    graph.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    });
    const nodeOf = (event) => tree[event.target.closest("[data-place]")?.dataset.place];
    graph.addEventListener("click", (event) => nodeOf(event) && zoom(nodeOf(event)));
    graph.addEventListener("pointerover", (event) => nodeOf(event) && go(nodeOf(event)));
    figure.querySelector("[data-reset]").addEventListener("click", () => zoom(tree[0]));
    figure.addEventListener("input", draw);
    figure.hidden = false;
    draw();
  };

  for (const figure of document.querySelectorAll("[data-flame]")) kp.load(figure.dataset.flame).then((data) => start(figure, data));
})();
