// Text encodings of files: detect, decode, and encode again.

export const ENCODINGS = {
  "utf-8": "UTF-8",
  "utf-16le": "UTF-16 (little-endian)",
  "utf-16be": "UTF-16 (big-endian)",
  "windows-1252": "Windows-1252 (Western European)",
  "windows-1250": "Windows-1250 (Central European)",
  "windows-1251": "Windows-1251 (Cyrillic)",
  "windows-1253": "Windows-1253 (Greek)",
  "windows-1254": "Windows-1254 (Turkish)",
  "windows-1255": "Windows-1255 (Hebrew)",
  "windows-1256": "Windows-1256 (Arabic)",
  "iso-8859-2": "ISO 8859-2 (Central European)",
  "iso-8859-15": "ISO 8859-15 (Western European)",
  shift_jis: "Shift JIS (Japanese)",
  gb18030: "GB 18030 (Chinese)",
  "euc-kr": "EUC-KR (Korean)",
};
const MARKS = { "utf-8": [0xef, 0xbb, 0xbf], "utf-16le": [0xff, 0xfe], "utf-16be": [0xfe, 0xff] };

const startsWith = (bytes, mark) => mark.every((byte, at) => bytes[at] === byte);

// The encoding, and whether the file begins with a byte order mark. Files that are not valid Unicode are taken
// for Windows-1252, the most common of the others.
export function detectEncoding(bytes) {
  for (const [encoding, mark] of Object.entries(MARKS)) if (startsWith(bytes, mark)) return { encoding, mark: true };
  const zeros = [0, 0]; // at even and odd places: the high bytes of UTF-16
  const sample = bytes.subarray(0, 4096);
  sample.forEach((byte, at) => (zeros[at % 2] += byte === 0));
  if (zeros[1] > sample.length / 4) return { encoding: "utf-16le", mark: false };
  if (zeros[0] > sample.length / 4) return { encoding: "utf-16be", mark: false };
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return { encoding: "utf-8", mark: false };
  } catch {
    return { encoding: "windows-1252", mark: false };
  }
}

// Without the byte order mark, which TextDecoder removes.
export function decode(bytes, encoding) {
  return new TextDecoder(encoding).decode(bytes);
}

// Bytes of a text, or null if the encoding cannot represent it (or a browser cannot write the encoding).
export function encode(text, encoding, mark) {
  const before = mark ? MARKS[encoding] || [] : [];
  if (encoding === "utf-8") return join(before, new TextEncoder().encode(text));
  if (encoding.startsWith("utf-16")) {
    const view = new DataView(new ArrayBuffer(2 * text.length));
    for (let at = 0; at < text.length; at++) view.setUint16(2 * at, text.charCodeAt(at), encoding === "utf-16le");
    return join(before, new Uint8Array(view.buffer));
  }
  const table = singleByteTable(encoding);
  if (table === null) return null;
  const letters = Array.from(text, (letter) => table.get(letter));
  return letters.includes(undefined) ? null : Uint8Array.from(letters);
}

function join(first, second) {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}

function singleByteTable(encoding) {
  const decoder = new TextDecoder(encoding);
  const table = new Map();
  for (let byte = 0; byte < 256; byte++) {
    const letter = decoder.decode(Uint8Array.of(byte));
    if (letter.length !== 1) return null;
    if (letter !== "\ufffd") table.set(letter, byte);
  }
  return table.size < 200 ? null : table; // of an encoding with several bytes per character
}
