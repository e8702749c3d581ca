
"use strict";
// Save the certificate, and keep links inside a notebook's frame. The rest of the page works without scripts.

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

  // In a notebook's frame the page has no URL of its own, so a link to a section would open the notebook.
  if (document.URL === "about:srcdoc") {
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[href^='#']");
      if (!link) return;
      event.preventDefault();
      figure(link.hash.slice(1)).scrollIntoView();
    });
  }
})();
