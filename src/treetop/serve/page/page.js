// The page: a single text is labeled while it is typed, and a file row by row.

import * as batch from "./batch.js";
import { writeRow } from "./csv.js";
import { byId, counted, download } from "./dom.js";
import * as labels from "./labels.js";
import { clear } from "./marks.js";
import { onPick } from "./search.js";
import { call, seen } from "./server.js";

const TYPING_DELAY = 250; // ms after the last key
const SLOW = 600; // ms until the page says that it is waiting
const text = byId("text");
let timer = 0;
let asking = null;

async function suggest() {
  asking?.abort();
  byId("length").textContent = text.value ? counted(Array.from(text.value).length, "character") : "";
  clear();
  if (!text.value.trim()) {
    asking = null;
    byId("state").textContent = byId("took").textContent = "";
    return labels.show([]);
  }
  const own = (asking = new AbortController());
  const slow = setTimeout(() => (byId("state").textContent = "Waiting for the server…"), SLOW);
  const started = performance.now();
  try {
    const answer = await call("v1/predict", { text: text.value, k: Number(byId("count").value) }, own.signal);
    if (own !== asking) return;
    labels.show(seen(answer.results[0].labels));
    byId("state").textContent = "";
    byId("took").textContent = `${Math.max(1, Math.round(performance.now() - started))} ms`;
    byId("problem").hidden = true;
  } catch (error) {
    if (error.name !== "AbortError") complain(error, suggest);
  } finally {
    clearTimeout(slow);
  }
}

const problem = byId("problem");
const [again, dismiss] = problem.querySelectorAll("button");

function complain(error, retry = null) {
  byId("state").textContent = "";
  problem.hidden = false;
  problem.querySelector("span").textContent = error.message;
  again.hidden = retry === null;
  again.onclick = () => {
    problem.hidden = true;
    retry();
  };
}
dismiss.addEventListener("click", () => (problem.hidden = true));

const PROBABILITY = {
  name: "probability",
  minimum: 0,
  maximum: 1,
  description: "that the label is right, as held-out documents show.",
};

async function describe() {
  const model = await call("v1/model");
  byId("model-name").textContent = model.name;
  byId("about").textContent = `${counted(model.labels, "label")}, ${counted(model.train_documents, "training text")}`;
  document.title = `${model.name} · treetop`;
  byId("keep").hidden = !model.feedback;
  if (model.features !== null) {
    text.disabled = true;
    text.placeholder = "This model takes features: send them to the API at v1/predict.";
    byId("many-tab").hidden = true;
  }
  const shown = model.calibrated ? PROBABILITY : model.scores;
  const name = shown.name[0].toUpperCase() + shown.name.slice(1);
  byId("score-meaning").textContent = `${name}: ${shown.description}`;
  labels.setRange(shown);
  batch.prepare({ feedback: model.feedback, complain });
  batch.setMinimum(shown.minimum);
  if (model.calibrated) batch.showProbabilities();
}

function acceptFiles(place, take) {
  const hasFiles = (event) => [...event.dataTransfer.types].includes("Files");
  place.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    place.classList.add("drop");
  });
  place.addEventListener("dragleave", () => place.classList.remove("drop"));
  place.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    place.classList.remove("drop");
    take(event.dataTransfer.files[0]);
  });
}

function onFile(input, take) {
  input.addEventListener("change", () => {
    if (input.files[0]) take(input.files[0]);
    input.value = ""; // so that the same file can be opened again
  });
}

async function openText(file) {
  labels.reset();
  text.value = await file.text();
  suggest();
}

function exported() {
  return labels.chosen().map(({ label, score }) => ({ label, score }));
}

text.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(suggest, TYPING_DELAY);
});
byId("count").addEventListener("change", suggest);
byId("clear").addEventListener("click", () => {
  labels.reset();
  text.value = "";
  suggest();
  text.focus();
});
byId("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(exported().map((one) => one.label).join("\n"));
    byId("state").textContent = "Copied";
  } catch {
    complain(new Error("The browser allows copying on secure pages only (HTTPS or localhost): download the labels instead."));
  }
});
byId("as-jsonl").addEventListener("click", () => {
  const chosen = exported();
  const record = { text: text.value, labels: chosen.map((one) => one.label), scores: chosen.map((one) => one.score) };
  download("labels.jsonl", "application/jsonl", JSON.stringify(record) + "\n");
});
byId("as-csv").addEventListener("click", () => {
  const lines = exported().map((one) => writeRow([one.label, one.score ?? ""]));
  download("labels.csv", "text/csv", writeRow(["label", "score"]) + lines.join(""));
});
byId("keep").addEventListener("click", async () => {
  try {
    await call("v1/feedback", { text: text.value, ...labels.decided() });
    labels.clearDecisions();
    byId("state").textContent = "Saved";
  } catch (error) {
    complain(error);
  }
});
labels.listen((count) => {
  const { labels: accepted, rejected } = labels.decided();
  byId("keep").disabled = !text.value.trim() || !(accepted.length + rejected.length);
  byId("empty").hidden = count > 0;
  byId("score-meaning").hidden = count === 0;
  for (const id of ["copy", "as-csv", "as-jsonl"]) byId(id).disabled = count === 0;
});
onPick(labels.add);
onFile(byId("file"), openText);
onFile(byId("table"), batch.open);
acceptFiles(byId("paper"), openText);
acceptFiles(byId("many"), batch.open);

const tabs = ["one", "many"];
function choose(chosen) {
  for (const tab of tabs) {
    byId(tab).hidden = tab !== chosen;
    byId(`${tab}-tab`).setAttribute("aria-selected", tab === chosen);
    byId(`${tab}-tab`).tabIndex = tab === chosen ? 0 : -1;
  }
}
for (const tab of tabs) {
  byId(`${tab}-tab`).addEventListener("click", () => choose(tab));
  byId(`${tab}-tab`).addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = tabs.find((name) => name !== tab);
    choose(other);
    byId(`${other}-tab`).focus();
  });
}

function setTheme(name) {
  if (name) document.documentElement.className = name;
}
byId("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const current = localStorage.getItem("theme") || (dark ? "dark" : "light");
  localStorage.setItem("theme", current === "dark" ? "light" : "dark");
  setTheme(localStorage.getItem("theme"));
});

setTheme(localStorage.getItem("theme"));
labels.show([]);
batch.prepare({ feedback: false, complain });
describe().catch((error) => complain(error, describe));
