// How bytes of a client are kept in a store of JSON: as the JSON value that they are, where it reads
// back to the same bytes; as that value with the exact text beside it; or as they are, in base64.

export type StoredBytes =
  /** `JSON.stringify` of the value gives the bytes. */
  | { readonly kind: 'json'; readonly value: unknown }
  /** JSON that another serialiser wrote: the value for our readers, the text for the client. */
  | { readonly kind: 'text'; readonly value: unknown; readonly text: string }
  | { readonly kind: 'bytes'; readonly base64: string };

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function storeBytes(bytes: Uint8Array, isJson: boolean): StoredBytes {
  const text = isJson && bytes.length > 0 ? exactText(bytes) : undefined;
  if (text === undefined) return opaque(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Not JSON, whatever the client called it.
    return opaque(bytes);
  }
  return JSON.stringify(value) === text ? { kind: 'json', value } : { kind: 'text', value, text };
}

export function opaque(bytes: Uint8Array): StoredBytes {
  return { kind: 'bytes', base64: asBuffer(bytes).toString('base64') };
}

/** Undefined where the bytes are no text, so that decoding would lose some. */
function exactText(bytes: Uint8Array): string | undefined {
  // A decoder that is told to be strict takes twice as long; what it replaces can be seen as well.
  const text = asBuffer(bytes).toString('utf8');
  if (!text.includes('\ufffd')) return text;
  try {
    return utf8.decode(bytes);
  } catch {
    // Some byte sequence that UTF-8 does not have.
    return undefined;
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
