// The page "Try it": the blocks of Python become cells, which run in the browser by Pyodide.
// Nothing is requested before the reader presses the button. Python runs in a worker, so the page stays usable.
"use strict";
(() => {
  const CDN = "https://cdn.jsdelivr.net/pyodide/v314.0.7/full/"; // the only address outside of this site
  const PACKAGES = ["numpy", "scipy", "jinja2"];

  // Runs in the worker, as text: it sees nothing of this file but its arguments.
  const work = async (cdn, packages) => {
    let python, namespace;
    const say = (message) => self.postMessage(message);
    const start = async ({ wheel, sampler }) => {
      const { loadPyodide } = await import(`${cdn}pyodide.mjs`);
      python = await loadPyodide({ indexURL: cdn });
      await python.loadPackage(packages, { messageCallback: (text) => say({ step: text }) });
      for (const name of packages) await python.runPythonAsync(`import ${name}`);
      const bytes = Uint8Array.from(atob(wheel), (one) => one.charCodeAt(0));
      python.unpackArchive(bytes, "wheel");
      const folder = python.runPython("import sysconfig; sysconfig.get_paths()['purelib']");
      python.FS.writeFile(`${folder}/demonstration_sampler.py`, sampler);
      python.runPython("import demonstration_sampler; demonstration_sampler.install()");
      namespace = python.toPy({ __name__: "__main__" });
    };
    const run = async (code) => {
      let printed = "", page = null, error = null;
      const write = { batched: (line) => { printed += `${line}\n`; } };
      python.setStdout(write);
      python.setStderr(write);
      try {
        const value = await python.runPythonAsync(code, { globals: namespace });
        if (value?._repr_html_) page = value._repr_html_();
        else if (value !== undefined && value !== null) printed += `${value}\n`;
      } catch (problem) {
        error = String(problem.message ?? problem).trim().split("\n").pop();
      }
      return { printed, page, error };
    };
    self.onmessage = async ({ data }) => {
      try {
        if (data.files) say({ ready: true, result: await start(data.files) });
        else say({ ran: data.cell, result: await run(data.code) });
      } catch (problem) {
        say({ failed: String(problem.message ?? problem).trim().split("\n").pop() });
      }
    };
  };

  const make = (tag, className, text = "") => Object.assign(document.createElement(tag), { className, textContent: text });
  const status = document.getElementById("try-status"), load = document.getElementById("try-load");
  const blocks = [...document.querySelectorAll("#try-it-in-your-browser .highlight-python pre")];
  let worker = null;

  const cells = blocks.map((block) => {
    const code = block.textContent, frame = make("div", "try-cell"), text = make("textarea", "try-code"),
      button = make("button", "btn btn-primary btn-sm", "Run"), output = make("div", "try-output");
    Object.assign(text, { value: code.trimEnd(), spellcheck: false, rows: code.trimEnd().split("\n").length });
    text.setAttribute("aria-label", "Python code, which you may change");
    output.setAttribute("role", "status");
    frame.append(text, button, output);
    return { block: block.closest(".highlight-python"), frame, text, button, output, done: null };
  });

  const run = (cell) => new Promise((done) => {
    cell.done = done;
    cells.forEach((one) => { one.button.disabled = true; });
    cell.output.replaceChildren(make("p", "try-note", "Running ..."));
    worker.postMessage({ cell: cells.indexOf(cell), code: cell.text.value });
  });

  const show = (cell, { printed, page, error }) => {
    cell.output.replaceChildren();
    if (printed) cell.output.append(make("pre", "try-text", printed.trimEnd()));
    if (page) {
      cell.output.append(make("p", "try-banner", "Demonstration, not private: a page of a release like this one must not be published."));
      cell.output.insertAdjacentHTML("beforeend", page); // a frame in a sandbox
    }
    if (error) cell.output.append(make("p", "try-error", error));
    if (!cell.output.childNodes.length) cell.output.append(make("p", "try-note", "Done."));
    cells.forEach((one) => { one.button.disabled = false; });
    cell.done();
  };

  const fail = (reason) => {
    status.textContent = `Python could not be loaded: ${reason} Check the connection to cdn.jsdelivr.net and try again.`;
    worker?.terminate();
    worker = null;
    load.disabled = false;
  };

  const replaceBlocks = () => {
    for (const cell of cells) {
      cell.block.replaceWith(cell.frame);
      cell.button.addEventListener("click", () => run(cell));
    }
    load.remove();
    status.textContent = "Python is ready. Run the cells from top to bottom.";
    const all = make("button", "btn btn-primary", "Run all cells");
    all.addEventListener("click", async () => {
      all.disabled = true;
      for (const cell of cells) await run(cell);
      all.disabled = false;
    });
    status.after(all);
  };

  const startWorker = () => {
    const source = `(${work})(${JSON.stringify(CDN)}, ${JSON.stringify(PACKAGES)})`;
    worker = new Worker(`data:text/javascript,${encodeURIComponent(source)}`, { type: "module" });
    worker.onerror = (event) => fail(event.message || "the browser does not run it.");
    worker.onmessage = ({ data }) => {
      if (data.step) status.textContent = data.step;
      else if (data.ready) replaceBlocks();
      else if (data.failed) fail(`${data.failed}.`);
      else show(cells[data.ran], data.result);
    };
    worker.postMessage({ files: window.tryFiles });
  };

  load.hidden = false;
  load.addEventListener("click", () => {
    load.disabled = true;
    status.textContent = "Loading Python ...";
    const script = document.createElement("script"); // of this site: the wheel, which is large
    Object.assign(script, { src: load.dataset.files, onload: startWorker, onerror: () => fail("the wheel is missing.") });
    document.head.append(script);
  });
})();
