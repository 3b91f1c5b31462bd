"use strict";
// Everything is readable without this script; it adds tabs, sorting, filtering, hiding and tooltips.
document.documentElement.classList.add("js");

// Tabs: links to the panels, of which one is shown. Arrow keys move between them.
const tabs = [...document.querySelectorAll("#tabs a")];
const panels = tabs.map((tab) => document.getElementById(tab.hash.slice(1)));
document.getElementById("tabs").setAttribute("role", "tablist");
tabs.forEach((tab, index) => {
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", panels[index].id);
  panels[index].setAttribute("role", "tabpanel");
  tab.addEventListener("click", (event) => {
    event.preventDefault();
    show(index);
    try { history.replaceState(null, "", tab.hash); } catch { /* not allowed in every frame */ }
  });
  tab.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -index, End: tabs.length - 1 - index };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = (index + steps[event.key] + tabs.length) % tabs.length;
    tabs[next].click();
    tabs[next].focus();
  });
});
function show(chosen) {
  tabs.forEach((tab, index) => {
    tab.setAttribute("aria-selected", String(index === chosen));
    tab.tabIndex = index === chosen ? 0 : -1;
    panels[index].hidden = index !== chosen;
  });
}
function showFromAddress() {
  show(Math.max(0, tabs.findIndex((tab) => tab.hash === location.hash)));
}
addEventListener("hashchange", showFromAddress);
showFromAddress();

// Methods can be hidden everywhere at once.
const hidden = new Set();
document.querySelectorAll(".chip").forEach((chip) =>
  chip.addEventListener("click", () => {
    const slot = chip.dataset.slot;
    const off = chip.getAttribute("aria-pressed") === "true";
    chip.setAttribute("aria-pressed", String(!off));
    document.body.classList.toggle("hide-" + slot, off);
    off ? hidden.add(slot) : hidden.delete(slot);
  }));

// Sorting: the first click puts the best numbers first (an arrow in the head says what is best), names from A.
document.querySelectorAll("table[data-sortable]").forEach((table) => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) =>
    head.firstElementChild.addEventListener("click", () => {
      const numeric = head.classList.contains("num");
      const first = numeric && !head.textContent.includes("↓") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      for (const body of table.tBodies) sortRows(body, column, order === "ascending" ? 1 : -1);
    }));
});
function sortRows(body, column, direction) {
  const rows = [...body.rows].filter((row) => !row.classList.contains("section"));
  const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  rows.sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    const [p, q] = [Number(x), Number(y)];
    const bothNumbers = x !== "" && y !== "" && !Number.isNaN(p) && !Number.isNaN(q);
    if (bothNumbers) return direction * (p - q);
    if (Number.isNaN(p) !== Number.isNaN(q)) return Number.isNaN(p) ? 1 : -1;   // without a number: last
    return direction * x.localeCompare(y);
  });
  body.append(...rows);
}

// Filtering the summary by words in the method or the model.
const filter = document.getElementById("filter");
const shown = document.getElementById("shown");
function applyFilter() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0, total = 0;
  for (const body of document.getElementById("summary-table").tBodies) {
    for (const row of body.rows) {
      if (row.classList.contains("section")) continue;
      const text = (row.cells[0].textContent + " " + body.dataset.section).toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      total += 1;
      count += row.hidden ? 0 : 1;
    }
  }
  shown.textContent = words.length ? `${count} of ${total} rows` : "";
}
if (filter) filter.addEventListener("input", applyFilter);

// Tooltips: numbers under the pointer, or under the mark that the arrow keys chose in a focused chart.
const tip = document.getElementById("tip");
function showTip(mark, x, y) {
  tip.replaceChildren(...mark.dataset.tip.split("\n").map(tipLine).filter(Boolean));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 18) + "px";
}
function tipLine(line) {
  const [slot, label, value] = line.split("\t");
  if (slot && hidden.has(slot)) return null;
  const row = document.createElement("div");
  const name = document.createElement("span");
  if (slot) {
    const swatch = document.createElement("span");
    swatch.className = "swatch s" + Number(slot);
    name.append(swatch);
  }
  name.append(label);
  row.append(name);
  if (value) {
    const bold = document.createElement("b");
    bold.textContent = value;
    row.append(bold);
  }
  return row;
}
function hideTip() {
  tip.hidden = true;
  document.querySelectorAll(".hit.on").forEach((mark) => mark.classList.remove("on"));
}
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest?.("[data-tip]");
  mark ? showTip(mark, event.clientX, event.clientY) : hideTip();
});
document.addEventListener("pointerdown", (event) => {
  const mark = event.target.closest?.("[data-tip]");
  mark ? showTip(mark, event.clientX, event.clientY) : hideTip();
});
document.addEventListener("scroll", hideTip, true);
document.querySelectorAll("svg.chart").forEach((chart) => {
  const marks = [...chart.querySelectorAll("[data-tip]")];
  let at = -1;
  chart.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hideTip();
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !marks.length) return;
    event.preventDefault();
    hideTip();
    at = Math.min(Math.max(at + step, 0), marks.length - 1);
    marks[at].classList.add("on");
    const box = marks[at].getBoundingClientRect();
    showTip(marks[at], box.x + box.width / 2, box.y + box.height / 3);
  });
  chart.addEventListener("blur", hideTip);
});

// On paper nothing can be unfolded: print all configurations.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));

// Light or dark by hand, for this visit.
const theme = document.getElementById("theme");
theme.hidden = false;
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
