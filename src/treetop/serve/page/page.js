// The page: what is typed goes to the server, what comes back is shown.

import * as batch from "./batch.js";
import * as labels from "./labels.js";
import { onPick } from "./search.js";
import { call, csvLine, download } from "./server.js";

const WAIT_FOR_TYPING = 250;
const SLOW = 600;
const by = (id) => document.getElementById(id);
const text = by("text");
let timer = 0;
let asking = null;

async function suggest() {
  asking?.abort();
  by("length").textContent = text.value ? `${text.value.length.toLocaleString()} characters` : "";
  by("marks").replaceChildren();
  if (!text.value.trim()) {
    by("state").textContent = by("took").textContent = "";
    labels.show([]);
    return;
  }
  const own = (asking = new AbortController());
  const slow = setTimeout(() => (by("state").textContent = "working …"), SLOW);
  const begun = performance.now();
  try {
    const answer = await call("v1/predict", { text: text.value, k: Number(by("count").value) }, own.signal);
    if (own !== asking) return;
    labels.show(answer.results[0].labels);
    by("state").textContent = "";
    by("took").textContent = `${Math.max(1, Math.round(performance.now() - begun))} ms`;
    by("problem").hidden = true;
  } catch (error) {
    if (error.name !== "AbortError") complain(error, suggest);
  } finally {
    clearTimeout(slow);
  }
}

function complain(error, again = null) {
  by("state").textContent = "";
  by("problem").hidden = false;
  by("problem").querySelector("span").textContent = error.message;
  const button = by("problem").querySelector("button");
  button.hidden = again === null;
  button.onclick = () => {
    by("problem").hidden = true;
    again();
  };
}

function exported() {
  return labels.chosen().map(({ label, score }) => ({ label, score }));
}

async function describe() {
  const about = await call("v1/model");
  const counted = `${about.labels.toLocaleString()} labels, ${about.train_documents.toLocaleString()} training texts`;
  by("about").textContent = `${about.name}: ${counted}`;
  document.title = `${about.name} · treetop`;
  by("keep").hidden = !about.feedback;
}

function acceptFiles(place, take) {
  const brings = (event) => [...event.dataTransfer.types].includes("Files");
  place.addEventListener("dragover", (event) => {
    if (!brings(event)) return;
    event.preventDefault();
    place.classList.add("drop");
  });
  place.addEventListener("dragleave", () => place.classList.remove("drop"));
  place.addEventListener("drop", (event) => {
    if (!brings(event)) return;
    event.preventDefault();
    place.classList.remove("drop");
    take(event.dataTransfer.files[0]);
  });
}

function setText(value) {
  text.value = value;
  suggest();
}

async function openText(file) {
  labels.forget();
  setText(await file.text());
}

function choose(tab) {
  for (const name of ["one", "many"]) {
    by(name).hidden = name !== tab;
    by(`${name}-tab`).setAttribute("aria-selected", name === tab);
    by(`${name}-tab`).tabIndex = name === tab ? 0 : -1;
  }
}

text.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(suggest, WAIT_FOR_TYPING);
});
by("count").addEventListener("change", suggest);
by("file").addEventListener("change", (event) => event.target.files[0] && openText(event.target.files[0]));
by("clear").addEventListener("click", () => {
  labels.forget();
  setText("");
  text.focus();
});
by("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(exported().map((one) => one.label).join("\n"));
    by("state").textContent = "copied";
  } catch {
    complain(new Error("The browser allows copying only on secure pages: download instead."));
  }
});
by("as-json").addEventListener("click", () => {
  download("labels.json", "application/json", JSON.stringify({ text: text.value, labels: exported() }, null, 2));
});
by("as-csv").addEventListener("click", () => {
  const lines = exported().map((one) => csvLine([one.label, one.score ?? ""]));
  download("labels.csv", "text/csv", csvLine(["label", "score"]) + lines.join(""));
});
by("keep").addEventListener("click", async () => {
  try {
    await call("v1/feedback", { text: text.value, ...labels.decisions() });
    labels.undecide();
    by("state").textContent = "saved";
  } catch (error) {
    complain(error);
  }
});
labels.onChange(() => {
  by("keep").disabled = !text.value.trim() || !labels.decisions().labels.length;
});
onPick(labels.add);
for (const name of ["one", "many"]) {
  by(`${name}-tab`).addEventListener("click", () => choose(name));
  by(`${name}-tab`).addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = name === "one" ? "many" : "one";
    choose(other);
    by(`${other}-tab`).focus();
  });
}
acceptFiles(by("paper"), openText);
acceptFiles(by("many"), (file) => batch.open(file, complain));
by("table").addEventListener("change", (event) => event.target.files[0] && batch.open(event.target.files[0], complain));
by("start").addEventListener("click", () => batch.start(complain));
by("stop").addEventListener("click", batch.stop);
by("fetch").addEventListener("click", batch.fetchResults);
by("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = localStorage.getItem("theme") || (dark ? "dark" : "light");
  setTheme(now === "dark" ? "light" : "dark");
});

function setTheme(name) {
  if (!name) return;
  localStorage.setItem("theme", name);
  document.documentElement.className = name;
}

setTheme(localStorage.getItem("theme"));
describe().catch((error) => complain(error, describe));
