// The rows of a batch: texts, labels at or above the minimum score, and the decisions of the user.

import { byId, counted, make, makeButton, makeText } from "./dom.js";

export const PAGE = 25; // rows shown at a time
const MAX_TEXT = 600; // characters of a text shown unless it is expanded
const list = byId("rows");

let texts = [];
let results = []; // per row: [{label, score}], best first
let decisions = []; // per row: Map of label to "accepted" or "rejected"
let threshold = 0;
const expanded = new Set(); // rows whose whole text is shown
let first = 0;
let onChange = () => {};

export function listen(callback) {
  onChange = callback;
}

export function reset(newTexts) {
  texts = newTexts;
  first = 0;
  expanded.clear();
  clearResults();
}

export function clearResults() {
  results = [];
  decisions = texts.map(() => new Map());
  draw();
}

export function append(labels) {
  const before = results.length;
  results.push(...labels);
  if (before < first + PAGE && results.length > first) draw();
  else onChange();
}

export function setThreshold(value) {
  threshold = value;
  draw();
}

export const count = () => results.length;

// The labels of a row that reach the minimum score, or that the user has accepted.
function visible(number) {
  const own = decisions[number];
  return (results[number] || []).filter(({ label, score }) => score >= threshold || own.get(label) === "accepted");
}

// What is exported: as for a single text, the accepted labels, or if there are none, all not rejected.
export function chosen(number) {
  const accepted = withDecision(number, "accepted");
  return accepted.length ? accepted : visible(number).filter(({ label }) => decisions[number].get(label) !== "rejected");
}

export function withDecision(number, decision) {
  return (results[number] || []).filter(({ label }) => decisions[number].get(label) === decision);
}

export const isDecided = (number) => decisions[number].size > 0;

export function tally() {
  const all = Array.from({ length: results.length }, (_, number) => number);
  const sum = (decision) => all.reduce((total, number) => total + withDecision(number, decision).length, 0);
  const labeled = all.filter((number) => chosen(number).length).length;
  return { rows: results.length, labeled, accepted: sum("accepted"), rejected: sum("rejected"), decided: all.filter(isDecided).length };
}

function draw() {
  const focused = focus();
  const last = Math.min(first + PAGE, texts.length);
  list.replaceChildren(...texts.slice(first, last).map((text, at) => makeRow(text, first + at)));
  list.start = first + 1;
  byId("pager").hidden = texts.length <= PAGE;
  byId("place").textContent = `Rows ${(first + 1).toLocaleString()}–${last.toLocaleString()} of ${texts.length.toLocaleString()}`;
  byId("previous").disabled = first === 0;
  byId("next").disabled = last === texts.length;
  if (focused) restore(focused);
  onChange();
}

function focus() {
  const row = document.activeElement.closest?.("#rows > li");
  return row && { number: row.dataset.number, label: document.activeElement.dataset.label };
}

function restore({ number, label }) {
  const row = [...list.children].find((item) => item.dataset.number === number);
  const chip = label && [...row.querySelectorAll("[data-label]")].find((item) => item.dataset.label === label);
  (chip || row)?.focus();
}

function makeRow(text, number) {
  const row = make("li");
  row.dataset.number = number;
  row.tabIndex = 0;
  const open = expanded.has(number);
  const shown = open || text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)} …`;
  const paragraph = makeText("p", open ? "open" : "", shown);
  paragraph.addEventListener("click", () => toggle(number));
  row.append(make("span", "number quiet", (number + 1).toLocaleString()), paragraph);
  if (number < results.length) {
    const labels = visible(number);
    const all = make("div", "all");
    if (labels.length) {
      all.append(
        makeButton("yes", "✓", `Accept all labels of row ${number + 1}`, () => decideAll(number, "accepted")),
        makeButton("no", "✕", `Reject all labels of row ${number + 1}`, () => decideAll(number, "rejected")),
      );
    }
    const none = make("span", "quiet", "no label reaches the minimum score");
    row.append(make("div", "chips", "", ...(labels.length ? labels.map((one) => makeChip(number, one)) : [none])), all);
  }
  return row;
}

const SIGNS = { accepted: "✓", rejected: "✕", undefined: "○" };
const NEXT = { accepted: "rejected", rejected: undefined, undefined: "accepted" };

function makeChip(number, { label, score }) {
  const decision = decisions[number].get(label);
  const chip = make("button", `chip ${decision || ""}`, "", make("span", "sign", SIGNS[decision]), makeText("bdi", "", label), make("span", "", ` ${score.toFixed(2)}`));
  chip.dataset.label = label;
  chip.setAttribute("aria-label", `${label}, score ${score.toFixed(2)}, ${decision || "not decided"}`);
  chip.title = "Click to accept, again to reject, again to undo";
  chip.addEventListener("click", () => decide(number, [label], NEXT[decision]));
  return chip;
}

function decide(number, labels, decision) {
  for (const label of labels) {
    if (decision) decisions[number].set(label, decision);
    else decisions[number].delete(label);
  }
  draw();
}

const decideAll = (number, decision) => decide(number, visible(number).map((one) => one.label), decision);

function toggle(number) {
  if (!expanded.delete(number)) expanded.add(number);
  draw();
}

function turn(pages) {
  first += pages * PAGE;
  draw();
  list.firstElementChild?.focus();
}

// Move by one row, to the next page if need be.
function moveTo(row, step) {
  const sibling = step > 0 ? row.nextElementSibling : row.previousElementSibling;
  if (sibling) return sibling.focus();
  const number = Number(row.dataset.number) + step;
  if (number < 0 || number >= texts.length) return;
  turn(step);
  if (step < 0) list.lastElementChild.focus();
}

function moveAlong(row, step) {
  const stops = [row, ...row.querySelectorAll(".chip")];
  stops[stops.indexOf(document.activeElement) + step]?.focus();
}

list.addEventListener("keydown", (event) => {
  const row = event.target.closest("li");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const number = Number(row.dataset.number);
  const label = event.target.dataset.label;
  const set = (decision) => (label ? decide(number, [label], decision) : decideAll(number, decision));
  const action = {
    ArrowDown: () => moveTo(row, 1),
    ArrowUp: () => moveTo(row, -1),
    ArrowRight: () => moveAlong(row, 1),
    ArrowLeft: () => moveAlong(row, -1),
    a: () => set("accepted"),
    r: () => set("rejected"),
    u: () => set(undefined),
    Enter: event.target === row ? () => toggle(number) : undefined,
  }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (action) {
    event.preventDefault();
    action();
  }
});
byId("previous").addEventListener("click", () => turn(-1));
byId("next").addEventListener("click", () => turn(1));

export const summary = ({ rows, labeled, accepted, rejected }) =>
  `${counted(labeled, "row")} of ${rows.toLocaleString()} with labels` + (accepted + rejected ? `; ${counted(accepted, "label")} accepted, ${rejected.toLocaleString()} rejected` : "");
