// The list of labels: suggested, accepted, rejected, added; and why.

import { call, make } from "./server.js";

// Words that add less than this share of what the strongest adds are not marked.
const WEAK = 0.1;
const list = document.getElementById("labels");
const marks = document.getElementById("marks");
const text = document.getElementById("text");

let suggested = []; // {label, score, why}, best first
const decided = new Map(); // label: "accepted" or "rejected"; others are undecided
const reasons = new Map(); // label: what the server said, for the text as it stands
const opened = new Set(); // labels whose reasons are shown
let changed = () => {};

export function onChange(told) {
  changed = told;
}

export function show(labels) {
  suggested = labels;
  reasons.clear();
  opened.clear();
  draw();
}

export function add(label) {
  decided.set(label, "accepted");
  draw();
  focusOn(label);
}

export function undecide() {
  decided.clear();
  draw();
}

export function forget() {
  decided.clear();
  show([]);
}

// What is exported: accepted labels, or all that are not rejected if none is accepted.
export function chosen() {
  const accepted = rows().filter((row) => decided.get(row.label) === "accepted");
  return accepted.length ? accepted : rows().filter((row) => decided.get(row.label) !== "rejected");
}

export function decisions() {
  const by = (what) => [...decided].filter(([, how]) => how === what).map(([label]) => label);
  return { labels: by("accepted"), rejected: by("rejected") };
}

function rows() {
  const there = new Set(suggested.map((row) => row.label));
  const added = [...decided.keys()].filter((label) => !there.has(label));
  return [...added.map((label) => ({ label, score: null })), ...suggested];
}

function draw() {
  const focused = list.contains(document.activeElement) ? document.activeElement.closest("li").dataset.label : null;
  list.replaceChildren(...rows().map(item));
  for (const place of list.children) if (opened.has(place.dataset.label)) tell(place, place.dataset.label);
  if (focused !== null) focusOn(focused);
  changed();
}

function focusOn(label) {
  const found = [...list.children].find((one) => one.dataset.label === label);
  if (found) found.focus();
}

function item(row) {
  const state = decided.get(row.label) || "";
  const made = make("li", state);
  made.dataset.label = row.label;
  made.tabIndex = 0;
  const line = make("div", "label", "", make("b", "", row.label), make("span", "quiet", row.score === null ? "added" : row.score.toFixed(3)));
  line.append(
    button("yes", "✓", `Accept ${row.label}`, state === "accepted", () => decide(row.label, "accepted")),
    button("no", "✕", `Reject ${row.label}`, state === "rejected", () => decide(row.label, "rejected")),
    button("because", "?", `Why ${row.label}`, null, () => why(made, row.label)),
  );
  const fill = make("i");
  fill.style.width = `${100 * Math.min(1, Math.max(0, row.score ?? 0))}%`;
  line.append(make("div", "bar", "", fill));
  made.append(line);
  for (const event of ["mouseenter", "focusin"]) made.addEventListener(event, () => highlight(row.label));
  for (const event of ["mouseleave", "focusout"]) made.addEventListener(event, () => mark([]));
  return made;
}

function button(className, sign, name, pressed, action) {
  const made = make("button", className, sign);
  made.setAttribute("aria-label", name);
  made.title = name;
  if (pressed !== null) made.setAttribute("aria-pressed", pressed);
  made.addEventListener("click", action);
  return made;
}

function decide(label, how) {
  if (decided.get(label) === how) decided.delete(label);
  else decided.set(label, how);
  draw();
}

async function reasonsFor(label) {
  if (!reasons.has(label)) {
    reasons.set(label, call("v1/explain", { text: text.value, labels: [label], words: 20 }).then((answer) => answer.labels[0]));
    reasons.get(label).catch(() => reasons.delete(label));
  }
  return reasons.get(label);
}

let pointed = null;
async function highlight(label) {
  pointed = label;
  if (!text.value) return;
  const reason = await reasonsFor(label).catch(() => null);
  if (reason && pointed === label) mark(reason.words);
}

// Words in the text, behind what is typed: for the label, or against it. Offsets count code points.
function mark(words) {
  if (!words.length) pointed = null;
  const letters = Array.from(text.value);
  const sign = new Int8Array(letters.length);
  const least = WEAK * Math.max(...words.map((word) => Math.abs(word.value)), 0);
  for (const word of words.filter((one) => Math.abs(one.value) >= least).reverse())
    for (const [first, last] of word.spans) sign.fill(word.value < 0 ? -1 : 1, first, last);
  const parts = [];
  for (let at = 0; at < letters.length; ) {
    let end = at;
    while (end < letters.length && sign[end] === sign[at]) end++;
    const piece = letters.slice(at, end).join("");
    parts.push(sign[at] === 0 ? piece : make("mark", sign[at] < 0 ? "against" : "", piece));
    at = end;
  }
  marks.replaceChildren(...parts, "\n");
  marks.scrollTop = text.scrollTop;
}

text.addEventListener("scroll", () => (marks.scrollTop = text.scrollTop));

function why(place, label) {
  if (opened.delete(label)) {
    place.querySelector(".because").setAttribute("aria-expanded", "false");
    return place.querySelector(".why").remove();
  }
  opened.add(label);
  tell(place, label);
}

async function tell(place, label) {
  place.querySelector(".because").setAttribute("aria-expanded", "true");
  const box = place.appendChild(make("div", "why", "…"));
  try {
    box.replaceChildren(...told(await reasonsFor(label)));
  } catch (error) {
    box.textContent = error.message;
  }
}

function told(reason) {
  const parts = [make("h3", "", "Words")];
  const words = reason.words.filter((word) => Math.abs(word.value) >= 0.005);
  const chips = words.map((word) => make("li", word.value < 0 ? "against" : "", `${word.name} ${signed(word.value)}`));
  parts.push(chips.length ? make("ul", "words", "", ...chips) : make("p", "quiet", "No word of the text speaks for it."));
  if (reason.encoder !== 0) {
    const share = make("div", "share");
    for (const [name, part] of [["words", 1 - reason.encoder_share], ["text encoder", reason.encoder_share]]) {
      const piece = make("i", "", `${name} ${Math.round(100 * part)} %`);
      piece.style.width = `${100 * part}%`;
      share.append(piece);
    }
    parts.push(make("h3", "", "Words and text encoder"), share);
  }
  const path = reason.paths[0];
  const steps = path.nodes.map((node) => {
    const names = node.labels.join(", ") + (node.labels.length > 1 ? ", …" : "");
    return make("li", "", `${names}: ${node.raw.toFixed(2)}, counts ${node.worth.toFixed(3)}, one of ${node.siblings}`);
  });
  parts.push(make("h3", "", reason.paths.length > 1 ? `Way through the tree (first of ${reason.paths.length})` : "Way through the tree"));
  parts.push(make("ol", "", "", ...steps));
  if (reason.neighbours.length) {
    const alike = reason.neighbours.map((one) => make("li", "", `${one.text} (${one.labels.join(", ")})`));
    parts.push(make("h3", "", "Training texts that are alike"), make("ul", "alike", "", ...alike));
  }
  return parts;
}

function signed(value) {
  return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
}

list.addEventListener("keydown", (event) => {
  const here = event.target.closest("li");
  if (!here || event.target !== here || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = {
    ArrowDown: () => here.nextElementSibling?.focus(),
    ArrowUp: () => here.previousElementSibling?.focus(),
    a: () => decide(here.dataset.label, "accepted"),
    r: () => decide(here.dataset.label, "rejected"),
    w: () => why(here, here.dataset.label),
  }[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});
