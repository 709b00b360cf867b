// The minimum cost of durability: bytes appended to a file, and one sync for all waiting writes.

import { open } from 'node:fs/promises';

/** Resolves when the bytes are on disk. */
export async function openJournal(path: string): Promise<(bytes: Uint8Array) => Promise<void>> {
  const file = await open(path, 'a');
  let waiting: { readonly bytes: Uint8Array; readonly written: () => void }[] = [];
  let isBusy = false;
  const flush = async (): Promise<void> => {
    isBusy = true;
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      await file.appendFile(Buffer.concat(batch.map(({ bytes }) => bytes)));
      await file.datasync();
      for (const { written } of batch) written();
    }
    isBusy = false;
  };
  return (bytes) =>
    new Promise((written) => {
      waiting.push({ bytes, written });
      if (!isBusy) void flush();
    });
}
