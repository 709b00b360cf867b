// Header values: raw UTF-8 as browsers and curl send it, and the encoded words of RFC 2047.

const word = /=\?([^?\s]+)\?([bBqQ])\?([^?\s]*)\?=/g;

/** Node reads headers as latin1; whoever sent UTF-8 meant UTF-8. */
export function utf8Header(value: string): string {
  for (let at = 0; at < value.length; at += 1) {
    if (value.charCodeAt(at) > 0x7f) return Buffer.from(value, 'latin1').toString('utf8');
  }
  return value;
}

/** What cannot be decoded stays as it was sent. */
export function decodeMimeWords(value: string): string {
  if (!value.includes('=?')) return value;
  let text = '';
  let at = 0;
  let afterWord = false;
  for (const match of value.matchAll(word)) {
    const [whole, charset = '', encoding = '', content = ''] = match;
    const decoded = decodeWord(charset, encoding.toLowerCase(), content);
    if (decoded === undefined) return value;
    const between = value.slice(at, match.index);
    // White space between two words belongs to neither.
    if (!(afterWord && /^\s*$/.test(between))) text += between;
    text += decoded;
    at = match.index + whole.length;
    afterWord = true;
  }
  return text + value.slice(at);
}

function decodeWord(charset: string, encoding: string, content: string): string | undefined {
  const bytes = encoding === 'b' ? fromBase64(content) : fromQuoted(content);
  if (bytes === undefined) return undefined;
  const name = charset.toLowerCase();
  if (name === 'utf-8') return bytes.toString('utf8');
  if (name === 'iso-8859-1') return bytes.toString('latin1');
  return name === 'us-ascii'
    ? bytes.toString('latin1').replace(/[\x80-\xff]/g, '\ufffd')
    : undefined;
}

function fromBase64(content: string): Buffer | undefined {
  const isGood = /^[A-Za-z0-9+/]*={0,2}$/.test(content) && content.length % 4 === 0;
  return isGood ? Buffer.from(content, 'base64') : undefined;
}

function fromQuoted(content: string): Buffer | undefined {
  if (/=(?![0-9A-Fa-f]{2})/.test(content)) return undefined;
  const bytes = content
    .replaceAll('_', ' ')
    .replace(/=([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}
