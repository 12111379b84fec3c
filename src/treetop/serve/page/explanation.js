// An explanation as it is shown below its label: parts that add up to the score, words, paths, similar texts.

import { make, makeText, signed } from "./dom.js";

const INVISIBLE = 0.005; // values that would be shown as 0.00

export function render(reason) {
  const parts = [sum(reason), ...words(reason), ...trees(reason), ...similar(reason)];
  if (!reason.reached) {
    parts.unshift(make("p", "quiet", "Beam search does not reach this label, so its score is 0. These are the parts of the score it would have had."));
  }
  return parts;
}

// A table whose rows add up to the raw score.
function sum(reason) {
  const rows = [["Words", reason.word_sum], ["Bias", reason.bias]];
  if (reason.encoder !== 0) rows.splice(1, 0, ["Text encoder", reason.encoder]);
  const largest = Math.max(...rows.map(([, value]) => Math.abs(value)), Math.abs(reason.raw_score));
  const table = make("table", "sum");
  table.append(make("caption", "", "Why this score"));
  const shown = roundedParts(rows.map(([, value]) => value), reason.raw_score);
  for (const [row, [name, value]] of [...rows, ["Raw score", reason.raw_score]].entries()) {
    const heading = make("th", "", name);
    heading.scope = "row";
    const bar = make("i", value < 0 ? "minus" : "plus");
    bar.style.width = `${largest ? (50 * Math.abs(value)) / largest : 0}%`;
    table.append(make("tr", name === "Raw score" ? "total" : "", "", heading, make("td", "", signed(shown[row] ?? value)), make("td", "balance", "", bar)));
  }
  const box = make("div", "", "", table);
  box.append(make("p", "quiet", formula(reason)));
  return box;
}

// Values with two decimals that add up to the total with two decimals: what rounding leaves over goes to the largest.
function roundedParts(values, total) {
  const cents = values.map((value) => Math.round(100 * value));
  const sizes = values.map(Math.abs);
  cents[sizes.indexOf(Math.max(...sizes))] += Math.round(100 * total) - cents.reduce((one, other) => one + other, 0);
  return cents.map((cent) => cent / 100);
}

// How the score follows from the raw scores.
function formula(reason) {
  const transforms = [...new Set(reason.paths.map((path) => path.transform))].join(" or ");
  const trees = reason.paths.filter((path) => path.nodes.length > 1).length;
  const score = `Score ${reason.score.toFixed(3)}`;
  if (!reason.reached) return `${score}.`;
  if (reason.paths.length === 1 && trees === 0 && transforms !== "identity") return `${score} = ${transforms}(${reason.raw_score.toFixed(2)}).`;
  const joined = transforms.startsWith("log-") ? "added" : "multiplied";
  const along = trees && transforms !== "identity" ? `, ${joined} along the path` : "";
  const what = transforms === "identity" ? "the raw score" : `${transforms}(raw score)${along}`;
  if (reason.paths.length === 1) return `${score}: ${what}.`;
  return `${score}: the mean of ${what}, over ${reason.paths.length} ${trees === reason.paths.length ? "trees" : "models"}.`;
}

function words(reason) {
  const shown = reason.words.filter((word) => Math.abs(word.value) >= INVISIBLE);
  if (!shown.length) return [make("h4", "", "Words"), make("p", "quiet", "No word of the text contributes.")];
  const rest = reason.word_sum - shown.reduce((total, word) => total + word.value, 0);
  const chips = shown.map((word) => {
    const chip = makeText("li", word.value < 0 ? "against" : "", word.name);
    chip.append(" ", make("span", "", signed(word.value)));
    return chip;
  });
  if (Math.abs(rest) >= INVISIBLE) chips.push(make("li", "rest", `all other words ${signed(rest)}`));
  return [make("h4", "", "Words"), make("ul", "words", "", ...chips)];
}

function trees(reason) {
  const paths = reason.paths.filter((path) => path.nodes.length > 1);
  if (!paths.length) return [];
  const [first, ...others] = paths.map(nodes);
  const parts = [make("h4", "", others.length ? `Path through the label tree (1 of ${paths.length} trees)` : "Path through the label tree"), first];
  if (others.length) parts.push(make("details", "", "", make("summary", "", `Other ${others.length === 1 ? "tree" : "trees"}`), ...others));
  return parts;
}

function nodes(path) {
  const steps = path.nodes.map((node, level) => {
    const last = level === path.nodes.length - 1;
    const names = node.labels.join(", ") + (!last && node.labels.length > 1 ? ", …" : "");
    const worth = path.transform === "identity" ? "" : ` → ${node.worth.toFixed(3)}`;
    const step = makeText("li", "", names);
    step.append(make("span", "quiet", ` ${signed(node.raw)}${worth}, one of ${node.siblings.toLocaleString()}`));
    return step;
  });
  if (!path.reached) steps.push(make("li", "quiet", "Not reached by beam search in this tree."));
  return make("ol", "path", "", ...steps);
}

function similar(reason) {
  if (!reason.neighbours.length) return [];
  const items = reason.neighbours.map((document) => {
    const names = document.labels.map((name) => makeText(name === reason.label ? "b" : "span", "", name));
    const labels = make("span", "quiet", "Labels: ", ...names.flatMap((name, at) => (at ? [", ", name] : [name])));
    return make("li", "", "", makeText("div", "", document.text), labels);
  });
  return [make("h4", "", "Similar training texts"), make("ul", "similar", "", ...items)];
}
