// Any logged value as plain JSON of a bounded size, without secrets and personal data. Redaction goes by the names of
// fields at any depth and by patterns in strings, which the path-based redaction of pino cannot do.

export interface LogValueLimits {
  readonly depthMax: number;
  /** The limit of entries per object or list. */
  readonly entriesMax: number;
  readonly textCharsMax: number;
  /** The limit of nodes per value, over all depths. */
  readonly nodesMax: number;
}

export type LogValue =
  | string
  | number
  | boolean
  | null
  | readonly LogValue[]
  | { readonly [key: string]: LogValue };

const redacted = '[redacted]';

/** Matches anywhere in the name of a field, in any case and with any separators. */
const secretNames =
  /authorization|cookie|credential|passphrase|password|passwd|secret|token|apikey|privatekey/;
const personalNames = ['email', 'phone', 'firstname', 'lastname', 'fullname', 'birth', 'iban'];
/** Matches the whole name only: `dataSource` and `userId` stay. */
const wholeNames = /^(?:payload|body|user|recipient|ssn)$/;
/** Bounds the cache of field names, because logged data can have any keys. */
const cachedNamesMax = 1_000;

/** Returns a function that converts any value and never throws. `redact` names more fields to leave out. */
export function createLogValues({
  redact = [],
}: { readonly redact?: readonly string[] | undefined } = {}): (
  value: unknown,
  limits: LogValueLimits,
) => LogValue {
  const personal = new RegExp([...personalNames, ...redact.map(normalized)].join('|'));
  const cache = new Map<string, 'hide' | 'hide secrets' | 'show'>();

  function judge(key: string): 'hide' | 'hide secrets' | 'show' {
    const cached = cache.get(key);
    if (cached !== undefined) return cached;
    const name = normalized(key);
    const isSecret = secretNames.test(name) || wholeNames.test(name);
    const verdict = personal.test(name) ? 'hide' : isSecret ? 'hide secrets' : 'show';
    if (cache.size < cachedNamesMax) cache.set(key, verdict);
    return verdict;
  }

  function isHidden(key: string, value: unknown): boolean {
    if (value === undefined || value === null) return false;
    const verdict = judge(key);
    // A number named `token` is a fence token, and a boolean is not secret.
    const canBeSecret = typeof value !== 'number' && typeof value !== 'boolean';
    return verdict === 'hide' || (verdict === 'hide secrets' && canBeSecret);
  }

  return (value, limits) => toLogValue(value, limits, isHidden);
}

function toLogValue(
  given: unknown,
  limits: LogValueLimits,
  isHidden: (key: string, value: unknown) => boolean,
): LogValue {
  const path = new Set<object>();
  let nodes = 0;

  function convert(value: unknown, depth: number): LogValue {
    nodes += 1;
    if (nodes > limits.nodesMax) return '[more]';
    switch (typeof value) {
      case 'string':
        return textOf(value);
      case 'number':
        return Number.isFinite(value) ? value : String(value);
      case 'boolean':
        return value;
      case 'bigint':
        return textOf(value.toString());
      case 'object':
        return value === null ? null : ofObject(value, depth);
      case 'undefined':
        return null;
      default:
        return `[${typeof value}]`;
    }
  }

  function ofObject(value: object, depth: number): LogValue {
    if (path.has(value)) return '[circular]';
    if (depth >= limits.depthMax) return '[deeper]';
    path.add(value);
    try {
      return convertObject(value, depth);
    } catch {
      // A proxy can throw anywhere: the rest of the line is still worth writing.
      return '[unreadable]';
    } finally {
      path.delete(value);
    }
  }

  function convertObject(value: object, depth: number): LogValue {
    if (value instanceof Error) return ofError(value, depth);
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
    if (value instanceof URL) return textOf(value.href);
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
    if (value instanceof Map) {
      const byText = new Map([...value].map(([key, item]) => [String(key), item as unknown]));
      return entriesOf([...byText.keys()], (key) => byText.get(key), depth);
    }
    if (value instanceof Set) return convert([...value], depth);
    if (Array.isArray(value)) {
      const items = value.slice(0, limits.entriesMax).map((item) => convert(item, depth + 1));
      const rest = value.length - items.length;
      return rest > 0 ? [...items, `[${rest} more]`] : items;
    }
    const fields = value as Readonly<Record<string, unknown>>;
    return entriesOf(Object.keys(fields), (key) => fields[key], depth);
  }

  function entriesOf(
    keys: readonly string[],
    read: (key: string) => unknown,
    depth: number,
  ): Record<string, LogValue> {
    const entries = keys.slice(0, limits.entriesMax).flatMap((key): [string, LogValue][] => {
      const name = key.slice(0, 100);
      try {
        const value = read(key);
        if (value === undefined) return [];
        return [[name, isHidden(key, value) ? redacted : convert(value, depth + 1)]];
      } catch {
        // A getter can throw: the other fields are still readable.
        return [[name, '[unreadable]']];
      }
    });
    const rest = keys.length - limits.entriesMax;
    if (rest > 0) entries.push(['more', `[${rest} more]`]);
    // fromEntries defines fields, so a key `__proto__` changes no prototype.
    return Object.fromEntries(entries);
  }

  /** Converts an error with its additional fields: `code`, `details`, `retryable`. */
  function ofError(error: Error, depth: number): LogValue {
    // At runtime these fields may have any type.
    const { name, message, stack, cause } = error as Readonly<Record<keyof Error, unknown>>;
    const own: Record<string, unknown> = Object.fromEntries(Object.entries(error));
    if (error instanceof AggregateError) own['errors'] = error.errors;
    const { name: _name, message: _message, stack: _stack, cause: _cause, ...more } = own;
    return {
      name: textOf(String(name)),
      message: textOf(String(message)),
      ...entriesOf(Object.keys(more), (key) => more[key], depth),
      ...(typeof stack === 'string' ? { stack: textOf(stack) } : {}),
      ...(cause === undefined ? {} : { cause: convert(cause, depth + 1) }),
    };
  }

  function textOf(text: string): string {
    // Cut before the search for secrets, so its cost is bounded too.
    const isLong = text.length > limits.textCharsMax;
    const clean = redactText(isLong ? text.slice(0, limits.textCharsMax) : text);
    return (isLong ? `${clean}… [${text.length} characters]` : clean).toWellFormed();
  }

  return convert(given, 0);
}

/** Leaves out credentials in URLs and headers, Millrace, webhook and Slack tokens, and mail addresses. */
function redactText(text: string): string {
  // Most strings are names and ids: search once instead of five times.
  if (!/[@=]|bearer|basic|mr_|whsec_|xox/i.test(text)) return text;
  return text
    .replaceAll(/([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/?#]{1,500}@/gi, `$1${redacted}@`)
    .replaceAll(
      /([?&][^=&\s]{0,50}(?:password|secret|token|key|signature)[^=&\s]{0,50}=)[^&\s]+/gi,
      `$1${redacted}`,
    )
    .replaceAll(/\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${redacted}`)
    .replaceAll(/\b(?:mr_[0-9a-f]{32}_|whsec_|xox[a-z]-)[\w-]+/g, redacted)
    .replaceAll(/[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+/g, redacted);
}

/** Keeps letters and digits only, so the result needs no escaping in a pattern. */
function normalized(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}
