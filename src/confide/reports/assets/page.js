
"use strict";
// Draws what the page's data holds.

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const figure = (id) => document.getElementById(id);

  document.querySelectorAll("figure.law").forEach((one) => {
    const { level, laws } = data.laws[Number(one.dataset.law)];
    const slider = one.querySelector("input");
    const show = (i) => Charts.law(one, laws[i], level);
    if (slider === null) return show(0);
    const output = one.querySelector("output");
    const move = () => {
      const i = Number(slider.value);
      output.textContent = Format.count(laws[i].n);
      slider.setAttribute("aria-valuetext", output.textContent);
      show(i);
    };
    const wanted = data.grid.records[data.grid.chosen[2]];
    const start = laws.findIndex((law) => law.n >= wanted);
    slider.value = start < 0 ? laws.length - 1 : start;
    slider.addEventListener("input", move);
    return move();
  });

  if (data.grid) explore(figure("explore"), data.grid);

  if (data.evaluation) {
    const { levels, blocks } = data.evaluation;
    const below = "the numbers are in the table below.";
    if (levels.length) Charts.intervals(figure("level-coverage"), levels, null, `Coverage by level; ${below}`);
    blocks.forEach(({ promised, groups, subgroups, sizes, frequent, classes }, i) => {
      if (groups.length) Charts.intervals(figure(`group-coverage-${i}`), groups, promised, `Coverage by group or end; ${below}`);
      if (subgroups.length && figure(`subgroup-coverage-${i}`)) Charts.intervals(figure(`subgroup-coverage-${i}`), subgroups, promised, `Coverage by group; ${below}`);
      if (sizes.length) Charts.sizes(figure(`set-sizes-${i}`), sizes, `Share of records by set size; ${below}`);
      if (frequent.length) Charts.intervals(figure(`size-coverage-${i}`), frequent, promised, `Coverage by set size; ${below}`);
      if (classes.length) Charts.intervals(figure(`class-coverage-${i}`), classes, promised, `Coverage by class; ${below}`);
    });
  }
  (data.private || []).forEach(({ id, label, points, promised }) => {
    Charts.intervals(figure(id), points, promised, `${label}; the numbers are in the table below.`);
  });
  if (data.silos && figure("replies") && data.silos.replies.length) {
    Charts.replies(figure("replies"), data.silos.replies, data.silos.threshold, data.silos.logarithmic, "The silos’ answers; the numbers are in the table above.");
  }
  if (data.silos && figure("silo-coverage")) {
    Charts.intervals(figure("silo-coverage"), data.silos.reports, data.silos.promised, "Coverage by silo; the numbers are in the table below.");
  }

  if (data.watch && data.watch.points.length) {
    const { points, least, bins } = data.watch;
    const below = "the numbers are in the table below.";
    if (figure("watch-coverage")) Charts.course(figure("watch-coverage"), points, least, `Coverage look by look; ${below}`);
    if (figure("watch-sizes")) Charts.shares(figure("watch-sizes"), points, bins, `Sizes of sets look by look; ${below}`);
    Charts.evidence(figure("watch-evidence"), points, data.watch.alarm_at, `Evidence look by look; ${below}`);
  }

  const save = figure("save");
  if (save) {
    save.hidden = false;
    save.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([figure("certificate").textContent], { type: "application/json" }));
      link.download = save.dataset.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  // In a notebook's frame the page has no address of its own, and a link to one of its parts would open the notebook.
  if (document.URL === "about:srcdoc") {
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[href^='#']");
      if (!link) return;
      event.preventDefault();
      figure(link.hash.slice(1)).scrollIntoView();
    });
  }
})();
