// Shared by both servers: reports the port, and collects garbage on request.

import { childInput, tellParent } from '../../src/testing/child-process.ts';
import type { ServedHttpInput, ServedHttpMessage } from './served-http.ts';

export const { file } = childInput() as ServedHttpInput;

export function listening(port: number, token = ''): void {
  process.on('message', () => {
    globalThis.gc?.();
    tellParent({ kind: 'collected' });
  });
  tellParent({ kind: 'listening', port, token } satisfies ServedHttpMessage);
}
