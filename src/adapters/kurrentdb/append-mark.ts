// The server does not say whether an append was a repeat. So the last event of every append carries
// a mark of this one attempt, in a header that our readers take off again: whoever finds another
// attempt's mark at the place that the server named has repeated it.

const markHeader = '$append';
/** Ends the mark of an event that had headers of its own, if only an empty object. */
const hadHeaders = '+';

export function addMark(headers: unknown, mark: string | undefined): unknown {
  if (mark === undefined) return headers;
  if (headers === undefined) return { [markHeader]: mark };
  return { ...(headers as Record<string, unknown>), [markHeader]: `${mark}${hadHeaders}` };
}

export function takeMark(headers: unknown): {
  readonly headers: unknown;
  readonly mark: string | undefined;
} {
  const isObject = typeof headers === 'object' && headers !== null;
  if (!isObject || !(markHeader in headers)) return { headers, mark: undefined };
  const { [markHeader]: mark, ...rest } = headers as Record<string, unknown>;
  if (typeof mark !== 'string') return { headers, mark: undefined };
  const had = mark.endsWith(hadHeaders);
  return { mark: had ? mark.slice(0, -hadHeaders.length) : mark, headers: had ? rest : undefined };
}
