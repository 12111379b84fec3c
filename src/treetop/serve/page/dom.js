// Small helpers for the DOM.

export const byId = (id) => document.getElementById(id);

// An element with a class, text and children. Text is never parsed as HTML.
export function make(kind, className = "", text = "", ...children) {
  const element = document.createElement(kind);
  if (className) element.className = className;
  if (text) element.textContent = text;
  element.append(...children);
  return element;
}

// The same for text of users, which may be written from right to left.
export function makeText(kind, className, text) {
  const element = make(kind, className, text);
  element.dir = "auto";
  return element;
}

export function makeButton(className, sign, name, action) {
  const button = make("button", className, sign);
  button.setAttribute("aria-label", name);
  button.title = name;
  button.addEventListener("click", action);
  return button;
}

export function download(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
export const counted = (count, noun) => `${count.toLocaleString()} ${noun}${count === 1 ? "" : "s"}`;
