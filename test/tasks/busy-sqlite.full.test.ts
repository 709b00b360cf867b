import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { busyCases } from './busy-cases.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-busy-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

busyCases('sqlite', async () => {
  files += 1;
  return { engine: 'sqlite', url: `sqlite:${join(folder, `${files}.db`)}` };
});
