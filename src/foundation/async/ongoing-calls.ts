export interface OngoingCalls {
  /** Returns the result of the call. */
  track<T>(call: Promise<T>): Promise<T>;
  /** Resolves when no call is in progress, whatever their results are. */
  settled(): Promise<void>;
}

/** Tracks calls that must finish before their owner closes. */
export function createOngoingCalls(): OngoingCalls {
  const ongoing = new Set<Promise<unknown>>();
  return {
    async track(call) {
      ongoing.add(call);
      try {
        return await call;
      } finally {
        ongoing.delete(call);
      }
    },
    async settled() {
      while (ongoing.size > 0) await Promise.allSettled(ongoing);
    },
  };
}
