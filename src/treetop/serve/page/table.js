// A file of texts: its encoding, delimiter, column names and text column, detected or chosen.

import { detectDelimiter, detectTextColumn, hasHeader, parse, writeRow } from "./csv.js";
import { decode, detectEncoding, encode } from "./encoding.js";

const DELIMITER_NAMES = { ",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe" };

export class Table {
  constructor(name, bytes) {
    this.name = name;
    this.bytes = bytes;
    this.detected = detectEncoding(bytes);
    this.chosen = {};
    this.read({});
  }

  // Decode and parse with what the user chose, now or before; everything else is detected.
  read(chosen) {
    if (!("column" in chosen)) delete this.chosen.column; // the columns may be others now
    Object.assign(this.chosen, chosen);
    const { encoding = this.detected.encoding, delimiter, header, column } = this.chosen;
    this.mark = this.detected.mark && encoding === this.detected.encoding;
    this.encoding = encoding;
    const text = decode(this.bytes, encoding);
    this.newline = /\r\n|\n|\r/.exec(text)?.[0] ?? "\r\n";
    this.delimiter = delimiter ?? detectDelimiter(text);
    const all = parse(text, this.delimiter);
    this.header = header ?? (all.length > 0 && hasHeader(all));
    this.rows = this.header ? all.slice(1) : all;
    const width = all.reduce((most, row) => Math.max(most, row.length), 0);
    this.head = Array.from({ length: width }, (_, at) => (this.header ? all[0][at] : null) ?? "");
    this.names = this.head.map((name, at) => name.trim() || `column ${at + 1}`);
    this.column = column ?? (width ? detectTextColumn(this.rows, width) : 0);
  }

  get texts() {
    return this.rows.map((row) => row[this.column] ?? "");
  }

  get delimiterName() {
    return DELIMITER_NAMES[this.delimiter] ?? this.delimiter;
  }

  // The file as it was, with further columns ({name: value of each row}), for the first `count` rows.
  // Falls back to UTF-8 with a byte order mark where the file's encoding cannot represent a label.
  write(columns, count) {
    const names = Object.keys(columns).map((name) => this.unusedName(name));
    const lines = this.header ? [[...this.head, ...names]] : [];
    for (let number = 0; number < count; number++) {
      const row = this.rows[number];
      const filled = [...row, ...Array(this.head.length - row.length).fill("")];
      lines.push([...filled, ...Object.values(columns).map((values) => values[number])]);
    }
    const text = lines.map((line) => writeRow(line, this.delimiter, this.newline)).join("");
    const bytes = encode(text, this.encoding, this.mark);
    return bytes ? { bytes, encoding: this.encoding } : { bytes: encode(text, "utf-8", true), encoding: "utf-8" };
  }

  unusedName(name) {
    const names = new Set(this.names);
    let unused = name;
    for (let number = 2; names.has(unused); number++) unused = `${name}_${number}`;
    return unused;
  }
}
