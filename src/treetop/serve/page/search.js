// Find a label by name: a combobox as described in the ARIA Authoring Practices Guide.

import { byId, make, makeText } from "./dom.js";
import { call } from "./server.js";

const DELAY = 120; // ms after the last key
const query = byId("query");
const matches = byId("matches");
let current = -1;
let latest = 0;
let timer = 0;

export function onPick(callback) {
  const pick = (label) => {
    query.value = "";
    close();
    callback(label);
  };
  query.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, DELAY);
  });
  query.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    if (event.key === "Enter" && current >= 0) pick(matches.children[current].dataset.label);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && matches.children.length) {
      event.preventDefault();
      moveTo((current + step + matches.children.length) % matches.children.length);
    }
  });
  matches.addEventListener("mousedown", (event) => {
    event.preventDefault();
    const option = event.target.closest("li");
    if (option) pick(option.dataset.label);
  });
  query.addEventListener("blur", close);
}

async function search() {
  const number = ++latest;
  const wanted = query.value.trim();
  if (!wanted) return close();
  const answer = await call(`v1/labels?limit=30&q=${encodeURIComponent(wanted.slice(0, 200))}`).catch(() => null);
  if (number !== latest) return;
  const labels = answer ? answer.labels : [];
  matches.replaceChildren(...labels.map(makeOption));
  matches.hidden = !labels.length;
  byId("no-match").textContent = labels.length ? "" : answer ? "No label name contains this." : "The search failed.";
  byId("results").hidden = false;
  query.setAttribute("aria-expanded", labels.length > 0);
  moveTo(labels.length ? 0 : -1);
}

function makeOption({ label, documents }, number) {
  const option = make("li", "", "", makeText("span", "", label), make("span", "quiet", documents.toLocaleString()));
  option.title = `${label}: ${documents.toLocaleString()} training texts`;
  option.id = `match-${number}`;
  option.role = "option";
  option.dataset.label = label;
  return option;
}

function moveTo(number) {
  current = number;
  [...matches.children].forEach((option, at) => option.setAttribute("aria-selected", at === number));
  const option = matches.children[number];
  if (option) query.setAttribute("aria-activedescendant", option.id);
  else query.removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
}

function close() {
  latest++;
  current = -1;
  byId("results").hidden = true;
  matches.replaceChildren();
  query.setAttribute("aria-expanded", "false");
  query.removeAttribute("aria-activedescendant");
}
