// The box that finds a label by name: a combobox as the ARIA guide describes it.

import { call, make } from "./server.js";

const query = document.getElementById("query");
const matches = document.getElementById("matches");
let at = -1;
let asked = 0;
let timer = 0;

export function onPick(picked) {
  const take = (label) => {
    query.value = "";
    close();
    picked(label);
  };
  query.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(find, 120);
  });
  query.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === "Enter" && at >= 0) take(matches.children[at].dataset.label);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && matches.children.length) {
      event.preventDefault();
      point((at + step + matches.children.length) % matches.children.length);
    }
  });
  matches.addEventListener("mousedown", (event) => {
    event.preventDefault();
    const item = event.target.closest("li[data-label]");
    if (item) take(item.dataset.label);
  });
  query.addEventListener("blur", close);
}

async function find() {
  const number = ++asked;
  const wanted = query.value.trim();
  if (!wanted) return close();
  const found = await call(`v1/labels?limit=30&q=${encodeURIComponent(wanted.slice(0, 200))}`).catch(() => ({ labels: [] }));
  if (number !== asked) return;
  const items = found.labels.map((one, place) => {
    const item = make("li", "", "", make("span", "", one.label), make("span", "quiet", `${one.documents}`));
    item.id = `match-${place}`;
    item.role = "option";
    item.dataset.label = one.label;
    return item;
  });
  matches.replaceChildren(...(items.length ? items : [make("li", "quiet", "No label has this in its name.")]));
  matches.hidden = false;
  query.setAttribute("aria-expanded", "true");
  point(items.length ? 0 : -1);
}

function point(place) {
  at = place;
  [...matches.children].forEach((item, number) => item.setAttribute("aria-selected", number === place));
  const item = matches.children[place];
  query.setAttribute("aria-activedescendant", item ? item.id : "");
  if (item) item.scrollIntoView({ block: "nearest" });
}

function close() {
  asked++;
  at = -1;
  matches.hidden = true;
  matches.replaceChildren();
  query.setAttribute("aria-expanded", "false");
}
