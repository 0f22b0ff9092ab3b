// Formulas are set while every slide is on the page; only then does reveal.js hide all but one.
window.MathJax = {
  options: { enableMenu: false },
  loader: { load: ["ui/safe"] },
  startup: {
    pageReady: () =>
      MathJax.startup.defaultPageReady().then(() =>
        Reveal.initialize({
          width: 1280,
          height: 720,
          margin: 0.02,
          center: false,
          hash: true,
          slideNumber: "c/t",
          transition: "none",
          backgroundTransition: "none",
          plugins: [RevealNotes],
        }),
      ),
  },
};
