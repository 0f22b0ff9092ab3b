// A view: its controls choose one of the pictures that were drawn beforehand.
for (const view of document.querySelectorAll(".view[data-frames]")) {
  const frames = JSON.parse(view.dataset.frames);
  const image = view.querySelector("img");
  const words = view.querySelector(".view-words");
  const controls = [...view.querySelectorAll("input, select")];
  const folder = new URL(".", image.src);
  let telling;

  const place = (control) => Number(control.type === "range" ? control.value : control.selectedIndex);
  const frame = (places) => frames[places.join(",")];
  const address = (name) => new URL(name, folder).href;

  const fetchNeighbours = () => {
    const places = controls.map(place);
    places.forEach((value, which) => {
      for (const near of [value - 1, value + 1]) {
        const found = frame(places.map((other, at) => (at === which ? near : other)));
        if (found) new Image().src = address(found[0]);
      }
    });
  };

  const show = () => {
    for (const control of controls.filter((each) => each.type === "range")) {
      const value = JSON.parse(control.dataset.values)[control.value];
      control.setAttribute("aria-valuetext", value);
      control.nextElementSibling.value = value;
    }
    const [name, alt] = frame(controls.map(place));
    image.loading = "eager";
    image.src = address(name);
    image.alt = alt;
    fetchNeighbours();
    // A slider that is dragged passes many pictures: only the one it stays at is told.
    clearTimeout(telling);
    telling = setTimeout(() => (words.textContent = alt), 500);
  };

  for (const control of controls) control.addEventListener("input", show);
  view.addEventListener("focusin", fetchNeighbours, { once: true });
  view.addEventListener("pointerenter", fetchNeighbours, { once: true });
  view.querySelector(".view-controls").hidden = false;
}
