// What all pages share: data on demand, the view in the URL, what the reader chose, the drawing of charts.
// All words and numbers come from the page; without this script nothing but charts and comforts is lost.
// The other files of this folder are joined behind this one, by name; each registers itself here.
"use strict";

window.knickpoint = (() => {
  const root = document.documentElement.dataset.root;

  // `role` and `aria…` become attributes: not every browser has properties for them.
  const element = (name, { dataset = {}, ...properties } = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
      if (key === "role" || key.startsWith("aria")) made.setAttribute(key.replace("aria", "aria-").toLowerCase(), value);
      else made[key] = value;
    }
    Object.assign(made.dataset, dataset);
    made.append(...children);
    return made;
  };

  // --- Data -----------------------------------------------------------------------------------
  // A page opened from a file cannot fetch, so data are scripts that call `receive` with their name.
  const data = new Map();

  const entry = (name) => {
    if (!data.has(name)) {
      const one = {};
      one.promise = new Promise((resolve, reject) => Object.assign(one, { resolve, reject }));
      data.set(name, one);
    }
    return data.get(name);
  };

  const receive = (name, value) => {
    const one = entry(name);
    one.asked = true;
    one.resolve(value);
  };
  // A report in one file brings its data along, and its pages.
  for (const [name, value] of window.knickpointCarried ?? []) receive(name, value);
  const go = (url) => (window.knickpointGo ? window.knickpointGo(url) : window.location.assign(url));

  const load = (name) => {
    const one = entry(name);
    if (!one.asked) {
      one.asked = true;
      const onerror = () => one.reject(new Error(`data/${name}.js is missing`));
      document.head.append(element("script", { src: `${root}data/${name}.js`, onerror }));
    }
    return one.promise;
  };

  // --- The view in the URL --------------------------------------------------------------------
  // In the fragment, since a page opened from a file may change nothing else: #by=night&zoom=10-40.
  // A fragment without "=" is an anchor, and left alone.
  const listeners = [];

  const read = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");

  const state = {
    get: (key, otherwise = "") => read().get(key) ?? otherwise,
    // Empty and undefined values are taken out of the URL. What `isStep` is undone by going back.
    set: (changes, isStep = false) => {
      const now = read();
      for (const [key, value] of Object.entries(changes)) {
        if (value === "" || value === undefined || value === null) now.delete(key);
        else now.set(key, value);
      }
      const url = `#${now}` === "#" ? location.pathname + location.search : `#${now}`;
      if (isStep && String(now) !== String(read())) history.pushState(null, "", url);
      else history.replaceState(null, "", url);
      for (const listener of listeners) listener();
    },
    onChange: (listener) => listeners.push(listener),
  };
  window.addEventListener("hashchange", () => listeners.forEach((listener) => listener()));

  // What an address leads to is unfolded; on paper, all of the method is.
  const unfold = () => {
    const target = document.getElementById(read().get("at") ?? location.hash.slice(1));
    const folded = target?.closest("details:not([open])");
    if (!folded) return;
    folded.open = true;
    target.scrollIntoView();
  };
  unfold();
  window.addEventListener("hashchange", unfold);
  window.addEventListener("beforeprint", () => document.querySelectorAll("details.method").forEach((one) => (one.open = true)));

  // --- What the reader chose ------------------------------------------------------------------
  // Kept for all pages; storage may be forbidden, then a choice holds for this page only.
  const memory = {
    get: (name) => {
      try {
        return localStorage.getItem(`knickpoint-${name}`) ?? "";
      } catch {
        return "";
      }
    },
    set: (name, value) => {
      try {
        localStorage.setItem(`knickpoint-${name}`, value);
      } catch {
        // Nothing to be done, and nothing lost.
      }
    },
  };

  // --- The theme ------------------------------------------------------------------------------
  const themed = [];
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const wear = (name) => {
    if (name) document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
  };
  const setTheme = (name) => {
    wear(name);
    memory.set("theme", name);
    themed.forEach((listener) => listener());
  };
  wear(memory.get("theme"));
  dark.addEventListener("change", () => themed.forEach((listener) => listener()));
  const theme = { isDark, set: setTheme, onChange: (listener) => themed.push(listener) };

  const chooser = document.getElementById("theme");
  if (chooser) {
    chooser.value = memory.get("theme");
    chooser.addEventListener("change", () => setTheme(chooser.value));
  }
  // What stands in the head of a page for this script to use.
  for (const one of document.querySelectorAll(".tools")) one.hidden = false;

  // --- Charts ---------------------------------------------------------------------------------
  const probe = element("i", { className: "probe", hidden: true });
  document.body.append(probe);
  // A variable may be light-dark(…): only an element that wears it knows the colour.
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };

  const config = () => {
    // A wall screen has a larger root size; the text of a chart grows with it.
    const large = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
    const styles = {
      "kp-baseline": { color: colour("calm"), opacity: 1 },
      "kp-candidate": { color: colour("mark"), opacity: 1 },
    };
    for (const kind of ["good", "bad", "unsure"]) {
      styles[`kp-step-${kind}`] = { color: colour(kind), fontSize: 18 * large, fontWeight: 700 };
    }
    return {
      background: "transparent",
      font: getComputedStyle(document.body).fontFamily,
      style: styles,
      // To a screen reader a chart is one picture with a description; its table holds the numbers.
      mark: { aria: false },
      view: { stroke: colour("line") },
      axis: {
        domainColor: colour("line"),
        gridColor: colour("line"),
        gridOpacity: 0.7,
        tickColor: colour("line"),
        labelColor: colour("quiet"),
        labelFontSize: 12 * large,
        labelPadding: 6,
        titleColor: colour("quiet"),
        titleFontSize: 12 * large,
        titleFontWeight: 400,
      },
    };
  };

  // Draws a Vega-Lite specification into an element, in place of what was drawn there; gives the
  // result of Vega-Embed. `renderer` is svg (crisp, readable by assistive technology) or canvas (many marks).
  const drawn = new WeakMap();
  const draw = (element, spec, renderer = "svg") => {
    const before = drawn.get(element) ?? Promise.resolve(null);
    const now = before
      .then((result) => {
        if (result) result.finalize();
        element.dataset.drawn = isDark() ? "dark" : "light"; // for the print style
        return window.vegaEmbed(element, spec, {
          ast: true, // the page's policy forbids compiling expressions
          actions: false,
          defaultStyle: false, // no inline style sheets either
          tooltip: { disableDefaultStyle: true },
          renderer,
          config: config(),
        });
      })
      .catch((problem) => {
        element.textContent = `The chart could not be drawn (${problem.message}). The tables hold the same numbers.`;
        return null;
      });
    drawn.set(element, now);
    return now;
  };

  // A chart whose whole specification is data: <div class="chart" data-spec="name of the data">.
  for (const figure of document.querySelectorAll("[data-spec]")) {
    const show = () => load(figure.dataset.spec).then((spec) => draw(figure, spec));
    show();
    theme.onChange(show);
  }

  // --- The age of the page --------------------------------------------------------------------
  const age = document.getElementById("age");
  if (age) {
    const seconds = (Date.now() - Date.parse(age.dataset.built)) / 1000;
    if (seconds > Number(age.dataset.staleAfterS)) {
      const days = Math.floor(seconds / 86400);
      age.querySelector("span").textContent = `${days} ${days === 1 ? "day" : "days"}`;
      age.hidden = false;
    }
  }

  return { root, element, receive, load, go, state, memory, theme, colour, draw };
})();
