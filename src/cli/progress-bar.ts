// The text of a progress bar: how much of it is done, and how fast it goes.

const cells = 20;

/** `done` is from 0 to 1. */
export function progressBar(done: number, note: string): string {
  const share = Math.min(1, Math.max(0, done));
  const filled = Math.round(share * cells);
  const bar = '█'.repeat(filled) + '░'.repeat(cells - filled);
  return `${bar} ${String(Math.floor(share * 100)).padStart(3)} %  ${note}`;
}

/** `12,345 events, 6,172/s`, counted from when it was made. */
export function createEventRate(
  nowMs = (): number => performance.now(),
): (events: number) => string {
  const startedMs = nowMs();
  return (events) => {
    const seconds = Math.max(0.001, (nowMs() - startedMs) / 1_000);
    return `${grouped(events)} events, ${grouped(Math.round(events / seconds))}/s`;
  };
}

/** `12,345`; the runtime's own way to write it takes longer than a page of events. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');
}
