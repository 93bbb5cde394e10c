// Values in words, by the same rules as reports/wording/wording.py: a page of thousands of points has them as
// numbers only, and any two variants are compared by script. A test compares both.
"use strict";

(() => {
  const kp = window.knickpoint;
  const NO_BREAK = "\u00a0";
  // Python rounds the very value that a double is, and ties to the even digit. A double given as a number is
  // rounded from its shortest text, in which 1.015 is a tie and more than it is.
  const EXACT = 40;
  const formats = [];
  const grouped = (value, decimals) => {
    formats[decimals] ??= new Intl.NumberFormat("en-US", {
      minimumFractionDigits: decimals,
      maximumFractionDigits: decimals,
      roundingMode: "halfEven",
    });
    return formats[decimals].format(value.toFixed(EXACT)).replace("-", "−");
  };

  // Three significant digits, or a whole number from 1,000 up.
  const number = (value) => {
    if (!Number.isFinite(value)) return "not a number";
    if (Math.abs(value) >= 1000) return grouped(value, 0);
    if (value === 0) return "0";
    const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
    if (decimals > 12) return value.toExponential(1).replace("-", "−");
    return grouped(value, decimals);
  };

  const quantity = (value, unit) => `${number(value)}${unit ? NO_BREAK + unit : ""}`;

  const percent = (share) => {
    const value = share * 100;
    if (!Number.isFinite(value)) return "from zero";
    if (Math.abs(value) < 0.05) return `±0.0${NO_BREAK}%`;
    return `${value > 0 ? "+" : "−"}${grouped(Math.abs(value), 1)}${NO_BREAK}%`;
  };

  const iso = (seconds) => new Date(seconds * 1000).toISOString();
  const moment = (seconds) => `${iso(seconds).slice(0, 16).replace("T", " ")} UTC`;

  const count = (many, noun) => `${many.toLocaleString("en-US")} ${noun}${many === 1 ? "" : "s"}`;

  const spread = (values, ends) => {
    if (ends) return `between ${number(ends[0])} and ${number(ends[1])}`;
    if (!values.length) return "–";
    if (values.length === 1) return "1 iteration";
    return `${number(Math.min(...values))} to ${number(Math.max(...values))} in ${values.length} iterations`;
  };

  const median = (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  };

  kp.words = { number, quantity, percent, iso, moment, count, spread, median };
})();
