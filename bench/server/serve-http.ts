// What both servers do beside serving: tell their port, and collect garbage when they are asked to.

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
