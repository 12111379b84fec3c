// Calls to the server. An answer that is not good becomes an Error with the server's own words.

const ask = document.getElementById("token");
let token = sessionStorage.getItem("token") || "";

async function newToken() {
  if (!ask.open) ask.showModal();
  await new Promise((done) => ask.addEventListener("close", done, { once: true }));
  token = document.getElementById("token-value").value.trim();
  if (!/^[!-~]+$/.test(token)) {
    token = "";
    throw new Error("This server wants a token.");
  }
  sessionStorage.setItem("token", token);
}

export async function call(path, body, signal) {
  for (;;) {
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    const options = { signal, headers };
    if (body !== undefined) {
      options.method = "POST";
      options.body = JSON.stringify(body);
      headers["content-type"] = "application/json";
    }
    const answer = await fetch(path, options).catch((error) => {
      throw error.name === "AbortError" ? error : new Error("The server cannot be reached.");
    });
    if (answer.status === 401) {
      await newToken();
      continue;
    }
    const read = await answer.json().catch(() => ({}));
    if (answer.ok) return read;
    const error = new Error(read.error ? read.error.message : `The server answered ${answer.status}.`);
    error.status = answer.status;
    error.wait = Number(answer.headers.get("retry-after")) || 0;
    throw error;
  }
}

export function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function csvLine(fields) {
  return fields.map((field) => (/[",\r\n]/.test(field) ? `"${String(field).replaceAll('"', '""')}"` : field)).join(",") + "\r\n";
}

// An element with a class, text and children; text is never read as HTML.
export function make(kind, className = "", text = "", ...children) {
  const made = document.createElement(kind);
  if (className) made.className = className;
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}
