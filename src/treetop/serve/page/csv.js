// CSV with any delimiter (RFC 4180): parse, write, detect the delimiter and the column of texts.

export const DELIMITERS = [",", ";", "\t", "|"];
const SAMPLE = 200; // rows looked at for detection

// Rows of fields. Quoted fields may contain delimiters, line breaks and doubled quotes. Empty lines are skipped.
export function parse(text, delimiter, limit = Infinity) {
  const rows = [];
  let row = [];
  let field = "";
  let quoted = false;
  let closed = false; // a quoted field has just ended
  const endRow = () => {
    row.push(field);
    if (row.length > 1 || field !== "" || closed) rows.push(row);
    row = [];
    field = "";
    closed = false;
  };
  for (let at = 0; at < text.length && rows.length < limit; at++) {
    const letter = text[at];
    if (quoted) {
      if (letter !== '"') field += letter;
      else if (text[at + 1] === '"') field += text[++at];
      else [quoted, closed] = [false, true];
    } else if (letter === '"' && field === "" && !closed) quoted = true;
    else if (letter === delimiter) {
      row.push(field);
      field = "";
      closed = false;
    } else if (letter === "\n" || letter === "\r") {
      if (letter === "\r" && text[at + 1] === "\n") at++;
      endRow();
    } else field += letter;
  }
  if (rows.length < limit && (field !== "" || row.length || closed)) endRow();
  return rows;
}

// The delimiter for which most rows have as many fields as the first one.
export function detectDelimiter(text) {
  const sample = text.slice(0, 1 << 20);
  let best = [0, ","];
  for (const delimiter of DELIMITERS) {
    const rows = parse(sample, delimiter, SAMPLE);
    const width = rows.length ? rows[0].length : 0;
    if (width < 2) continue;
    const alike = rows.filter((row) => row.length === width).length / rows.length;
    const score = alike + Math.min(width, 50) / 1000;
    if (score > best[0]) best = [score, delimiter];
  }
  return best[1];
}

// Whether the first row looks like column names: short, different and not numbers, unlike a row of data.
export function hasHeader(rows) {
  const names = rows[0].map((name) => name.trim());
  const plausible = names.every((name) => name.length <= 60 && !/^[-+]?[\d.,]+$/.test(name));
  return plausible && new Set(names).size === names.length && names.some((name) => name !== "");
}

// The column with most letters per field, unless its values repeat (categories) or are addresses.
export function detectTextColumn(rows, width) {
  const scores = Array.from({ length: width }, (_, column) => {
    const values = rows.slice(0, SAMPLE).map((row) => (row[column] || "").trim());
    const filled = values.filter((value) => value !== "");
    if (!filled.length) return 0;
    const letters = filled.reduce((sum, value) => sum + (value.slice(0, 2000).match(/\p{L}/gu) || []).length, 0);
    const distinct = new Set(filled).size / filled.length;
    const addresses = filled.filter((value) => /^\S+(:\/\/|@|\/)\S+$/.test(value)).length / filled.length;
    return (letters / values.length) * distinct * (1 - addresses);
  });
  return scores.indexOf(Math.max(...scores));
}

// Spreadsheets run a field that starts like a formula, so it gets an apostrophe in front; numbers stay as they are.
function harmless(field) {
  return /^[=+\-@\t\r]/.test(field) && !/^[-+]?[\d.,]+(e[-+]?\d+)?$/i.test(field) ? `'${field}` : field;
}

export function writeRow(fields, delimiter = ",", newline = "\r\n") {
  const special = (field) => field.includes(delimiter) || /["\r\n]/.test(field) || /^\s|\s$/.test(field);
  const written = fields.map((field) => harmless(String(field ?? ""))).map((field) => (special(field) ? `"${field.replaceAll('"', '""')}"` : field));
  return written.join(delimiter) + newline;
}
