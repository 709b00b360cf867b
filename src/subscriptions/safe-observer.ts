// Whoever observes must not stop what it observes: what an observer throws is told once, and left.

import type { Logger, Observer, Span } from '../foundation/observer.ts';

const silentSpan: Span = {
  context: undefined,
  set: () => undefined,
  fail: () => undefined,
  end: () => undefined,
};

/** Listens where the given one does, and nowhere else: unheard telemetry stays free. */
export function safeObserver(observer: Observer): Observer {
  const { count, gauge, record, span } = observer;
  const log = observer.log === undefined ? undefined : safeLogger(observer.log);
  const told = new Set<string>();

  function attempt<T>(part: string, call: () => T): T | undefined {
    try {
      return call();
    } catch (err) {
      if (!told.has(part)) log?.error({ part, err }, 'observer failed');
      told.add(part);
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
  let isTold = false;
  const safe =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      try {
        log[level](fields, message);
      } catch (error) {
        // Where nothing else is left to tell it.
        if (!isTold) process.emitWarning(error instanceof Error ? error : String(error));
        isTold = true;
      }
    };
  return { debug: safe('debug'), info: safe('info'), warn: safe('warn'), error: safe('error') };
}
