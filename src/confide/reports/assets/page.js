
"use strict";
// Saves the certificate, and keeps links inside a notebook's frame; everything else of a page needs no script.

(() => {
  const figure = (id) => document.getElementById(id);

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
