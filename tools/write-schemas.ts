// Writes the published JSON Schemas from their definitions; a test keeps the files equal to them.

import { mkdirSync, writeFileSync } from 'node:fs';
import { envelopeJsonSchema } from '../src/contracts/envelope.ts';

const folder = new URL('../schemas/', import.meta.url);
mkdirSync(folder, { recursive: true });
writeFileSync(
  new URL('domain-event-envelope.json', folder),
  `${JSON.stringify(envelopeJsonSchema, null, 2)}\n`,
);
