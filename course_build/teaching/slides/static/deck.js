// What fits on a slide is measured here, by the browser that shows it. reveal.js by itself lets a
// slide run over its edge, and a reckoning elsewhere has to guess how wide letters are.
const SIZES = [28, 26, 24, 22, 20]; // pixels of letters: of code and outputs; prose has 4 more
const COMFORT = 24; // what would need smaller letters than these goes to a slide of its own
const BOTTOM = 668; // of 720: below is the row of the number and the arrows
const FIGURE = [1.3, 540]; // times its own height, since its letters have 13 pixels; at most pixels
const PARTS = "p, ul, ol, blockquote, mjx-container, tr"; // no cut goes through one of these
const CLOSES = /^\s*([)\]}]|(else|elif|except|finally)\b)/; // lines that belong to the one before
const OPENS = /^\s*@|[([{:,]\s*$/; // and to the one after

const shown = (slide) => [...slide.querySelectorAll(":scope > [data-key]")];
const edge = (box, name) => box.getBoundingClientRect()[name];
const bottom = (box, slide) => edge(box, "bottom") - edge(slide, "top");

function setLetters(slide, code, words) {
  slide.style.setProperty("--code", `${code}px`);
  slide.style.setProperty("--words", `${words}px`);
}

function isFull(slide) {
  const over = (box) => bottom(box, slide) > BOTTOM + 1 || box.scrollWidth > box.clientWidth + 1;
  return [...slide.children].some(over);
}

// How many lines wrap in each block; of code a tenth may, if that makes letters larger.
function wraps(slide, code) {
  const isWrapped = (line) => line.offsetHeight > 2 * code;
  return [...slide.querySelectorAll("pre")].map((pre) => {
    const free = pre.matches(".code") ? pre.children.length / 10 : 0;
    return Math.max([...pre.children].filter(isWrapped).length - free, 0);
  });
}

// Set the largest letters with which a slide holds what is on it; 0 if there are none.
function fit(slide) {
  setLetters(slide, SIZES.at(-1), SIZES.at(-1));
  if (isFull(slide)) return 0;
  const least = wraps(slide, SIZES.at(-1));
  const holds = (code, words) => {
    setLetters(slide, code, words);
    return !isFull(slide) && wraps(slide, code).every((count, place) => count <= least[place]);
  };
  const code = SIZES.find((size) => holds(size, size));
  SIZES.find((size) => holds(code, size));
  return code;
}

// What stays together: code with its output, and what is said with them.
function groupsOf(slide) {
  const groups = [];
  for (const box of slide.querySelectorAll(":scope > [data-key], :scope > aside")) {
    const last = groups.at(-1);
    if (last && (box.matches("aside") || box.dataset.key === last[0].dataset.key)) last.push(box);
    else if (!box.matches("aside")) groups.push([box]);
  }
  return groups;
}

function nextOf(slide) {
  const title = document.createElement("h3");
  title.innerHTML = slide.querySelector("h1, h2, h3").innerHTML;
  const next = document.createElement("section");
  next.append(title);
  slide.after(next);
  return next;
}

// Where a reader would pause: at a blank line, else where the code is least deep.
function tear(before, after) {
  const [above, below] = [before.textContent, after.textContent];
  if (!before.matches("pre *") || !above.trim()) return 0;
  return 1 + below.search(/\S|$/) / 4 + (CLOSES.test(below) || OPENS.test(above) ? 4 : 0);
}

// Leave on a slide what fits of its one block, in pieces of about the same height; return the rest.
function cut(slide, block) {
  const isWhole = (size) => (setLetters(slide, size, size), !wraps(slide, size).some(Boolean));
  SIZES.find((size) => size <= COMFORT && isWhole(size));
  const found = block.matches("pre") ? [...block.children] : [...block.querySelectorAll(PARTS)];
  const parts = found.filter((part) => part.rowIndex !== 0 && !part.parentElement.closest(PARTS));
  const below = parseFloat(getComputedStyle(block).paddingBottom) + 3;
  const fits = parts.filter((part) => bottom(part, slide) + below <= BOTTOM).length;
  if (!fits || fits === parts.length) return null;
  const wanted = parts.length / Math.ceil(parts.length / fits);
  const cost = (end) => (8 * Math.abs(end - wanted)) / wanted + tear(parts[end - 1], parts[end]);
  const ends = Array.from({ length: fits }, (_, place) => place + 1);
  const end = ends.reduce((best, other) => (cost(other) < cost(best) ? other : best));
  const range = document.createRange();
  range.setStartBefore(parts[end]);
  range.setEndAfter(block.lastChild);
  const rest = block.cloneNode(false);
  rest.append(range.extractContents()); // takes the tags around along
  if (parts[end].matches("tr")) {
    const head = parts[end - 1].closest("table").rows[0];
    rest.querySelector("table").prepend((head.closest("thead") ?? head).cloneNode(true));
  }
  if (block.matches("pre")) {
    while (!block.lastChild.textContent.trim()) block.lastChild.remove();
    while (!rest.firstChild.textContent.trim()) rest.firstChild.remove();
    block.classList.add("goes-on");
    rest.classList.add("continued");
  }
  return rest;
}

function lay(slide) {
  const groups = groupsOf(slide);
  for (const box of groups.flat()) box.remove();
  let held = 0; // the letters of what is on the slide, if anything is
  while (groups.length) {
    const group = groups.shift();
    const before = slide.style.cssText;
    slide.append(...group);
    const joint = fit(slide);
    if (joint >= COMFORT || (joint && !held)) {
      held = joint;
      continue;
    }
    const together = slide.style.cssText;
    const next = nextOf(slide);
    next.append(...group);
    const alone = fit(next);
    if (joint && joint >= Math.min(held, alone)) {
      slide.append(...group);
      slide.style.cssText = together;
      next.remove();
      held = joint;
      continue;
    }
    slide.style.cssText = before;
    if (!alone && group.length > 1) {
      groups.unshift(...group.map((box) => [box]));
      next.remove();
      continue;
    }
    const { key } = group[0].dataset;
    const rest = alone ? null : cut(next, group[0]);
    if (rest) groups.unshift([rest]);
    else if (!alone) console.error(`cell "${key}": too large for a slide in any letters`);
    if (!document.getElementById(key)) next.id = key; // a slide's address is that of its cell
    slide = next;
    held = alone || fit(next);
  }
}

async function fitAll() {
  await Promise.all([...document.fonts].map((font) => font.load()));
  for (const image of document.querySelectorAll("img.figure")) {
    await image.decode();
    image.style.minHeight = `${Math.min(FIGURE[0] * image.naturalHeight, FIGURE[1])}px`;
  }
  const slides = document.querySelector(".slides");
  const stacks = [...slides.children];
  for (const stack of stacks) {
    slides.replaceChildren(stack);
    [...stack.children].forEach(lay);
    for (const slide of stack.children) slide.classList.toggle("opening", !shown(slide).length);
  }
  slides.replaceChildren(...stacks);
  document.querySelector(".fitting").classList.remove("fitting");
}

window.MathJax = {
  options: { enableMenu: false },
  loader: { load: ["ui/safe"] },
  startup: {
    pageReady: async () => {
      await MathJax.startup.defaultPageReady();
      await fitAll();
      await Reveal.initialize({
        width: 1280,
        height: 720,
        margin: 0.02,
        center: false,
        hash: true,
        slideNumber: "c/t",
        transition: "none",
        backgroundTransition: "none",
        plugins: [RevealNotes],
      });
    },
  },
};
