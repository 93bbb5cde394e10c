// Tables that can be taken along, filtered and sorted. The container of a table says which:
//   data-copy    buttons that copy it as CSV, JSON and Markdown
//   data-filter  a field that filters its rows; its value names the text in the URL ("find" if empty)
//   data-sort    headers become buttons that sort; the column is in the URL (sort=change, or sort=-change)
// A cell may carry its bare value in data-value, for copying and sorting; else its text counts.
// A row may carry words in data-find that the filter finds and no cell shows.
"use strict";

(() => {
  const kp = window.knickpoint;
  const { element } = kp;

  // --- What a table says ----------------------------------------------------------------------
  const textOf = (cell) => {
    const copy = cell.cloneNode(true);
    copy.querySelectorAll('[aria-hidden="true"], [hidden], .ago, svg title, script').forEach((one) => one.remove());
    copy.querySelectorAll("svg[aria-label]").forEach((one) => one.replaceWith(one.getAttribute("aria-label")));
    copy.querySelectorAll("*").forEach((one) => one.before(" "));
    return copy.textContent.replace(/\s+/gu, " ").trim();
  };
  const isNumber = (text) => text !== "" && Number.isFinite(Number(text));
  const valueOf = (cell) => {
    const bare = cell.dataset.value;
    if (bare === undefined) return textOf(cell);
    return isNumber(bare) ? Number(bare) : bare;
  };
  const cellsOf = (row) =>
    [...row.cells].flatMap((cell) => [cell, ...new Array(Math.max(0, cell.colSpan - 1)).fill(null)]);
  const isShown = (one) => !one.hidden;
  const headsOf = (table) => cellsOf(table.tHead.rows[table.tHead.rows.length - 1]);
  // A picture says nothing in text: its column is left out.
  const linesOf = (table, write) => {
    const rows = [...table.tBodies].flatMap((body) => [...body.rows].filter(isShown).map(cellsOf));
    const kept = [...headsOf(table).entries()].filter(([place]) => !rows.some((row) => row[place]?.querySelector("svg")));
    const cellOf = (cell) => (cell ? write(cell) : "");
    return {
      columns: kept.map(([, head]) => (head ? write(head) : "")),
      rows: rows.map((row) => kept.map(([place]) => cellOf(row[place]))),
    };
  };
  // As it is read: { columns: [text, …], rows: [[text or number, …], …] } of its shown rows.
  const read = (table) => linesOf(table, valueOf);

  // --- What it holds --------------------------------------------------------------------------
  // For programs: names that can be typed, one value in a cell, numbers with an ASCII minus, no notes.
  const slug = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "_").replace(/^_|_$/gu, "");
  const bareOf = (cell) => {
    if (cell.dataset.value !== undefined) return valueOf(cell);
    const copy = cell.cloneNode(true);
    copy.querySelectorAll(".note, .better").forEach((one) => one.remove());
    const text = textOf(copy) || textOf(cell);
    return text === "–" ? "" : text.replace(/^[−-](?=[\d.])/u, "-");
  };
  const AMOUNT = /^[≥±]?\s*([+-]?[\d,]*\.?\d+)\s(%|[^\s\d]\S*)$/u;
  const dataOf = (table) => {
    const { columns, rows } = linesOf(table, bareOf);
    const found = columns.flatMap((text, place) => {
      const name = slug(text) || `column_${place + 1}`;
      const values = rows.map((row) => row[place]);
      const amounts = values.map((value) => (value === "" ? ["", "", ""] : AMOUNT.exec(value)));
      if (values.every((value) => value === "") || amounts.includes(null)) return [[name, values]];
      const numbers = amounts.map(([, digits]) => (digits === "" ? "" : Number(digits.replaceAll(",", ""))));
      const units = amounts.map(([, , unit]) => unit);
      if (units.every((unit) => !unit || unit === "%")) return [[`${name}_pct`, numbers]];
      return [[name, numbers], [`${name}_unit`, units]];
    });
    return { columns: found.map(([name]) => name), rows: rows.map((_, at) => found.map(([, values]) => values[at])) };
  };

  // A heat map is a row for each of its cells.
  const percentOf = (share) => (Number.isFinite(Number(share ?? NaN)) ? Number((100 * share).toFixed(2)) : "");
  const cellsOfHeat = (table) => ({
    columns: ["workload", "operation", "measure", "before", "after", "change_pct", "low_pct", "high_pct", "verdict", "note"],
    rows: [...table.querySelectorAll("td.heat[data-verdict]")]
      .filter((cell) => isShown(cell) && isShown(cell.parentElement))
      .map((cell) => {
        const { column, before, after, change, low, high, verdict, note } = cell.dataset;
        const levels = [before, after].map((value) => (value ? Number(value) : ""));
        const shares = [change, low, high].map(percentOf);
        const row = cell.parentElement;
        return [row.parentElement.dataset.workload, textOf(row.cells[0]), column, ...levels, ...shares, verdict, note ?? ""];
      }),
  });
  const data = (table) => (table.classList.contains("heatmap") ? cellsOfHeat(table) : dataOf(table));

  // --- The same in other forms ----------------------------------------------------------------
  // A spreadsheet takes what begins like this for a formula, unless it is a plain number.
  const FORMULA = /^[=+\-@\t\r]/u;
  const PLAIN_NUMBER = /^[+-]?\d[\d.,\u00a0 ]*%?$/u;
  const csvCell = (value) => {
    let text = String(value ?? "");
    if (FORMULA.test(text) && !PLAIN_NUMBER.test(text)) text = `'${text}`;
    return /[",\r\n;\t]/u.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const toCsv = ({ columns, rows }) =>
    [columns, ...rows].map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");

  const toJson = ({ columns, rows }) => {
    const seen = new Map();
    const names = columns.map((column, place) => {
      const name = column || `column ${place + 1}`;
      seen.set(name, (seen.get(name) ?? 0) + 1);
      return seen.get(name) > 1 ? `${name} ${seen.get(name)}` : name;
    });
    // No plain objects: a column may be called __proto__.
    const line = (row) =>
      `{${names.map((name, at) => `${JSON.stringify(name)}: ${JSON.stringify(row[at] ?? "")}`).join(", ")}}`;
    return `[${rows.map((row) => `\n  ${line(row)}`).join(",")}\n]\n`;
  };

  // Code keeps a hash whole, and GitHub makes no link of it.
  const HASH = /(?<![\w@])((?:[\w.]+@)?[0-9a-f]{7,64})(?!\w)/giu;
  // GitHub makes links and pictures of these in the text that it shows, whatever was escaped; what
  // nobody can see parts them. The same signs as in reports/wording/markdown.py; numbers stay whole.
  const REFERENCES = /[@$]|#(?=\w)|:(?=\/\/|[\w+-]+:)|www(?=\.)|gh-(?=\d)|[0-9a-f]{6}(?=[0-9a-f])/giu;
  const markdownText = (text) =>
    text
      .replace(REFERENCES, "$&\u200b")
      .replace(/[\\`*_[\]|~<>&$#@!]/gu, (sign) => ({ "<": "&lt;", ">": "&gt;", "&": "&amp;" })[sign] ?? `\\${sign}`);
  const markdownCell = (value) =>
    typeof value === "number"
      ? String(value)
      : String(value ?? "")
          .replace(/\s+/gu, " ")
          .split(HASH)
          .map((part, place) => (place % 2 ? `\`${part}\`` : markdownText(part)))
          .join("");
  const toMarkdown = ({ columns, rows }) =>
    [columns, columns.map(() => "---"), ...rows]
      .map((row, place) => `| ${row.map(place === 1 ? String : markdownCell).join(" | ")} |\n`)
      .join("");

  // --- Copying --------------------------------------------------------------------------------
  const put = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // No such interface where the page comes from, or not allowed: the older way.
      const field = element("textarea", { value: text, readOnly: true, className: "unseen" });
      const focused = document.activeElement;
      document.body.append(field);
      field.select();
      const done = document.execCommand("copy");
      field.remove();
      focused?.focus();
      if (!done) throw new Error("the browser refuses");
    }
  };

  const FORMS = { CSV: toCsv, JSON: toJson, Markdown: toMarkdown };
  // Buttons that copy a table, or what a function gives ({ columns, rows }, or a promise of it); `what` names it.
  const copyButtons = (source, what) => {
    const provide = (form) => (typeof source === "function" ? source() : form === "Markdown" ? read(source) : data(source));
    const said = element("span", { className: "note", role: "status" });
    const buttons = Object.entries(FORMS).map(([form, write]) => {
      const button = element("button", { type: "button", ariaLabel: `Copy ${what} as ${form}` }, form);
      button.addEventListener("click", async () => {
        try {
          const table = await provide(form);
          await put(write(table));
          said.textContent = `Copied ${table.rows.length} ${table.rows.length === 1 ? "row" : "rows"} as ${form}.`;
        } catch (problem) {
          said.textContent = `Could not copy: ${problem.message}.`;
        }
      });
      return button;
    });
    return element("span", { className: "copy" }, "Copy as ", ...buttons, " ", said);
  };

  // --- Filtering ------------------------------------------------------------------------------
  const addFilter = (bar, container, table, what) => {
    const key = container.dataset.filter || "find";
    const field = element("input", { type: "search", autocomplete: "off", spellcheck: false, placeholder: "Filter", ariaLabel: `Filter ${what}` });
    const said = element("span", { className: "note", role: "status" });
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
    const texts = rows.map((row) => `${row.textContent} ${row.dataset.find ?? ""}`.replace(/\s+/gu, " ").toLowerCase());
    const apply = () => {
      const words = field.value.toLowerCase().split(/\s+/u).filter(Boolean);
      let shown = 0;
      rows.forEach((row, place) => {
        row.hidden = !words.every((word) => texts[place].includes(word));
        if (!row.hidden) shown += 1;
      });
      said.textContent = !words.length ? "" : shown ? `${shown} of ${rows.length} rows.` : "No row holds all of this.";
    };
    const recall = () => {
      const text = kp.state.get(key);
      if (text.trim() === field.value.trim()) return;
      field.value = text;
      apply();
    };
    field.addEventListener("input", () => {
      apply();
      kp.state.set({ [key]: field.value.trim() });
    });
    kp.state.onChange(recall);
    recall();
    bar.append(field, said);
  };

  // --- Sorting --------------------------------------------------------------------------------
  const words = new Intl.Collator("en", { numeric: true });
  // "≥ 1,234.5 ms" is a number with a unit; "5.0.3" and "2026-03-01" are texts with numbers in them.
  const QUANTITY = /^[≥≤±<>]?\s*([+−-]?[\d,]*\.?\d+)(?:\s*(%)|\s+(\D.*))?$/u;
  const keyOf = (row, column) => {
    const cell = cellsOf(row)[column];
    const value = cell ? valueOf(cell) : "";
    if (typeof value === "number") return { value, unit: "" };
    if (value === "" || value === "–") return null;
    const [, digits, percent, unit] = QUANTITY.exec(value) ?? [];
    if (!digits) return { text: value };
    return { value: Number(digits.replaceAll(",", "").replace("−", "-")), unit: percent ?? unit ?? "" };
  };
  const compare = (a, b) => {
    if (a.text !== undefined || b.text !== undefined) return words.compare(a.text ?? "", b.text ?? "");
    return words.compare(a.unit, b.unit) || a.value - b.value;
  };
  const addSorting = (container, table) => {
    const key = container.dataset.sort || "sort";
    const original = [...table.tBodies].map((body) => [body, [...body.rows]]);
    const places = new Map();
    let shown = "";
    const sort = (name) => {
      const isUp = !name.startsWith("-");
      const place = places.get(name.replace(/^-/u, ""));
      shown = name;
      for (const [at, head] of headsOf(table).entries()) {
        if (at === place) head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
        else head?.removeAttribute("aria-sort");
      }
      for (const [body, rows] of original) {
        if (place === undefined) {
          body.append(...rows);
          continue;
        }
        const keyed = [...body.rows].map((row) => ({ row, key: keyOf(row, place) }));
        // What has no value comes last, whichever way.
        keyed.sort((a, b) => {
          if (!a.key || !b.key) return Number(!a.key) - Number(!b.key);
          return compare(a.key, b.key) * (isUp ? 1 : -1);
        });
        body.append(...keyed.map(({ row }) => row));
      }
    };
    for (const [place, head] of headsOf(table).entries()) {
      const isText = original.some(([, rows]) => rows.some((row) => cellsOf(row)[place]?.textContent.trim()));
      const name = head ? slug(bareOf(head)) : "";
      if (!name || head.colSpan > 1 || !isText || places.has(name)) continue;
      places.set(name, place);
      const button = element("button", { type: "button", className: "sort" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        sort(shown === name ? `-${name}` : name);
        kp.state.set({ [key]: shown });
      });
    }
    const recall = () => {
      const wanted = kp.state.get(key);
      if (wanted !== shown) sort(wanted);
    };
    kp.state.onChange(recall);
    recall();
  };

  // --- On the page ----------------------------------------------------------------------------
  for (const container of document.querySelectorAll("[data-copy], [data-filter], [data-sort]")) {
    const table = container.matches("table") ? container : container.querySelector("table");
    if (!table?.tHead) continue;
    const what = table.caption?.textContent.trim() || container.getAttribute("aria-label") || "the table";
    const bar = element("div", { className: "table-tools" });
    if (container.dataset.filter !== undefined) addFilter(bar, container, table, what);
    if (container.dataset.copy !== undefined) bar.append(copyButtons(table, what));
    if (container.dataset.sort !== undefined) addSorting(container, table);
    if (bar.childNodes.length) container.before(bar);
  }

  kp.tables = { put, copyButtons };
})();
