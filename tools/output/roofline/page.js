
"use strict";
(() => {
  const table = document.getElementById("ops");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const groups = [...document.querySelectorAll(".roofline g[data-points]")];
  const ids = (group) => group.dataset.points.split(" ").map(Number);

  // The titles become one tip that shows at once and for the keyboard too; without a script they stay titles.
  const tip = document.getElementById("tip");
  const show = (group, x, y) => {
    tip.textContent = group.getAttribute("aria-label");
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
    tip.style.top = Math.max(8, y + 14 + box.height > innerHeight ? y - box.height - 10 : y + 14) + "px";
  };
  const hide = () => { tip.hidden = true; };
  const mark = (points, on) => {
    for (const id of points) rows[id].classList.toggle("chosen", on);
    for (const group of groups) group.classList.toggle("chosen", on && ids(group).some((id) => points.includes(id)));
  };
  const go = (group) => {
    document.getElementById("filter").value = "";
    filter();
    rows[ids(group)[0]].scrollIntoView({block: "center"});
  };
  for (const group of groups) {
    const title = group.querySelector("title");
    group.setAttribute("aria-label", title.textContent);
    title.remove();
    group.addEventListener("pointermove", (e) => show(group, e.clientX, e.clientY));
    group.addEventListener("pointerenter", () => mark(ids(group), true));
    group.addEventListener("pointerleave", () => { hide(); mark(ids(group), false); });
    group.addEventListener("focus", () => {
      const box = group.getBoundingClientRect();
      show(group, box.right, box.bottom);
      mark(ids(group), true);
    });
    group.addEventListener("blur", () => { hide(); mark(ids(group), false); });
    group.addEventListener("click", () => go(group));
    group.addEventListener("keydown", (e) => {
      if (e.key === "Enter") go(group);
      if (e.key === "Escape") hide();
    });
  }
  rows.forEach((row, id) => {
    row.addEventListener("pointerenter", () => mark([id], true));
    row.addEventListener("pointerleave", () => mark([id], false));
  });

  // A cell sorts by data-v where it has one: numbers as they are, before units and rounding.
  const key = (row, column) => {
    const cell = row.cells[column];
    return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent;
  };
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    heading.firstElementChild.addEventListener("click", () => {
      const words = heading.classList.contains("words");
      const now = heading.getAttribute("aria-sort");
      const down = now === null ? !words : now === "ascending";
      headings.forEach((h) => h.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sorted = rows.map((row) => [key(row, column), row]);
      sorted.sort(([a], [b]) => (words ? a.localeCompare(b) : a - b) * (down ? -1 : 1));
      body.append(...sorted.map(([, row]) => row));
    });
  });

  const input = document.getElementById("filter");
  const filter = () => {
    const words = input.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    let share = 0, count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (row.hidden) continue;
      ++count;
      share += Number(row.dataset.share);
    }
    document.getElementById("shown").value =
      words.length ? `${count} of ${rows.length} ops, ${(100 * share).toFixed(1)} % of the time` : `${rows.length} ops`;
  };
  input.addEventListener("input", filter);
  input.form.addEventListener("submit", (e) => e.preventDefault());
  filter();
  document.documentElement.dataset.points = groups.filter((g) => g.classList.contains("point")).length;
  document.documentElement.dataset.rows = rows.length;
})();
