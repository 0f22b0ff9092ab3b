// What is amiss on the slides of a deck, in sentences. All are measured, though only one is seen.
async (least) => {
  const style = `
    .reveal .slides .stack { display: block !important }
    .reveal .slides section { visibility: visible !important }
    .reveal .slides section:not(.stack) { display: flex !important; flex-direction: column; gap: 14px }
    mjx-assistive-mml { display: none !important }`;
  document.head.append(Object.assign(document.createElement("style"), { textContent: style }));
  await document.fonts.ready;
  await Promise.all([...document.images].map((image) => image.decode()));
  const [scale, text, found] = [Reveal.getScale(), document.createRange(), []];
  for (const slide of Reveal.getSlides()) {
    const frame = slide.getBoundingClientRect();
    const over = (box) => {
      text.selectNodeContents(box); // may be wider than the box itself
      const { bottom, right } = box.getBoundingClientRect();
      const wide = Math.max(right, text.getBoundingClientRect().right) - frame.left;
      const scrolls = getComputedStyle(box).overflow !== "visible" && box.tagName !== "MJX-CONTAINER";
      return Math.max(
        (bottom - frame.top) / scale - 668, // above the row of the number and the arrows
        wide / scale - 1244,
        scrolls ? box.scrollHeight - box.clientHeight : 0,
        scrolls ? box.scrollWidth - box.clientWidth : 0,
      );
    };
    const shown = [...slide.querySelectorAll("*")].filter(
      (box) => !box.closest("aside") && !box.parentElement.closest("mjx-container"),
    );
    const say = (box, words) =>
      found.push(`slide "${slide.id}": its <${box.tagName.toLowerCase()}> ${words}`);
    const [cut, worst] = shown
      .map((box) => [over(box), box])
      .reduce((one, other) => (other[0] > one[0] ? other : one));
    if (cut > 1) say(worst, `is cut by ${Math.round(cut)} pixels`);
    const small = shown.find(
      (box) => box.innerText && parseFloat(getComputedStyle(box).fontSize) < least,
    );
    if (small) say(small, `has letters under ${least} pixels`);
    const mute = shown.find((box) => box.matches("img") && !box.alt);
    if (mute) say(mute, "has no words for who cannot see it");
    if (!shown[0].innerText) say(shown[0], "has no title");
  }
  return found;
}
