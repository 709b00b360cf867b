import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { busyCases, noThreadCase, threadCase } from './busy-cases.ts';
import type { TasksAddress } from './open-tasks.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-busy-'));
after(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;

async function open(): Promise<TasksAddress> {
  files += 1;
  return { engine: 'sqlite', url: `sqlite:${join(folder, `${files}.db`)}` };
}

busyCases(() => {
  threadCase('sqlite', open);
  noThreadCase('sqlite', open);
});
