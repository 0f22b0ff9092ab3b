// What scrolls sideways can be reached and scrolled by keyboard, in every browser; and where more
// is to come, its edge says so.
(() => {
  const scrollers = ".highlight pre, .figure, .table-wrapper, .cell_output .output, .math-wrapper";
  let frame;

  const hasMore = (element) => element.scrollWidth - element.clientWidth - element.scrollLeft > 1;
  const mark = () => {
    const all = [...document.querySelectorAll(scrollers)];
    const wide = all.map((element) => element.scrollWidth > element.clientWidth);
    const more = all.map(hasMore);
    all.forEach((element, place) => {
      // Read all before, written after: so the page is laid out only once.
      if (wide[place]) element.setAttribute("tabindex", "0");
      else element.removeAttribute("tabindex");
      element.classList.toggle("has-more", more[place]);
    });
  };
  const markSoon = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(mark);
  };

  window.addEventListener("load", markSoon);
  window.addEventListener("resize", markSoon);
  document.addEventListener("toggle", markSoon, true); // a fold that opens
  document.addEventListener("scroll", markSoon, { capture: true, passive: true });
})();

// The theme's drawers open by a click on a label: here by keyboard too.
for (const label of document.querySelectorAll(".nav-overlay-icon, .toc-overlay-icon")) {
  const icon = label.querySelector(".icon");
  const drawer = document.getElementById(label.htmlFor);
  const tell = () => icon.setAttribute("aria-expanded", drawer.checked);
  icon.setAttribute("role", "button");
  icon.setAttribute("aria-label", drawer.getAttribute("aria-label"));
  icon.tabIndex = 0;
  icon.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      label.click();
    }
  });
  drawer.addEventListener("change", tell);
  tell();
}

// A copy button has a name, and what it did is said aloud. The words are the button's own.
(() => {
  const status = document.createElement("div");
  status.setAttribute("role", "status");
  status.className = "visually-hidden";
  document.body.append(status);

  new MutationObserver((changes) => {
    for (const { target, addedNodes, oldValue } of changes) {
      for (const button of addedNodes) {
        if (button.classList?.contains("copybtn")) button.setAttribute("aria-label", button.dataset.tooltip);
      }
      if (target.classList.contains("copybtn") && oldValue) {
        const said = target.dataset.tooltip;
        status.textContent = said === target.getAttribute("aria-label") ? "" : said;
      }
    }
  }).observe(document.querySelector("article"), {
    attributeFilter: ["data-tooltip"],
    attributeOldValue: true,
    childList: true,
    subtree: true,
  });
})();

// Formulas change the height of a page as they are set: one that was opened at a place goes back
// there, unless its reader has gone on by then.
(() => {
  const signs = ["wheel", "touchstart", "pointerdown", "keydown"];
  let isMoved = false;
  for (const sign of signs) addEventListener(sign, () => (isMoved = true), { once: true, passive: true });

  addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (place && !isMoved) place.scrollIntoView();
  });
})();
