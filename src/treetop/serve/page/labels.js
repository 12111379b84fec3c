// The labels of a single text: suggested, accepted, rejected, added; and their explanations.

import { byId, make, makeButton, makeText } from "./dom.js";
import { render } from "./explanation.js";
import { clear, highlight } from "./marks.js";
import { call } from "./server.js";

const MAX_WORDS = 20;
const HOVER_DELAY = 150; // milliseconds before the words of a label are highlighted
const list = byId("labels");
const text = byId("text");

let suggested = []; // {label, score}, best first
let range = { minimum: 0, maximum: 1 }; // of scores
const decisions = new Map(); // label: "accepted" or "rejected"
const explanations = new Map(); // label: promise of its explanation, for the text as it is now
const opened = new Set(); // labels whose explanation is shown
let pointed = null; // label whose words are highlighted
let onChange = () => {};

export function listen(callback) {
  onChange = callback;
}

export function setRange(scores) {
  range = scores;
}

export function show(labels) {
  suggested = labels;
  explanations.clear();
  opened.clear();
  draw();
}

export function add(label) {
  decisions.set(label, "accepted");
  draw();
  focusOn(label);
}

export function clearDecisions() {
  decisions.clear();
  draw();
}

export function reset() {
  decisions.clear();
  show([]);
}

// The accepted labels, or if there are none, all that are not rejected.
export function chosen() {
  const accepted = rows().filter((row) => decisions.get(row.label) === "accepted");
  return accepted.length ? accepted : rows().filter((row) => decisions.get(row.label) !== "rejected");
}

export function decided() {
  const with_ = (decision) => [...decisions].filter(([, own]) => own === decision).map(([label]) => label);
  return { labels: with_("accepted"), rejected: with_("rejected") };
}

function rows() {
  const known = new Set(suggested.map((row) => row.label));
  const added = [...decisions.keys()].filter((label) => !known.has(label));
  return [...added.map((label) => ({ label, score: null })), ...suggested];
}

function draw() {
  const focused = list.contains(document.activeElement) ? document.activeElement.closest("li[data-label]").dataset.label : null;
  list.replaceChildren(...rows().map(makeItem));
  for (const item of list.children) if (opened.has(item.dataset.label)) explain(item);
  if (focused !== null) focusOn(focused);
  onChange(rows().length);
}

function focusOn(label) {
  [...list.children].find((item) => item.dataset.label === label)?.focus();
}

function makeItem({ label, score }) {
  const decision = decisions.get(label) || "";
  const item = make("li", decision);
  item.dataset.label = label;
  item.tabIndex = 0;
  const accept = makeButton("yes", "✓", `Accept ${label}`, () => decide(label, "accepted"));
  accept.setAttribute("aria-pressed", decision === "accepted");
  const reject = makeButton("no", "✕", `Reject ${label}`, () => decide(label, "rejected"));
  reject.setAttribute("aria-pressed", decision === "rejected");
  const why = makeButton("because", "Why?", `Why ${label}?`, () => toggleExplanation(item));
  why.setAttribute("aria-expanded", opened.has(label));
  const value = make("span", "score", score === null ? "added" : score.toFixed(3));
  item.append(make("div", "label", "", makeText("b", "", label), value, accept, reject, why, makeBar(score)));
  for (const event of ["mouseenter", "focusin"]) item.addEventListener(event, () => point(label));
  for (const event of ["mouseleave", "focusout"]) item.addEventListener(event, () => point(null));
  return item;
}

function makeBar(score) {
  const fill = make("i");
  fill.style.width = `${100 * share(score)}%`;
  return make("div", "bar", "", fill);
}

// The length of a bar, 0 to 1: the score itself, or relative to the others if scores have no such range.
function share(score) {
  if (score === null) return 0;
  if (range.minimum === 0 && range.maximum === 1) return Math.min(1, Math.max(0, score));
  const scores = suggested.map((row) => row.score);
  const [lowest, highest] = [Math.min(...scores), Math.max(...scores)];
  return highest > lowest ? 0.05 + (0.95 * (score - lowest)) / (highest - lowest) : 1;
}

function decide(label, decision) {
  if (decisions.get(label) === decision) decisions.delete(label);
  else decisions.set(label, decision);
  draw();
}

function explanationOf(label) {
  if (!explanations.has(label)) {
    const body = { text: text.value, labels: [label], words: MAX_WORDS };
    const promise = call("v1/explain", body).then((answer) => answer.labels[0]);
    explanations.set(label, promise);
    promise.catch(() => explanations.delete(label));
  }
  return explanations.get(label);
}

// A pointer that crosses the list does not ask for an explanation of every label on its way.
async function point(label) {
  pointed = label;
  if (label === null || !text.value) return clear();
  if (!explanations.has(label)) await new Promise((done) => setTimeout(done, HOVER_DELAY));
  if (pointed !== label) return;
  const explanation = await explanationOf(label).catch(() => null);
  if (explanation && pointed === label) highlight(explanation.words);
}

function toggleExplanation(item) {
  const label = item.dataset.label;
  if (opened.delete(label)) {
    item.querySelector(".because").setAttribute("aria-expanded", "false");
    item.querySelector(".why").remove();
  } else {
    opened.add(label);
    explain(item);
  }
}

async function explain(item) {
  item.querySelector(".because").setAttribute("aria-expanded", "true");
  const box = item.appendChild(make("div", "why", "Loading…"));
  try {
    box.replaceChildren(...render(await explanationOf(item.dataset.label)));
  } catch (error) {
    box.textContent = error.message;
  }
}

list.addEventListener("keydown", (event) => {
  const item = event.target;
  if (item.parentElement !== list || event.ctrlKey || event.metaKey || event.altKey) return;
  const action = {
    ArrowDown: () => item.nextElementSibling?.focus(),
    ArrowUp: () => item.previousElementSibling?.focus(),
    a: () => decide(item.dataset.label, "accepted"),
    r: () => decide(item.dataset.label, "rejected"),
    w: () => toggleExplanation(item),
  }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (action) {
    event.preventDefault();
    action();
  }
});
