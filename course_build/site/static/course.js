// What scrolls sideways can be reached and scrolled by keyboard, in every browser.
(() => {
  const scrollers = ".highlight pre, .figure, .table-wrapper, .cell_output .output, .math-wrapper";
  let frame;

  const mark = () => {
    const all = [...document.querySelectorAll(scrollers)];
    const wide = all.map((element) => element.scrollWidth > element.clientWidth);
    all.forEach((element, place) => {
      // Read all before, written after: so the page is laid out only once.
      if (wide[place]) element.setAttribute("tabindex", "0");
      else element.removeAttribute("tabindex");
    });
  };
  const markSoon = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(mark);
  };

  window.addEventListener("load", markSoon);
  window.addEventListener("resize", markSoon);
  document.addEventListener("toggle", markSoon, true); // a fold that opens
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
