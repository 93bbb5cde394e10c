// Pages inside of one file: the address says which one is shown, #page=series/….html, beside the view.
// Runs before all other scripts, so that each of them finds its page as it would on a site; another page
// is another start.
"use strict";

(() => {
  const pages = new Map([...document.querySelectorAll("template[data-page]")].map((one) => [one.dataset.page, one]));
  // A fragment without "=" is an anchor on the page that is shown.
  const read = (fragment) => new URLSearchParams(fragment.includes("=") ? fragment : "");
  const asked = () => read(location.hash.slice(1));
  const shown = asked().get("page") ?? "";

  const page = pages.get(shown);
  if (page) {
    document.getElementById("main").replaceChildren(page.content.cloneNode(true));
    document.title = page.dataset.title;
  }
  const scroll = () => document.getElementById(asked().get("at") ?? "")?.scrollIntoView();
  window.addEventListener("load", scroll);
  window.addEventListener("hashchange", () => {
    if (location.hash && !location.hash.includes("=")) return;
    if ((asked().get("page") ?? "") === shown) scroll();
    else location.reload();
  });

  // Scripts ask for a page by its place on a site; one that this file does not hold leads nowhere.
  const go = (url) => {
    const [path, fragment = ""] = url.replace(/^(\.\.\/)+/, "").split("#");
    const wanted = decodeURIComponent(path);
    if (!pages.has(wanted)) return;
    const state = read(fragment);
    state.set("page", wanted);
    if (fragment && !fragment.includes("=")) state.set("at", fragment);
    location.hash = state;
  };
  window.knickpointGo = go;
  document.addEventListener("click", (event) => {
    const href = event.target.closest?.("a[href]")?.getAttribute("href");
    if (!href || href.startsWith("#") || href.startsWith("https://")) return;
    event.preventDefault();
    go(href);
  });
})();
