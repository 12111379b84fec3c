// Many texts from a CSV file: some rows at a time, with a progress bar.

import { call, csvLine, download, make } from "./server.js";

const ROWS_A_CALL = 16;
const SHOWN = 20;
const PATIENCE = 30;
const by = (id) => document.getElementById(id);
let table = []; // rows of fields, the first one holds the names
let results = []; // labels by row
let running = null;

// Rows of a CSV or TSV: quotes may hold separators, line ends and doubled quotes.
export function parse(text) {
  const first = text.slice(0, text.search(/\r|\n|$/));
  const separator = first.includes("\t") ? "\t" : first.includes(",") || !first.includes(";") ? "," : ";";
  const rows = [];
  let row = [];
  let field = "";
  let quoted = false;
  for (let at = text.charCodeAt(0) === 0xfeff ? 1 : 0; at < text.length; at++) {
    const letter = text[at];
    if (quoted) {
      if (letter !== '"') field += letter;
      else if (text[at + 1] === '"') field += text[++at];
      else quoted = false;
    } else if (letter === '"' && field === "") quoted = true;
    else if (letter === separator) {
      row.push(field);
      field = "";
    } else if (letter === "\n" || letter === "\r") {
      if (letter === "\r" && text[at + 1] === "\n") at++;
      rows.push([...row, field]);
      row = [];
      field = "";
    } else field += letter;
  }
  if (field !== "" || row.length) rows.push([...row, field]);
  return rows.filter((one) => one.length > 1 || one[0] !== "");
}

// The column called text, or else the one with the longest fields.
export function textColumn(rows) {
  const named = rows[0].findIndex((name) => /^(text|body|document|abstract|description|title)$/i.test(name.trim()));
  if (named >= 0) return named;
  const size = rows[0].map((_, column) => rows.slice(1, 50).reduce((sum, row) => sum + (row[column] || "").length, 0));
  return size.indexOf(Math.max(...size));
}

export async function open(file, complain) {
  const read = parse(await file.text());
  if (read.length < 2) return complain(new Error("The file has no rows: a first line with names, then a line a text."));
  stop();
  table = read;
  results = [];
  by("column").replaceChildren(...table[0].map((name, column) => new Option(name || `column ${column + 1}`, column)));
  by("column").value = textColumn(table);
  by("column").disabled = false;
  by("start").disabled = false;
  by("fetch").disabled = true;
  by("progress").value = 0;
  by("done").textContent = `${(table.length - 1).toLocaleString()} rows`;
  draw();
}

function draw() {
  const head = make("tr", "", "", make("th", "", table[0][by("column").value]), make("th", "", "labels"));
  const rows = table.slice(1, SHOWN + 1).map((row, number) => {
    const shown = (results[number] || []).map((one) => `${one.label} ${one.score.toFixed(2)}`).join("; ");
    return make("tr", "", "", make("td", "", (row[by("column").value] || "").slice(0, 200)), make("td", "", shown));
  });
  by("rows").replaceChildren(head, ...rows);
}

// A busy server is asked again for a while; texts that are too many or too long together go in halves.
async function label(texts, k, signal) {
  for (let tries = 0; ; tries++) {
    try {
      return (await call("v1/predict", { texts, k }, signal)).results;
    } catch (error) {
      if (error.status === 413 && texts.length > 1) {
        const half = texts.length >> 1;
        return [...(await label(texts.slice(0, half), k, signal)), ...(await label(texts.slice(half), k, signal))];
      }
      if (error.status !== 503 || tries >= PATIENCE) throw error;
      await new Promise((done) => setTimeout(done, 1000 * (error.wait || 1)));
    }
  }
}

export async function start(complain) {
  const own = (running = new AbortController());
  by("start").disabled = true;
  by("stop").disabled = false;
  by("fetch").disabled = true;
  results = [];
  const texts = table.slice(1).map((row) => row[by("column").value] || "");
  const k = Math.min(100, Math.max(1, Number(by("many-count").value) || 5));
  try {
    for (let at = 0; at < texts.length; at += ROWS_A_CALL) {
      const made = await label(texts.slice(at, at + ROWS_A_CALL), k, own.signal);
      if (own.signal.aborted) return;
      results.push(...made.map((one) => one.labels));
      by("progress").value = results.length / texts.length;
      by("done").textContent = `${results.length.toLocaleString()} of ${texts.length.toLocaleString()} rows`;
      if (at <= SHOWN) draw();
    }
  } catch (error) {
    if (error.name !== "AbortError") complain(error);
    else if (results.length === 0) return;
  }
  by("start").disabled = false;
  by("stop").disabled = true;
  by("fetch").disabled = results.length === 0;
}

export function stop() {
  running?.abort();
}

export function fetchResults() {
  const lines = [csvLine([...table[0], "labels", "scores"])];
  results.forEach((found, number) => {
    const names = found.map((one) => one.label).join(";");
    const scores = found.map((one) => one.score).join(";");
    lines.push(csvLine([...table[number + 1], names, scores]));
  });
  download("labels.csv", "text/csv", lines.join(""));
}

by("column").addEventListener("change", draw);
