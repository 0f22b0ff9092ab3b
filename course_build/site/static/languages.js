// The other language's page opens at the same place: its places have the same names.
// Without this script its link leads to the same page, at its beginning.
(() => {
  const places = [...document.querySelectorAll("article section[id], article .cell[id], article p[id]")];

  const TOP = 100; // pixels: what has begun above this line is being read

  // The place that the address names, as long as it is in view; else the last that has begun.
  const here = () => {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (named?.closest("article")) {
      const { top, bottom } = named.getBoundingClientRect();
      if (bottom > 0 && top < innerHeight) return named.id;
    }
    const begun = places.filter((place) => place.getBoundingClientRect().top < TOP);
    return scrollY > 0 ? begun.at(-1)?.id : "";
  };

  for (const link of document.querySelectorAll("nav.languages a")) {
    const address = link.href;
    const aim = () => {
      const place = here();
      link.href = place ? `${address}#${encodeURIComponent(place)}` : address;
    };
    for (const event of ["pointerenter", "pointerdown", "focus", "click"]) link.addEventListener(event, aim);
  }
})();
