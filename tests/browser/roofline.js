// Uses a page of `vlmest roofline` as a reader would. Sets data-used on the document's element: "yes", or what failed.
(() => {
  const page = document.documentElement;
  const expect = (what, holds) => {
    if (!holds) throw new Error(what);
  };
  try {
    const rows = () => [...document.querySelectorAll("#ops tbody tr")];
    const values = (column) => rows().map((row) => Number(row.cells[column].dataset.v));
    const sorted = (list, sign) => list.every((v, i) => i === 0 || sign * (v - list[i - 1]) >= 0);
    const headings = [...document.querySelectorAll("#ops th")];
    const column = (title) => headings.findIndex((h) => h.textContent === title);

    expect("begins with the longest", sorted(values(column("time")), -1));
    const bytes = column("bytes");
    headings[bytes].firstElementChild.click();
    expect("sorts down first", sorted(values(bytes), -1) && headings[bytes].ariaSort === "descending");
    headings[bytes].firstElementChild.click();
    expect("sorts up then", sorted(values(bytes), 1) && headings[bytes].ariaSort === "ascending");
    expect("says so of one column", headings.filter((h) => h.hasAttribute("aria-sort")).length === 1);

    const filter = document.getElementById("filter");
    const type = (words) => {
      filter.value = words;
      filter.dispatchEvent(new Event("input"));
    };
    type("MLP down_proj");
    const shown = rows().filter((row) => !row.hidden);
    expect("finds some", shown.length > 0 && shown.length < rows().length);
    expect("finds what it says", shown.every((row) => /mlp.*down_proj/s.test(row.textContent)));

    const points = [...document.querySelectorAll("g.point[data-points]")];
    const tip = document.getElementById("tip");
    const first = points[0];
    // A window that has no focus yet keeps the event until it has it.
    const told = (event) => {
      if (!document.hasFocus()) first.dispatchEvent(new FocusEvent(event));
    };
    first.focus();
    told("focus");
    expect("takes the focus", document.activeElement === first);
    expect("tells of the point", !tip.hidden && tip.textContent.includes("bound by"));
    const ids = first.dataset.points.split(" ");
    expect("marks its rows", ids.every((id) => document.getElementById("op-" + id).classList.contains("chosen")));
    first.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
    expect("shows all rows again", rows().every((row) => !row.hidden));
    first.blur();
    told("blur");
    expect("is quiet again", tip.hidden && !document.querySelector("tr.chosen"));
    expect("names every point", points.every((g) => g.getAttribute("aria-label").length > 20));

    const frames = [...document.querySelectorAll(".roofline rect.frame")].map((r) => r.getBoundingClientRect());
    expect("draws both panels", frames.length === 2);
    for (const circle of document.querySelectorAll(".roofline g.point[data-points] circle")) {
      const box = circle.getBoundingClientRect();
      const x = box.left + box.width / 2, y = box.top + box.height / 2;
      expect("draws inside of the axes",
        frames.some((f) => x >= f.left && x <= f.right && y >= f.top && y <= f.bottom));
    }
    for (const text of document.querySelectorAll(".roofline text")) {
      const box = text.getBoundingClientRect(), all = text.ownerSVGElement.getBoundingClientRect();
      expect("keeps text in the chart: " + text.textContent,
        box.left >= all.left && box.right <= all.right && box.top >= all.top && box.bottom <= all.bottom);
    }
    expect("loads nothing", performance.getEntriesByType("resource").length === 0);
    page.dataset.used = "yes";
  } catch (e) {
    page.dataset.used = e.message;
  }
})();
