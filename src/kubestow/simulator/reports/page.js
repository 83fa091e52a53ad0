// Draws the charts of a report, and sorts and searches its tables. All texts are set as text.
"use strict";

const charts = JSON.parse(document.getElementById("charts").textContent);
const options = {
  renderer: "svg",
  actions: { export: true, source: false, compiled: false, editor: false },
};

// One after the other, so that the page can be read and scrolled meanwhile.
async function draw() {
  for (const [name, spec] of Object.entries(charts)) {
    await vegaEmbed(document.getElementById(`chart-${name}`), spec, options);
    await new Promise((resolve) => { setTimeout(resolve); });
  }
  document.documentElement.dataset.charts = "drawn";
}
draw();

// Numbers stand in data-v, where an empty text is none; none comes last in either direction.
function valueOf(row, column) {
  const cell = row.cells[column];
  const value = cell.dataset.v;
  if (value === undefined) return cell.textContent;
  return value === "" ? null : Number(value);
}

function sort(table, header) {
  const column = header.cellIndex;
  const isRising = header.getAttribute("aria-sort") !== "ascending";
  const body = table.tBodies[0];
  const keyed = Array.from(body.rows, (row) => [valueOf(row, column), row]);
  const compared = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return isRising ? compared(a, b) : compared(b, a);
  });
  body.append(...keyed.map(([, row]) => row));
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", isRising ? "ascending" : "descending");
}

function search(table, text, count) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = Array.from(table.tBodies[0].rows);
  let shown = 0;
  for (const row of rows) {
    const content = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => content.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  count.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
}

for (const section of document.querySelectorAll(".table")) {
  const table = section.querySelector("table");
  for (const header of table.tHead.rows[0].cells) {
    header.querySelector("button").addEventListener("click", () => sort(table, header));
  }
  const input = section.querySelector("input");
  const count = section.querySelector("output");
  input?.addEventListener("input", () => search(table, input.value, count));
}
