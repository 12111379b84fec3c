// Calls to the HTTP API. An error response becomes an Error with the server's message.

import { byId } from "./dom.js";

const dialog = byId("token");
let token = sessionStorage.getItem("token") || "";
let asking = null; // one dialog at a time, for all calls that need a token

function askForToken() {
  asking ??= showDialog().finally(() => (asking = null));
  return asking;
}

async function showDialog() {
  do {
    byId("token-wrong").textContent = token ? "The token is wrong." : "";
    byId("token-value").value = "";
    dialog.returnValue = "";
    dialog.showModal();
    await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
    token = byId("token-value").value.trim();
    if (dialog.returnValue !== "continue" || !token) {
      token = "";
      throw new Error("This server requires a token.");
    }
  } while (!/^[!-~]+$/.test(token)); // others cannot be sent
  sessionStorage.setItem("token", token);
}

// What people see of labels: their probabilities, if the model is calibrated, else their scores.
export const seen = (labels) => labels.map((one) => ({ ...one, score: one.probability ?? one.score }));

export async function call(path, body, signal) {
  for (;;) {
    const sent = token;
    const headers = sent ? { authorization: `Bearer ${sent}` } : {};
    const options = { signal, headers };
    if (body !== undefined) {
      options.method = "POST";
      options.body = JSON.stringify(body);
      headers["content-type"] = "application/json";
    }
    const response = await fetch(path, options).catch((error) => {
      throw error.name === "AbortError" ? error : new Error("The server cannot be reached.");
    });
    if (response.status === 401) {
      if (sent === token) await askForToken();
      continue;
    }
    const answer = await response.json().catch(() => ({}));
    if (response.ok) return answer;
    const error = new Error(answer.error ? answer.error.message : `The server answered with status ${response.status}.`);
    error.status = response.status;
    error.retryAfter = Number(response.headers.get("retry-after")) || 0;
    throw error;
  }
}
