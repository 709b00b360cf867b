// An observer must not break the code that it observes: its errors are logged once and ignored.

import type { Logger, Observer, Span } from './observer.ts';

const silentSpan: Span = {
  context: undefined,
  set: () => undefined,
  fail: () => undefined,
  end: () => undefined,
};

/** Implements exactly the methods of the given observer, so that unused telemetry costs nothing. */
export function safeObserver(observer: Observer): Observer {
  const { count, gauge, record, span } = observer;
  const log = observer.log === undefined ? undefined : safeLogger(observer.log);
  const failedParts = new Set<string>();

  function attempt<T>(part: string, call: () => T): T | undefined {
    try {
      return call();
    } catch (err) {
      if (!failedParts.has(part)) log?.error({ part, err }, 'observer failed');
      failedParts.add(part);
      return undefined;
    }
  }

  const safeSpan = (inner: Span): Span => ({
    get context() {
      return attempt('span', () => inner.context);
    },
    set: (attributes) => attempt('span', () => inner.set(attributes)),
    fail: (error) => attempt('span', () => inner.fail(error)),
    end: () => attempt('span', () => inner.end()),
  });

  return {
    ...(log === undefined ? {} : { log }),
    ...(count === undefined ? {} : { count: (...args) => attempt('count', () => count(...args)) }),
    ...(gauge === undefined ? {} : { gauge: (...args) => attempt('gauge', () => gauge(...args)) }),
    ...(record === undefined
      ? {}
      : { record: (...args) => attempt('record', () => record(...args)) }),
    ...(span === undefined
      ? {}
      : {
          span: (...args) => {
            const inner = attempt('span', () => span(...args));
            return inner === undefined ? silentSpan : safeSpan(inner);
          },
        }),
  };
}

function safeLogger(log: Logger): Logger {
  let isReported = false;
  const safe =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      try {
        log[level](fields, message);
      } catch (error) {
        // The logger itself failed, so report to the process.
        if (!isReported) process.emitWarning(error instanceof Error ? error : String(error));
        isReported = true;
      }
    };
  return { debug: safe('debug'), info: safe('info'), warn: safe('warn'), error: safe('error') };
}
