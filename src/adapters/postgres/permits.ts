// A bounded number of holders at a time; the others wait in turn.

export interface Permits {
  /** Resolves when there is one; call what it gives to hand it back. */
  take(): Promise<() => void>;
}

export function createPermits(count: number): Permits {
  let free = count;
  const waiting: (() => void)[] = [];
  const giveBack = (): void => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return {
    async take() {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      return giveBack;
    },
  };
}
