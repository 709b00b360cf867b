// Whatever somebody logs, as plain JSON of a bounded size: no circle, no getter and no error breaks it.

import { redacted, type Redaction } from './redact.ts';

export interface LogValueLimits {
  readonly depthMax: number;
  /** Of one object or list. */
  readonly entriesMax: number;
  readonly textCharsMax: number;
  /** Of all together. */
  readonly nodesMax: number;
}

export type LogValue =
  | string
  | number
  | boolean
  | null
  | readonly LogValue[]
  | { readonly [key: string]: LogValue };

export function toLogValue(given: unknown, limits: LogValueLimits, redaction: Redaction): LogValue {
  const path = new Set<object>();
  let nodes = 0;

  function convert(each: unknown, depth: number): LogValue {
    nodes += 1;
    if (nodes > limits.nodesMax) return '[more]';
    switch (typeof each) {
      case 'string':
        return textOf(each);
      case 'number':
        return Number.isFinite(each) ? each : String(each);
      case 'boolean':
        return each;
      case 'bigint':
        return textOf(each.toString());
      case 'object':
        return each === null ? null : ofObject(each, depth);
      case 'undefined':
        return null;
      default:
        return `[${typeof each}]`;
    }
  }

  function ofObject(each: object, depth: number): LogValue {
    if (path.has(each)) return '[circular]';
    if (depth >= limits.depthMax) return '[deeper]';
    path.add(each);
    try {
      return convertObject(each, depth);
    } catch {
      // A proxy that throws, perhaps: the line is worth more than this part of it.
      return '[unreadable]';
    } finally {
      path.delete(each);
    }
  }

  function convertObject(each: object, depth: number): LogValue {
    if (each instanceof Error) return ofError(each, depth);
    if (each instanceof Date) return Number.isNaN(each.getTime()) ? null : each.toISOString();
    if (each instanceof URL) return textOf(each.href);
    if (ArrayBuffer.isView(each)) return `[${each.byteLength} bytes]`;
    if (each instanceof Map) {
      const byText = new Map([...each].map(([key, item]) => [String(key), item as unknown]));
      return entriesOf([...byText.keys()], (key) => byText.get(key), depth);
    }
    if (each instanceof Set) return convert([...each], depth);
    if (Array.isArray(each)) {
      const items = each.slice(0, limits.entriesMax).map((item) => convert(item, depth + 1));
      const rest = each.length - items.length;
      return rest > 0 ? [...items, `[${rest} more]`] : items;
    }
    return entriesOf(
      Object.keys(each),
      (key) => (each as Readonly<Record<string, unknown>>)[key],
      depth,
    );
  }

  function entriesOf(
    keys: readonly string[],
    read: (key: string) => unknown,
    depth: number,
  ): Record<string, LogValue> {
    const entries = keys.slice(0, limits.entriesMax).flatMap((key): [string, LogValue][] => {
      const shown = key.slice(0, 100);
      try {
        const value = read(key);
        if (value === undefined) return [];
        return [[shown, redaction.hides(key, value) ? redacted : convert(value, depth + 1)]];
      } catch {
        // A getter that throws: of the others there is still something to read.
        return [[shown, '[unreadable]']];
      }
    });
    const rest = keys.length - limits.entriesMax;
    if (rest > 0) entries.push(['more', `[${rest} more]`]);
    // Defines: `__proto__` is a key like any other.
    return Object.fromEntries(entries);
  }

  function ofError(error: Error, depth: number): LogValue {
    const { name, message, stack, cause, ...more } = plainOf(error);
    const own = entriesOf(Object.keys(more), (key) => more[key], depth);
    return {
      name: textOf(String(name)),
      message: textOf(String(message)),
      ...own,
      ...(typeof stack === 'string' ? { stack: textOf(stack) } : {}),
      ...(cause === undefined ? {} : { cause: convert(cause, depth + 1) }),
    };
  }

  function textOf(text: string): string {
    // Cut first: what is looked through is bounded as well.
    const isLong = text.length > limits.textCharsMax;
    const clean = redaction.text(isLong ? text.slice(0, limits.textCharsMax) : text);
    return (isLong ? `${clean}… [${text.length} characters]` : clean).toWellFormed();
  }

  return convert(given, 0);
}

/** What is not enumerable of an error, and its own fields: `code`, `details`, `retryable`, `errors`. */
function plainOf(error: Error): Record<string, unknown> {
  const { name, message, stack, cause } = error;
  const errors = error instanceof AggregateError ? { errors: error.errors as unknown } : {};
  return { ...Object.fromEntries(Object.entries(error)), ...errors, name, message, stack, cause };
}
