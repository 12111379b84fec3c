// Batches: read a file, label its rows some at a time, download them with their labels.

import { byId, counted, download } from "./dom.js";
import { ENCODINGS } from "./encoding.js";
import * as rows from "./rows.js";
import { call, seen } from "./server.js";
import { Table } from "./table.js";

const ROWS_PER_CALL = 16;
const MAX_RETRIES = 30; // while the server is busy
let table = null;
let running = null;
let feedback = false;
let complain = () => {};

export function prepare(options) {
  ({ feedback, complain } = options);
}

// Scores may have no minimum: then all labels are shown unless the user chooses one.
export function setMinimum(minimum) {
  byId("threshold").value = minimum ?? "";
  rows.setThreshold(minimum ?? -Infinity);
}

export async function open(file) {
  stop();
  const opened = new Table(file.name, new Uint8Array(await file.arrayBuffer()));
  if (!opened.rows.length) return complain(new Error(`${file.name} has no rows: it needs one text per row.`));
  table = opened;
  byId("loaded").hidden = false;
  byId("file-name").textContent = table.name;
  refresh();
}

// Read the file again, with what the user chose instead of what was detected.
function reread(chosen) {
  stop();
  table.read(chosen);
  refresh();
}

function refresh() {
  byId("column").replaceChildren(...table.names.map((name, at) => new Option(name, at)));
  byId("column").value = table.column;
  byId("delimiter").value = table.delimiter;
  byId("encoding").value = table.encoding;
  byId("header").checked = table.header;
  const size = `${counted(table.rows.length, "row")}, ${counted(table.names.length, "column")}`;
  const how = Object.keys(table.chosen).length ? "Read as" : "Detected";
  byId("detected").textContent = `${size}. ${how}: ${table.delimiterName}-separated, ${ENCODINGS[table.encoding]}, texts in column “${table.names[table.column]}”.`;
  byId("open-table").classList.remove("strong");
  rows.reset(table.texts);
  byId("progress").value = 0;
  byId("done").textContent = "";
  byId("start").disabled = !table.rows.length;
}

// Requests to a busy server are repeated; texts that are together too large for a request are sent in halves.
async function label(texts, k, signal) {
  for (let tries = 0; ; tries++) {
    try {
      return (await call("v1/predict", { texts, k }, signal)).results.map((result) => seen(result.labels));
    } catch (error) {
      if (error.status === 413 && texts.length > 1) {
        const half = texts.length >> 1;
        return [...(await label(texts.slice(0, half), k, signal)), ...(await label(texts.slice(half), k, signal))];
      }
      if (error.status !== 503 || tries >= MAX_RETRIES || signal.aborted) throw error;
      await new Promise((done) => setTimeout(done, 1000 * (error.retryAfter || 1)));
    }
  }
}

// Label the rows that have no labels yet, or all of them again.
async function start() {
  const own = (running = new AbortController());
  const { texts } = table;
  if (rows.count() === texts.length) rows.clearResults();
  const k = Math.min(100, Math.max(1, Math.round(Number(byId("many-count").value)) || 5));
  busy(true);
  try {
    for (let at = rows.count(); at < texts.length; at = rows.count()) {
      rows.append(await label(texts.slice(at, at + ROWS_PER_CALL), k, own.signal));
      if (own.signal.aborted) return;
      byId("progress").value = rows.count() / texts.length;
      byId("done").textContent = `${rows.count().toLocaleString()} of ${texts.length.toLocaleString()} rows`;
    }
  } catch (error) {
    if (error.name !== "AbortError") complain(error, start);
  } finally {
    if (own === running) busy(false);
  }
}

function busy(isBusy) {
  const wasFocused = document.activeElement === byId(isBusy ? "start" : "stop");
  byId("start").disabled = isBusy;
  byId("stop").disabled = !isBusy;
  if (wasFocused) byId(isBusy ? "stop" : "start").focus();
  for (const id of ["column", "delimiter", "encoding", "header", "many-count"]) byId(id).disabled = isBusy;
  showTally();
}

function stop() {
  running?.abort();
}

function showTally() {
  const tally = rows.tally();
  const active = byId("start").disabled;
  byId("tally").textContent = tally.rows ? rows.summary(tally) : "";
  const finished = tally.rows > 0 && tally.rows === table.rows.length;
  byId("start").textContent = finished ? "Start again" : tally.rows ? "Resume" : "Start";
  byId("start").classList.toggle("strong", !finished);
  byId("fetch").classList.toggle("strong", finished);
  for (const id of ["fetch", "fetch-jsonl"]) byId(id).disabled = !tally.rows || active;
  byId("save-all").hidden = !feedback;
  byId("save-all").disabled = !tally.decided || active;
}

const numbers = () => Array.from({ length: rows.count() }, (_, number) => number);
const names = (labels) => labels.map((one) => one.label);

function downloadCsv() {
  const all = numbers().map(rows.chosen);
  const separator = [";", "|", " / "].find((sign) => !all.flat().some((one) => one.label.includes(sign))) ?? ";";
  const columns = {
    labels: all.map((labels) => names(labels).join(separator)),
    scores: all.map((labels) => labels.map((one) => one.score).join(separator)),
  };
  for (const decision of ["accepted", "rejected"]) {
    const decided = numbers().map((number) => names(rows.withDecision(number, decision)).join(separator));
    if (rows.tally().decided) columns[decision] = decided;
  }
  const { bytes, encoding } = table.write(columns, rows.count());
  if (encoding !== table.encoding) byId("tally").textContent = `Written as ${ENCODINGS[encoding]}: some labels cannot be written as ${ENCODINGS[table.encoding]}.`;
  download(outputName("csv"), "text/csv", bytes);
}

function downloadJsonl() {
  const lines = numbers().map((number) => {
    const labels = rows.chosen(number);
    const record = { text: table.texts[number], labels: names(labels), scores: labels.map((one) => one.score) };
    if (rows.isDecided(number)) {
      for (const decision of ["accepted", "rejected"]) record[decision] = names(rows.withDecision(number, decision));
    }
    const others = table.names.map((name, at) => [name, table.rows[number][at] ?? ""]).filter(([name], at) => at !== table.column && !(name in record));
    return JSON.stringify({ ...record, ...Object.fromEntries(others) }) + "\n";
  });
  download(outputName("jsonl"), "application/jsonl", lines.join(""));
}

// The name of the file with "-labels" added; a TSV file stays one.
function outputName(kind) {
  const [, stem, ending] = /^(.*?)(\.[^.]*)?$/.exec(table.name);
  return `${stem}-labels.${kind === "csv" && ending === ".tsv" ? "tsv" : kind}`;
}

async function saveDecisions() {
  const decided = numbers().filter(rows.isDecided);
  byId("save-all").disabled = true;
  try {
    for (const number of decided) {
      const labels = names(rows.withDecision(number, "accepted"));
      const rejected = names(rows.withDecision(number, "rejected"));
      if (table.texts[number]) await call("v1/feedback", { text: table.texts[number], labels, rejected });
    }
    byId("tally").textContent = `Decisions on ${counted(decided.length, "row")} saved.`;
  } catch (error) {
    complain(error, saveDecisions);
  }
}

byId("encoding").replaceChildren(...Object.entries(ENCODINGS).map(([value, name]) => new Option(name, value)));
byId("encoding").addEventListener("change", (event) => reread({ encoding: event.target.value }));
byId("delimiter").addEventListener("change", (event) => reread({ delimiter: event.target.value }));
byId("header").addEventListener("change", (event) => reread({ header: event.target.checked }));
byId("column").addEventListener("change", (event) => reread({ column: Number(event.target.value) }));
byId("threshold").addEventListener("input", (event) => {
  rows.setThreshold(event.target.value === "" ? -Infinity : Number(event.target.value));
  showThreshold();
});

// The value of a slider is not visible otherwise.
function showThreshold() {
  const input = byId("threshold");
  byId("threshold-value").textContent = input.type === "range" ? Number(input.value).toFixed(2) : "";
}

// Probabilities have a slider.
export function showProbabilities() {
  const input = byId("threshold");
  Object.assign(input, { type: "range", min: "0", max: "1", step: "0.01", value: "0" });
  byId("threshold-name").textContent = "Minimum probability";
  showThreshold();
}
byId("start").addEventListener("click", start);
byId("stop").addEventListener("click", stop);
byId("fetch").addEventListener("click", downloadCsv);
byId("fetch-jsonl").addEventListener("click", downloadJsonl);
byId("save-all").addEventListener("click", saveDecisions);
rows.listen(showTally);
