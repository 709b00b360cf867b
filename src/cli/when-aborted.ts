export function whenAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((settle) => {
    signal.addEventListener('abort', () => settle(), { once: true });
  });
}
