// Words highlighted behind the text that is being edited: those that support a label, and those that oppose it.

import { byId, make } from "./dom.js";

// Words that contribute less than this share of the strongest one are not highlighted.
const WEAK = 0.1;
const marks = byId("marks");
const text = byId("text");

export function clear() {
  marks.replaceChildren();
  byId("legend").hidden = true;
}

// Spans count code points, JavaScript's strings UTF-16 units.
export function highlight(words) {
  const letters = Array.from(text.value);
  const sign = new Int8Array(letters.length);
  const least = WEAK * Math.max(...words.map((word) => Math.abs(word.value)), 0);
  const strongestLast = words.filter((word) => Math.abs(word.value) >= least).reverse();
  for (const word of strongestLast) for (const [first, last] of word.spans) sign.fill(word.value < 0 ? -1 : 1, first, last);
  const parts = [];
  for (let at = 0, end; at < letters.length; at = end) {
    for (end = at; end < letters.length && sign[end] === sign[at]; ) end++;
    const piece = letters.slice(at, end).join("");
    parts.push(sign[at] === 0 ? piece : make("mark", sign[at] < 0 ? "against" : "", piece));
  }
  marks.replaceChildren(...parts, "\n");
  marks.scrollTop = text.scrollTop;
  byId("legend").hidden = !sign.some((value) => value !== 0);
}

text.addEventListener("scroll", () => (marks.scrollTop = text.scrollTop));
