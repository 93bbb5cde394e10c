// Every time is written in UTC; this says beside it how long ago that was, and keeps saying it right.
"use strict";

(() => {
  const UNITS = [
    ["year", 365.25 * 86400],
    ["month", 30.44 * 86400],
    ["day", 86400],
    ["hour", 3600],
    ["minute", 60],
  ];
  const words = new Intl.RelativeTimeFormat("en");
  const describe = (from, now) => {
    const seconds = (from - now) / 1000;
    const [unit, length] = UNITS.find(([, one]) => Math.abs(seconds) >= one) ?? ["", 0];
    return unit ? words.format(Math.trunc(seconds / length), unit) : "just now";
  };

  const times = [];
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = Date.parse(time.dateTime);
    if (Number.isNaN(at)) continue;
    // A table has no room beside it.
    const beside = time.closest("table, li, nav") ? null : window.knickpoint.element("span", { className: "ago" });
    if (beside) time.after(beside);
    times.push({ at, time, beside });
  }
  const refresh = () => {
    const now = Date.now();
    for (const { at, time, beside } of times) {
      const text = describe(at, now);
      time.title = text;
      if (beside) beside.textContent = ` (${text})`;
    }
  };
  // What was said as of when the page was built, and what holds from some time on.
  const isOver = (time) => Date.now() >= Date.parse(time);
  const turn = () => {
    for (const one of document.querySelectorAll("[data-until]")) one.hidden = isOver(one.dataset.until);
    for (const one of document.querySelectorAll("[data-from]")) one.hidden = !isOver(one.dataset.from);
  };
  refresh();
  turn();
  if (times.length) setInterval(() => (refresh(), turn()), 60_000);
})();
