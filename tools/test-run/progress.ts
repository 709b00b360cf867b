// Shows how far a test run is: one line that is redrawn on a terminal, a line every 15 s elsewhere.

const redrawMs = 200;
const plainLineMs = 15_000;

export interface Progress {
  start(name: string): void;
  finish(name: string): void;
  printFailure(text: string): void;
  readonly print: (text: string) => void;
  end(): void;
}

export interface ProgressState {
  readonly total: number;
  readonly done: number;
  readonly failures: number;
  readonly elapsedSeconds: number;
  /** Undefined until it can be estimated. */
  readonly leftSeconds: number | undefined;
  readonly running: readonly { readonly name: string; readonly seconds: number }[];
}

export function createProgress(options: {
  readonly names: readonly string[];
  readonly expectedSeconds: (name: string) => number;
}): Progress {
  const { names, expectedSeconds } = options;
  const isTerminal = process.stdout.isTTY;
  const startedAt = performance.now();
  const running = new Map<string, number>();
  const waiting = new Set(names);
  let failures = 0;
  let done = 0;
  const secondsSince = (at: number): number => (performance.now() - at) / 1000;
  const sum = (some: Iterable<string>): number =>
    [...some].reduce((total, name) => total + expectedSeconds(name), 0);
  const expectedTotal = sum(names);

  const state = (): ProgressState => {
    const elapsedSeconds = secondsSince(startedAt);
    const expectedRunning = [...running].reduce(
      (total, [name, at]) => total + Math.max(0, expectedSeconds(name) - secondsSince(at)),
      0,
    );
    const expectedLeft = sum(waiting) + expectedRunning;
    const share = 1 - expectedLeft / expectedTotal;
    return {
      total: names.length,
      done,
      failures,
      elapsedSeconds,
      leftSeconds: share > 0.05 ? (elapsedSeconds / share) * (1 - share) : undefined,
      running: [...running].map(([name, at]) => ({ name, seconds: secondsSince(at) })),
    };
  };
  const clear = (): void => {
    if (isTerminal) process.stdout.write('\r\x1B[K');
  };
  const draw = (): void => {
    const line = progressLine(state());
    if (isTerminal) process.stdout.write(`\r\x1B[K${line.slice(0, process.stdout.columns - 1)}`);
    else process.stdout.write(`${line}\n`);
  };
  const print = (text: string): void => {
    clear();
    process.stdout.write(`${text}\n\n`);
  };
  const timer = setInterval(draw, isTerminal ? redrawMs : plainLineMs);

  return {
    start(name) {
      waiting.delete(name);
      running.set(name, performance.now());
    },
    finish(name) {
      running.delete(name);
      done += 1;
    },
    printFailure(text) {
      failures += 1;
      print(text);
    },
    print,
    end() {
      clearInterval(timer);
      clear();
    },
  };
}

export function progressLine(state: ProgressState): string {
  const { total, done, failures, elapsedSeconds, leftSeconds, running } = state;
  const left = leftSeconds === undefined ? '' : `, about ${minutes(leftSeconds)} left`;
  const longest = running.toSorted((one, other) => other.seconds - one.seconds);
  const names = longest.map(({ name, seconds }) => `${shortName(name)} ${Math.round(seconds)} s`);
  return [
    `${done}/${total} files`,
    `${failures} failed`,
    `${minutes(elapsedSeconds)}${left}`,
    names.join(', '),
  ].join(' · ');
}

/** `3:07`, as on a clock. */
export function minutes(seconds: number): string {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}

function shortName(file: string): string {
  return file.replace(/^(?:src|test)\//, '').replace(/(?:\.(?:servers|full))?\.test\.ts$/, '');
}
