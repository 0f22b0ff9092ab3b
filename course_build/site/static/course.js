// What scrolls sideways can be reached and scrolled by keyboard, in every browser.
(() => {
  const scrollers = ".highlight pre, .figure, .table-wrapper, .cell_output .output, div.math";

  const mark = () => {
    for (const element of document.querySelectorAll(scrollers)) {
      if (element.scrollWidth > element.clientWidth) {
        element.tabIndex = 0;
      } else {
        element.removeAttribute("tabindex");
      }
    }
  };

  window.addEventListener("load", mark);
  window.addEventListener("resize", mark);
  document.addEventListener("toggle", mark, true); // a fold that opens
})();
