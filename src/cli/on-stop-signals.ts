// What SIGINT and SIGTERM do: the first one asks, a second one, of either kind, ends the process at once.

import process from 'node:process';

const signals = ['SIGINT', 'SIGTERM'] as const;

/** npm passes a Ctrl-C on that the terminal has sent to everybody already: one that comes twice. */
const echoMs = 250;

export function onStopSignals(ask: () => void): void {
  let askedAtMs: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    const nowMs = performance.now();
    if (askedAtMs === undefined) {
      askedAtMs = nowMs;
      ask();
    } else if (nowMs - askedAtMs > echoMs) {
      for (const each of signals) process.off(each, onSignal);
      process.kill(process.pid, signal);
    }
  };
  for (const each of signals) process.on(each, onSignal);
}
