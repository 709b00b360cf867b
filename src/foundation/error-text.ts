// An error as text for databases and people: bounded, without control characters.

// oxlint-disable-next-line no-control-regex -- it finds control characters
const control = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;

/** PostgreSQL rejects U+0000 in a string, and half of a surrogate pair in JSON. */
export function cleanText(text: string, charsMax: number): string {
  return text.slice(0, charsMax).toWellFormed().replace(control, '�');
}

/** The message of an error with its causes: `fetch failed` alone is not helpful. */
export function errorText(error: unknown, charsMax: number): string {
  const parts: string[] = [];
  let current: unknown = error;
  // Causes can be circular.
  for (let depth = 0; depth < 5 && current !== undefined && current !== null; depth += 1) {
    const text = messageOf(current);
    if (text !== '' && !parts.some((part) => part.includes(text))) parts.push(text);
    current = current instanceof Error ? current.cause : undefined;
  }
  return cleanText(parts.join(': ') || 'unknown error', charsMax);
}

/** The message of an error, without its causes. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map((each) => messageOf(each)).join(', ');
  }
  if (error instanceof Error) return error.message === '' ? error.name : error.message;
  return typeof error === 'string' ? error : jsonOf(error);
}

/** Any value can be thrown, also one with a circular reference. */
function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return typeof value;
  }
}
